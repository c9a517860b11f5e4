"""The envelope of an event: metadata that the log stores beside it."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from domain.event_types import AnyEvent
from domain.values.record import Stamp

WRITER_VERSION = "0.1.0"
"""Release that wrote the event; recorded with each one."""


class Actor(NamedTuple):
    """The actor on whose behalf an event is recorded.

    Attributes:
        kind: `token` (an outside caller), `child` (a child's token) or `system` (this program).
        token: Id of the token, never the token itself.
        session: Session that it acts for, if there is exactly one.
    """

    kind: str
    token: str | None = None
    session: str | None = None

    @property
    def name(self) -> str:
        """Return the actor's name in texts."""
        return self.session or self.token or self.kind


SYSTEM = Actor(kind="system")


class Provenance(NamedTuple):
    """Origin of an append.

    Attributes:
        correlation: Key of the root session.
        causation: Id of the event that led to the append.
        traceparent: W3C trace context.
    """

    actor: Actor = SYSTEM
    correlation: str | None = None
    causation: UUID | None = None
    run_id: UUID | None = None
    traceparent: str | None = None
    config_revision: int = 0


class Envelope(NamedTuple):
    """Columns beside an event. `append_last` is the last position of its append.

    The types here are tuples because one is created for every event written or read.
    """

    position: int
    stream: str
    version: int
    type: str
    type_version: int
    recorded_at: datetime
    occurred_at: datetime
    event_id: UUID
    command_id: UUID
    provenance: Provenance
    writer_version: str
    append_last: int
    chain_hash: bytes

    @property
    def stamp(self) -> Stamp:
        """Return the part that a fold needs."""
        return Stamp(self.position, self.version, self.recorded_at, self.event_id)


class RecordedEvent(NamedTuple):
    """An event as stored in the log."""

    envelope: Envelope
    event: AnyEvent

    @property
    def stream(self) -> str:
        return self.envelope.stream

    @property
    def stamp(self) -> Stamp:
        return self.envelope.stamp
