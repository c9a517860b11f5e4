"""What every recorded fact is made of: a frozen value with camelCase names in JSON."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Fact(BaseModel):
    """A frozen value, snake_case in Python and camelCase in JSON; unknown keys are errors."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
    )


class Event(Fact):
    """Something that happened. Its name and version are in `domain.event_types`."""
