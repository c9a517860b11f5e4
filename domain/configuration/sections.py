"""Base classes of configuration sections, and the types of their fields.

Values of a file already have their JSON type, so nothing is coerced: `"8"` is not a number and `1`
is not true.
"""

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

_COMMON = ConfigDict(
    alias_generator=to_camel,
    populate_by_name=True,
    frozen=True,
    # Error texts end up in logs, and the input may be a secret.
    hide_input_in_errors=True,
)


class OwnSection(BaseModel):
    """A section that only spawnlog reads. Unknown keys are errors."""

    model_config = ConfigDict(**_COMMON, extra="forbid")


class SharedSection(BaseModel):
    """A section that other programs read too. Unknown keys are kept unchanged."""

    model_config = ConfigDict(**_COMMON, extra="allow")

    def __repr_args__(self) -> Iterable[tuple[str | None, object]]:
        # Representations end up in logs, and foreign keys may hold secrets.
        extra = self.model_extra or {}
        return [(name, value) for name, value in super().__repr_args__() if name not in extra]


def section_error(code: str, message: str, at: str | None = None) -> PydanticCustomError:
    """Return an error about a value.

    Args:
        code: Error type.
        message: Text for the reader.
        at: Path of the faulty part within the value, such as `1/id`.
    """
    # Passed as context, because braces in a template would be interpreted.
    context = {"text": message} if at is None else {"text": message, "at": at}
    return PydanticCustomError(code, "{text}", context)


def finite_number(value: object) -> int | float:
    """Return the value if it is a finite number. Booleans are not numbers.

    Raises:
        PydanticCustomError: The value is not a finite number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise section_error("number", "must be a number")
    if value != value or value in (float("inf"), float("-inf")):
        raise section_error("number", "must be a finite number")
    return value


def _check_name(value: str) -> str:
    if not value.strip():
        raise section_error("blank", "must not be blank")
    if not value.isprintable():
        raise section_error("unprintable", "must not contain control characters")
    return value


Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict()]
Number = Annotated[int | float, BeforeValidator(finite_number)]
Text = Annotated[str, Strict()]
NameText = Annotated[str, Strict(), AfterValidator(_check_name), Field(max_length=4096)]
