"""The two kinds of section, and the plain types their fields are made of.

A file's text is already the right JSON type, so nothing is converted: `"8"` is not a number and
`1` is not true.
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
    # The text of an error ends up in logs, and what was typed may be a secret.
    hide_input_in_errors=True,
)


class OwnSection(BaseModel):
    """A section that only spawnlog reads: a key that is not listed is a mistake."""

    model_config = ConfigDict(**_COMMON, extra="forbid")


class SharedSection(BaseModel):
    """A section that other programs read too: their keys are kept as they are."""

    model_config = ConfigDict(**_COMMON, extra="allow")

    def __repr_args__(self) -> Iterable[tuple[str | None, object]]:
        # What is not ours may hold anything, and a representation ends up in logs.
        extra = self.model_extra or {}
        return [(name, value) for name, value in super().__repr_args__() if name not in extra]


def section_error(code: str, message: str, at: str | None = None) -> PydanticCustomError:
    """A mistake in a value; `at` points to the part of it that is meant (`1/id`)."""
    # The text goes in as context: a template would read the reader's braces as its own.
    context = {"text": message} if at is None else {"text": message, "at": at}
    return PydanticCustomError(code, "{text}", context)


def finite_number(value: object) -> int | float:
    """The value itself when it is a number; truth values are none."""
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
