"""A spawn, or a message, as it was recorded: what it was decided from, and what came of it."""

from collections.abc import Iterable
from dataclasses import dataclass

from domain.event_types import AnyEvent
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
from domain.values.record import Stamp

DECIDED_IN = (
    SpawnRequested,
    MessageReceived,
    ScriptsResolved,
    AgentOverridden,
    SessionCreated,
    ContinuationPlanned,
    SpawnRefused,
    RunAnnounced,
)
"""The events of a run that say how it was decided; with its prompt, `RunStarted` too."""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """An event of a run, where it stands, and the revision of the configuration it was recorded
    under."""

    stamp: Stamp
    config_revision: int
    event: AnyEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDecision:
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
    steps: Iterable[RecordedStep], *, before: Run | None = None
) -> RecordedDecision:
    """The decision that these events of one run tell of, its request first."""
    found: dict[str, object] = {}
    run, request, revision = None, None, 0
    for one in steps:
        match one.event:
            case SpawnRequested() | MessageReceived() as event:
                run, request, revision = initial_run(event, one.stamp), event, event.config_revision
            case ScriptsResolved() as event:
                found["scripts"] = event
            case AgentOverridden() as event:
                found["overridden"] = event
            case SessionCreated() | ContinuationPlanned() as event:
                found["created"] = event
            case SpawnRefused() as event:
                found["refused"] = event
            case RunStarted() as event:
                found["started"] = event
            case RunAnnounced() as event:
                found["announced"] = event
                found["announced_position"] = one.stamp.position
            case _:
                pass
    if run is None or request is None:
        raise ValueError("a decision is read from its request on")
    return RecordedDecision(
        run=run,
        request=request,
        config_revision=revision,
        before=before,
        **found,  # type: ignore[arg-type]
    )
