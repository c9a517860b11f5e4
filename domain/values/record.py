"""What every recorded fact is made of: a frozen value with camelCase names in JSON."""

from collections.abc import Callable
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple, Self, cast, dataclass_transform
from uuid import UUID

import msgspec


class FactType(msgspec.StructMeta):
    """Makes the fields of every fact keywords: the library asks each class for that anew."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        """Make the class of a fact."""
        return super().__new__(cls, name, bases, namespace, **{"kw_only": True, **options})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Fact(
    msgspec.Struct,
    metaclass=FactType,
    frozen=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
    # A fact holds other facts and plain values: it is part of no circle.
    gc=False,
):
    """A frozen value, snake_case in Python and camelCase in JSON; unknown keys are errors.

    The values are those that the types say: nothing is checked or converted when a fact is made,
    only when it is read from JSON. What has its default is left out of its JSON.
    """

    def changed(self, changes: dict[str, Any]) -> Self:
        """Return the same fact but for these fields."""
        return msgspec.structs.replace(self, **changes)

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """Return the fact that a JSON text says.

        Raises:
            msgspec.DecodeError: It is no JSON, or not of this fact.
        """
        return cast("Self", decoder_of(cls)(text))

    def to_json(self) -> bytes:
        """Return its JSON without the fields that have their defaults."""
        return _ENCODER.encode(self)

    def members(self) -> dict[str, Any]:
        """Return all of its fields, also those with their defaults, as JSON has them."""
        values = msgspec.structs.astuple(self)
        return {
            name: value if type(value) in _JSON_TYPES else _plain(value)
            for name, value in zip(self.__struct_encode_fields__, values, strict=True)
        }


_ENCODER = msgspec.json.Encoder()
_JSON_TYPES = frozenset((str, int, float, bool, type(None)))


def _plain(value: Any) -> Any:
    if isinstance(value, Fact):
        return value.members()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return msgspec.to_builtins(value)


@cache
def decoder_of(fact: type[Fact]) -> Callable[[bytes | str], Any]:
    """Return the function that reads facts of a type, as `from_json` does."""
    return msgspec.json.Decoder(fact).decode


class Event(Fact):
    """Something that happened. Its name and version are in `domain.event_types`."""


class Command(Fact):
    """Something that is asked of a run or of a session."""


def as_float(number: float | None) -> float | None:
    """Return a number of a configuration, which may be an integer, as a fact holds it.

    The JSON of 1 is other bytes than that of 1.0.
    """
    return float(number) if number is not None else None


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


@lru_cache(maxsize=NAMES_MAX)
def session_key_of(stream: str) -> str | None:
    """The session a stream belongs to; None for any other stream."""
    return stream.removeprefix(SESSION_PREFIX) if stream.startswith(SESSION_PREFIX) else None
