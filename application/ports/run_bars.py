"""Runs as bars: when each came to which stage, without their texts, now or as of a position."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from application.ports.registry import RunQuery
from domain.run.facts import RunOutcome
from domain.run.lifecycle import RunStage


class ReachedStage(NamedTuple):
    """That a run came to a stage, and by which event."""

    stage: RunStage
    position: int
    at: datetime


class RunBar(NamedTuple):
    """A run as it was then. `waits` is whether it waits for other runs; `parent_run_id` the run
    of the requester's session by which it was asked for, `respawned_from` the one that it was made
    from, `rule` the one that refused it."""

    run_id: UUID
    version: int
    created_position: int
    created_at: datetime
    stage: RunStage
    outcome: RunOutcome | None
    waits: bool
    requester_session_key: str
    parent_run_id: UUID | None
    child_session_key: str | None
    agent_id: str | None
    label: str | None
    depth: int
    respawned_from: UUID | None
    rule: str | None


class SessionBar(NamedTuple):
    """A session as it was then."""

    session_key: str
    session_id: UUID
    agent_id: str
    depth: int
    role: str
    stage: str
    created_at: datetime
    active_children: int


class RunBars(Protocol):
    """Reads bars along the indexes of the registry."""

    async def overlapping(
        self,
        query: RunQuery,
        *,
        after: int,
        until: int,
        at: int,
        limit: int,
        behind: int | None = None,
    ) -> Sequence[RunBar]:
        """Runs that were asked for at or before `until` and not over at `after`, as of `at`, by
        position of creation, the newest first; those created before `behind`. `LogUnavailable`
        while that part of the log is not looked through yet."""
        ...

    async def spawned_by(
        self, session_keys: Sequence[str], *, at: int, limit: int, refused: bool = False
    ) -> Sequence[RunBar]:
        """Return runs that these sessions asked for, in the order of the sessions and then of
        creation: those that were `refused`, or all others."""
        ...

    async def own_runs(self, session_key: str, *, at: int, limit: int) -> Sequence[RunBar]:
        """The runs of a child's session itself but those that were refused, by creation."""
        ...

    async def sessions(self, session_keys: Sequence[str], *, at: int) -> Mapping[str, SessionBar]:
        """Those of the sessions that are on record."""
        ...

    async def stages(self, versions: Mapping[UUID, int]) -> Mapping[UUID, Sequence[ReachedStage]]:
        """To which stages runs had come after so many of their events, in order."""
        ...
