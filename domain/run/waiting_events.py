"""What happens to a run that waits for others before it may be queued."""

from uuid import UUID

from domain.run.facts import RunOutcome
from domain.values.record import Event


class RunWaits(Event):
    """The run is prepared and waits until these are done; nobody holds it meanwhile."""

    run_ids: tuple[UUID, ...]


class DependencyMet(Event):
    """A run that was waited for is over, with all below it, as it was required to be."""

    run_id: UUID
    outcome: RunOutcome


WaitingEvent = RunWaits | DependencyMet
