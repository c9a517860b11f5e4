"""What every body of a request is made of."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Body(BaseModel):
    """A request body: camelCase names only, no unknown keys, no type coercion.

    By itself it is the body of an operation that takes none: an empty object, or nothing at all.
    """

    model_config = ConfigDict(
        # When it is first made or read: a start builds no model that nobody asks for.
        defer_build=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
        hide_input_in_errors=True,
    )
