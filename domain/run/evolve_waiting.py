"""How a run changes that waits for others. Judges nothing."""

from domain.run.state import Run
from domain.run.waiting_events import DependencyMet, WaitingEvent


def waiting_changes(run: Run, event: WaitingEvent) -> dict[str, object]:
    """What is true of the run after it."""
    if isinstance(event, DependencyMet):
        left = tuple(one for one in run.waits_for or () if one != event.run_id)
        return {"waits_for": left or None}
    # Whoever prepared it is done with it, and nobody else has anything to do for it yet.
    return {"holder": None, "waits_for": event.run_ids}
