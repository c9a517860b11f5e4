"""How a file names a secret without holding it.

`${NAME}` is an environment variable, `{"file": "path"}` the first line of a file, and
`{"$secret": "/pointer"}` a value that stands in the file which this revision was read from. The
last is only ever written by spawnlog, into the revisions that it keeps.
"""

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Strict, Tag

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class SecretReference(BaseModel):
    """The place of a secret in the file that a kept revision was read from."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, hide_input_in_errors=True
    )

    pointer: str = Field(alias="$secret")


def variable_named_by(text: str) -> str | None:
    """`NAME` when the whole text is `${NAME}`, else None."""
    match = _VARIABLE.fullmatch(text)
    return match.group(1) if match else None


def variables_in(text: str) -> tuple[str, ...]:
    """Every NAME that the text refers to as `${NAME}`, in order."""
    return tuple(_VARIABLE.findall(text))


def without_references(text: str) -> str:
    """What is left of the text when each `${NAME}` is taken out of it."""
    return _VARIABLE.sub("", text)


def with_variables(text: str, values: dict[str, str]) -> str:
    """The text with each `${NAME}` replaced once; KeyError for a name without a value."""
    return _VARIABLE.sub(lambda match: values[match.group(1)], text)


def _kind(value: Any) -> str | None:
    if isinstance(value, str):
        return "text"
    is_reference = isinstance(value, SecretReference) or (
        isinstance(value, dict) and set(value) == {"$secret"}
    )
    return "reference" if is_reference else None


SecretText = Annotated[
    Annotated[str, Strict(), Tag("text")] | Annotated[SecretReference, Tag("reference")],
    Discriminator(_kind, custom_error_type="secret_text", custom_error_message="must be a string"),
]


"""A text that may be secret: as the file has it, or a reference in a revision read back."""
