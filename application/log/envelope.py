"""What stands around an event in the log."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from domain.event_types import AnyEvent
from domain.values.record import Stamp

WRITER_VERSION = "0.1.0"
"""Recorded with each event: which release wrote it."""


class Actor(NamedTuple):
    """On whose word something is recorded.

    `kind` is `token` (an outside caller), `child` (a child's own token), `system` (this program);
    `token` the id of the token, never the token; `session` the session it acts for, if just one.
    """

    kind: str
    token: str | None = None
    session: str | None = None

    @property
    def name(self) -> str:
        """How the actor is called in texts."""
        return self.session or self.token or self.kind


SYSTEM = Actor(kind="system")


class Provenance(NamedTuple):
    """Where an append comes from. `correlation` is the root session's key, `causation` the id of
    the event that led to it, `traceparent` a W3C trace context."""

    actor: Actor = SYSTEM
    correlation: str | None = None
    causation: UUID | None = None
    run_id: UUID | None = None
    traceparent: str | None = None
    config_revision: int = 0


class Envelope(NamedTuple):
    """The columns beside an event; `append_last` is the last position of its append.

    A tuple, as are the others here: one is made for every event that is written or read.
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
        """What a fold needs of it."""
        return Stamp(self.position, self.version, self.recorded_at, self.event_id)


class RecordedEvent(NamedTuple):
    """One event as the log holds it."""

    envelope: Envelope
    event: AnyEvent

    @property
    def stream(self) -> str:
        """Whose event it is."""
        return self.envelope.stream

    @property
    def stamp(self) -> Stamp:
        """What a fold needs of its envelope."""
        return self.envelope.stamp
