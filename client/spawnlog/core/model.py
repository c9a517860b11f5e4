"""The base of the models of answers."""

from functools import cached_property

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class AnswerModel(BaseModel):
    """An answer or a part of one: snake_case in Python, camelCase in JSON, frozen. A member that
    only a newer server knows is ignored."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        defer_build=True,
        protected_namespaces=(),
    )

    @cached_property
    def log_position(self) -> int | None:
        """Position of the log at which the answer is true. None for a part of an answer."""
        return None

    @cached_property
    def is_replayed(self) -> bool:
        """True if the answer is the first one to its idempotency key, given again."""
        return False
