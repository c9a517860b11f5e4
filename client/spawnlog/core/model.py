"""Base class of the answer models."""

from functools import cached_property

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class AnswerModel(BaseModel):
    """Base class of answers and their parts.

    Members are snake_case in Python and camelCase in JSON. Instances are frozen. Members that only
    a newer server knows are ignored.
    """

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
        """Log position at which the answer is true; None for a part of an answer.

        Pass it as `min_position` to a later read that must see at least this state.
        """
        return None

    @cached_property
    def is_replayed(self) -> bool:
        """True if the server repeated the stored answer to this idempotency key."""
        return False
