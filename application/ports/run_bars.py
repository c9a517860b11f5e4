"""Run bars: the stages of runs in time, without texts, now or as of a position."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple, Protocol
from uuid import UUID

from application.ports.registry import RunQuery
from domain.run.facts import RunOutcome
from domain.run.lifecycle import RunStage
from domain.values.record import ContentRef


class ReachedStage(NamedTuple):
    """A stage that a run reached, and the event that brought it there."""

    stage: RunStage
    position: int
    at: datetime


class RunBar(NamedTuple):
    """A run at one moment.

    Attributes:
        waits: Whether it waits for other runs.
        parent_run_id: The run of the requester's session that requested it.
        respawned_from: The run that it was made from.
        rule: The rule that refused it.
    """

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


class RunDetails(NamedTuple):
    """Texts and usage of a run beside its bar.

    Attributes:
        error: Why it failed or was refused; set once it is over, as are tokens, cost and models.
        cost_usd, models, unpriced_models: As in `RunCount`.
        runs: 1, so that details are summed as counts are.
    """

    task: ContentRef
    error: ContentRef | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: Decimal | None = None
    models: frozenset[str] = frozenset()
    unpriced_models: frozenset[str] = frozenset()
    runs: int = 1


class SessionBar(NamedTuple):
    """A session at one moment."""

    session_key: str
    session_id: UUID
    agent_id: str
    depth: int
    role: str
    stage: str
    created_at: datetime
    active_children: int


class RunBars(Protocol):
    """Reader of bars by the registry's indexes."""

    async def overlapping(
        self,
        query: RunQuery,
        *,
        after: int,
        until: int,
        at: int,
        limit: int,
        after_cursor: int | None = None,
    ) -> Sequence[RunBar]:
        """Return runs requested at or before `until` and not over at `after`, newest first.

        `after_cursor` is a cursor: only runs created before it are returned.

        Raises:
            LogUnavailableError: While too much of the log is not counted yet.
        """
        ...

    async def spawned_by(
        self, session_keys: Sequence[str], *, at: int, limit: int, refused: bool = False
    ) -> Sequence[RunBar]:
        """Return runs requested by these sessions, in the order of the sessions, then of creation.

        They are the refused runs if `refused`, else all others.
        """
        ...

    async def details(self, bars: Sequence[RunBar]) -> Mapping[UUID, RunDetails]:
        """Return the details of each run as of the moment of its bar."""
        ...

    async def own_runs(self, session_key: str, *, at: int, limit: int) -> Sequence[RunBar]:
        """Return the runs of the child session itself except refused ones, ordered by creation."""
        ...

    async def sessions(self, session_keys: Sequence[str], *, at: int) -> Mapping[str, SessionBar]:
        """Return the given sessions that are on record."""
        ...

    async def stages(self, versions: Mapping[UUID, int]) -> Mapping[UUID, Sequence[ReachedStage]]:
        """Return the stages that each run had reached after its first N events, in order.
        `versions` gives N."""
        ...
