"""Recorded decision on a spawn or a message: its inputs and its result."""

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
DECIDED_BY = tuple(event_type for event_type in _MEMBERS if event_type is not RunStarted)
"""Events of a run after its request that record the decision. Its prompt is in `RunStarted`."""


class RecordedDecision(Fact):
    """Recorded decision, collected from the events of one run.

    Attributes:
        run: The run in the state right after its request.
        before: For a message, the run that it continues, in its state at that time.
    """

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
        """Return the agent that was to run."""
        if self.overridden is not None:
            return self.overridden.to_agent_id
        return self.run.requested_agent_id

    @property
    def facts(self) -> PlanFacts | None:
        """Return the planning facts, if the decision got that far."""
        by = self.created or self.refused
        return by.facts if by is not None else None

    @property
    def is_decided(self) -> bool:
        """Return True if the child was created or the request refused."""
        return self.created is not None or self.refused is not None


def recorded_decision(
    events: Sequence[Occurrence], *, before: Run | None = None
) -> RecordedDecision:
    """Return the decision recorded by the events of one run, of which the first is its request.

    Raises:
        ValueError: The first event is not a request.
    """
    request = events[0].event if events else None
    if not isinstance(request, SpawnRequested | MessageReceived):
        raise ValueError("a decision is read from its request on")
    found: dict[str, Any] = {}
    for occurrence in events:
        name = _MEMBERS.get(type(occurrence.event))
        if name is not None:
            found[name] = occurrence.event
        if name == "announced":
            found["announced_position"] = occurrence.stamp.position
    return RecordedDecision(
        run=initial_run(request, events[0].stamp),
        request=request,
        config_revision=request.config_revision,
        before=before,
        **found,
    )
