"""What every recorded fact is made of: a frozen value with camelCase names in JSON."""

from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

_new, _set = object.__new__, object.__setattr__
_set_fields_set, _set_extra, _set_private = (
    BaseModel.__dict__[f"__pydantic_{name}__"].__set__
    for name in ("fields_set", "extra", "private")
)


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

    def changed(self, changes: dict[str, object]) -> Self:
        """The same fact but for these fields, whose values are taken as they are."""
        # What `model_copy(update=...)` gives, in a tenth of its time, which every event of a fold
        # would take. The set of given fields is shared and not added to: no fact is asked for it.
        made = _new(type(self))
        _set(made, "__dict__", self.__dict__ | changes)
        _set_fields_set(made, self.__pydantic_fields_set__)
        _set_extra(made, None)
        _set_private(made, None)
        return made


class Event(Fact):
    """Something that happened. Its name and version are in `domain.event_types`."""


# References to free text.
#
# Free text (tasks, outputs, prompts, results, errors) never stands in an event: it lives beside
# the log, owned by a session, and an event refers to it. The keyed hash proves which text it was
# for as long as the session's key exists; once the key is destroyed nothing can be guessed from
# the event.


class ContentRef(Fact):
    """Where a text is and what it must be.

    `bytes` is the length of its UTF-8 form, `hmac` the HMAC-SHA256 of that form under the owning
    session's key, in hexadecimal.
    """

    id: UUID
    bytes: int
    hmac: str


# When and where an event was recorded: what the log adds to an event.


class Stamp(NamedTuple):
    """`position` in the log, `version` in its stream, `recorded_at` (UTC) on the log's clock;
    `event_id` so that what follows from an event can name it as its cause."""

    position: int
    version: int
    recorded_at: datetime
    event_id: UUID | None = None


# The names of streams: `run:<uuid>`, `session:<canonical key>` and `log:config`.


CONFIG_STREAM = "log:config"
RUN_PREFIX = "run:"
SESSION_PREFIX = "session:"
NAMES_MAX = 4_096
"""Names of runs that are not made or read anew: each is asked for a dozen times in an append."""


@lru_cache(maxsize=NAMES_MAX)
def run_stream(run_id: UUID) -> str:
    """The stream of one run."""
    return f"{RUN_PREFIX}{run_id}"


def session_stream(session_key: str) -> str:
    """The stream of one session, by its canonical key."""
    return f"{SESSION_PREFIX}{session_key}"


@lru_cache(maxsize=NAMES_MAX)
def run_id_of(stream: str) -> UUID | None:
    """The run a stream belongs to; None for any other stream."""
    return UUID(stream.removeprefix(RUN_PREFIX)) if stream.startswith(RUN_PREFIX) else None


def session_key_of(stream: str) -> str | None:
    """The session a stream belongs to; None for any other stream."""
    return stream.removeprefix(SESSION_PREFIX) if stream.startswith(SESSION_PREFIX) else None
