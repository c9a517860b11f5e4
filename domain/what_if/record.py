"""A spawn, or a message, as it was recorded: what it was decided from, and what came of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.run.events import (
    AgentOverridden,
    ContinuationPlanned,
    MessageReceived,
    RunAnnounced,
    RunStarted,
    ScriptsResolved,
    SessionCreated,
    SpawnRefused,
    SpawnRequested,
)
from domain.run.evolve import initial_run
from domain.run.plan_facts import PlanFacts
from domain.run.state import Run
from domain.states import Occurrence
from domain.values.record import Fact

_MEMBERS: Mapping[type, str] = {
    ScriptsResolved: "scripts",
    AgentOverridden: "overridden",
    SessionCreated: "created",
    ContinuationPlanned: "created",
    SpawnRefused: "refused",
    RunStarted: "started",
    RunAnnounced: "announced",
}
DECIDED_BY = tuple(one for one in _MEMBERS if one is not RunStarted)
"""The events of a run, behind its request, that say how it was decided. Its prompt is in
`RunStarted`."""


class RecordedDecision(Fact):
    """`run` is the run as its request made it. Of a message `before` is the run that it continues,
    as it was then."""

    run: Run
    request: SpawnRequested | MessageReceived
    config_revision: int
    before: Run | None = None
    scripts: ScriptsResolved | None = None
    overridden: AgentOverridden | None = None
    created: SessionCreated | ContinuationPlanned | None = None
    refused: SpawnRefused | None = None
    started: RunStarted | None = None
    announced: RunAnnounced | None = None
    announced_position: int = 0

    @property
    def agent_id(self) -> str | None:
        """The agent that was to run."""
        if self.overridden is not None:
            return self.overridden.to_agent_id
        return self.run.requested_agent_id

    @property
    def facts(self) -> PlanFacts | None:
        """What its plan was decided from, as far as it came."""
        by = self.created or self.refused
        return by.facts if by is not None else None

    @property
    def is_decided(self) -> bool:
        """Whether its caller was answered."""
        return self.created is not None or self.refused is not None


def recorded_decision(
    events: Sequence[Occurrence], *, before: Run | None = None
) -> RecordedDecision:
    """Return the decision that these events of one run tell of, its request first."""
    request = events[0].event if events else None
    if not isinstance(request, SpawnRequested | MessageReceived):
        raise ValueError("a decision is read from its request on")
    found: dict[str, Any] = {}
    for one in events:
        name = _MEMBERS.get(type(one.event))
        if name is not None:
            found[name] = one.event
        if name == "announced":
            found["announced_position"] = one.stamp.position
    return RecordedDecision(
        run=initial_run(request, events[0].stamp),
        request=request,
        config_revision=request.config_revision,
        before=before,
        **found,
    )
