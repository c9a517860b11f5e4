"""Base model of HTTP request bodies."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Body(BaseModel):
    """A request body: camelCase names only, no unknown keys, no type coercion.

    Used directly, it is the body of an operation without parameters: an empty object or no body.
    """

    model_config = ConfigDict(
        # Build each model on first use, which keeps startup fast.
        defer_build=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
        hide_input_in_errors=True,
    )
