"""What stands around an event in the log."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.event_types import AnyEvent
from domain.stamp import Stamp

WRITER_VERSION = "0.1.0"
"""Recorded with each event: which release wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where an append comes from. `correlation` is the root session's key, `causation` the id of
    the event that led to it, `traceparent` a W3C trace context."""

    actor: Actor = SYSTEM
    correlation: str | None = None
    causation: UUID | None = None
    run_id: UUID | None = None
    traceparent: str | None = None
    config_revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The columns beside an event; `append_last` is the last position of its append."""

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

    def chained(self, chain_hash: bytes) -> "Envelope":
        """The same, with its hash. Written out, because it is done for every event."""
        return Envelope(
            position=self.position,
            stream=self.stream,
            version=self.version,
            type=self.type,
            type_version=self.type_version,
            recorded_at=self.recorded_at,
            occurred_at=self.occurred_at,
            event_id=self.event_id,
            command_id=self.command_id,
            provenance=self.provenance,
            writer_version=self.writer_version,
            append_last=self.append_last,
            chain_hash=chain_hash,
        )

    @property
    def stamp(self) -> Stamp:
        """What a fold needs of it."""
        return Stamp(self.position, self.version, self.recorded_at, self.event_id)


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One event as the log holds it."""

    envelope: Envelope
    event: AnyEvent
