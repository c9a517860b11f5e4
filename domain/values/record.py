"""Base classes and shared values of recorded facts: frozen, camelCase in JSON."""

from collections.abc import Callable
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple, Self, cast, dataclass_transform
from uuid import UUID

import msgspec


class FactType(msgspec.StructMeta):
    """Metaclass that makes fact fields keyword-only; msgspec would need the option on each
    class.
    """

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        return super().__new__(cls, name, bases, namespace, **{"kw_only": True, **options})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Fact(
    msgspec.Struct,
    metaclass=FactType,
    frozen=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
    # Facts hold only facts and plain values, so they cannot form reference cycles.
    gc=False,
):
    """A frozen value: snake_case in Python, camelCase in JSON. Unknown JSON keys are errors.

    Types are checked only when a fact is read from JSON, not when it is constructed. Fields with
    their default value are omitted from the JSON.
    """

    def changed(self, changes: dict[str, Any]) -> Self:
        """Return a copy with these fields replaced."""
        return msgspec.structs.replace(self, **changes)

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """Decode a fact from JSON.

        Raises:
            msgspec.DecodeError: The text is not JSON, or does not match this type.
        """
        return cast("Self", decoder_of(cls)(text))

    def to_json(self) -> bytes:
        """Return the fact as JSON, without fields that have their default value."""
        return _ENCODER.encode(self)

    def members(self) -> dict[str, Any]:
        """Return all fields as JSON values, including those with their default value."""
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
        return [_plain(item) for item in value]
    return msgspec.to_builtins(value)


@cache
def decoder_of(fact: type[Fact]) -> Callable[[bytes | str], Any]:
    """Return the cached decoder function of a fact type."""
    return msgspec.json.Decoder(fact).decode


class Event(Fact):
    """Base class of events. `domain.event_types` maps names and versions to classes."""


class Command(Fact):
    """Base class of commands to a run or a session."""


def as_float(number: float | None) -> float | None:
    """Return a configuration number, possibly an integer, as float.

    Facts store floats only, because `1` and `1.0` are different JSON bytes.
    """
    return float(number) if number is not None else None


# References to free text.
#
# Events never contain free text (tasks, outputs, prompts, results, errors). The text is stored
# beside the log, owned by a session, and the event refers to it. The keyed hash proves which text
# was meant while the session's key exists. Once the key is destroyed, the event reveals nothing.


class ContentRef(Fact):
    """Reference to a stored text.

    Attributes:
        id: Id of the text.
        bytes: Length of the text in UTF-8 bytes.
        hmac: HMAC-SHA256 of the UTF-8 text under the owning session's key, in hexadecimal.
    """

    id: UUID
    bytes: int
    hmac: str


class Stamp(NamedTuple):
    """Metadata that the log adds to an event.

    Attributes:
        position: Position in the log.
        version: Version in the event's stream.
        recorded_at: Time of recording by the log's clock, UTC.
        event_id: Id by which later events name this one as their cause.
    """

    position: int
    version: int
    recorded_at: datetime
    event_id: UUID | None = None


# Stream names: `run:<uuid>`, `session:<canonical key>` and `log:config`.


CONFIG_STREAM = "log:config"
RUN_PREFIX = "run:"
SESSION_PREFIX = "session:"
NAMES_MAX = 4_096
"""Cache size for run stream names: one append looks each up about a dozen times."""


@lru_cache(maxsize=NAMES_MAX)
def run_stream(run_id: UUID) -> str:
    """Return the stream name of a run."""
    return f"{RUN_PREFIX}{run_id}"


def session_stream(session_key: str) -> str:
    """Return the stream name of a session, given its canonical key."""
    return f"{SESSION_PREFIX}{session_key}"


@lru_cache(maxsize=NAMES_MAX)
def run_id_of(stream: str) -> UUID | None:
    """Return the run id of a stream, or None if it is not a run's stream.

    Raises:
        ValueError: The stream has the run prefix and no UUID after it.
    """
    return UUID(stream.removeprefix(RUN_PREFIX)) if stream.startswith(RUN_PREFIX) else None


@lru_cache(maxsize=NAMES_MAX)
def session_key_of(stream: str) -> str | None:
    """Return the session key of a stream, or None if it is not a session's stream."""
    return stream.removeprefix(SESSION_PREFIX) if stream.startswith(SESSION_PREFIX) else None
