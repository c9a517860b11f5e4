"""What can happen to a step of a preparation."""

from domain.content import ContentRef
from domain.run.facts import ForkFacts
from domain.run.steps import StepName, StepOutcome, UndoOutcome
from domain.values.record import Event


class StepBegun(Event):
    """Something is about to be made for the child, for so many seconds at most.

    Recorded before anything is made, and again when another holder begins the step once more,
    with the same `key`. `root` is the real path of a folder, `relative` what is made below it.
    """

    step: StepName
    key: str
    limit_seconds: float
    root: str | None = None
    relative: str | None = None


class StepTaken(Event):
    """It is made; `made` is False when it was there already or there was nothing to make.

    `manifest`, `file_count` and `total_bytes` are those of files that were written. `can_undo` is
    whether who made it has said how to unmake it, `token` what it gave to be told then. `origin`
    is where the child's results go by the word of who bound its thread, as JSON; `fork` what was
    taken over of the requester's conversation.
    """

    step: StepName
    made: bool = True
    outcome: StepOutcome
    manifest: ContentRef | None = None
    file_count: int | None = None
    total_bytes: int | None = None
    can_undo: bool = False
    origin: ContentRef | None = None
    fork: ForkFacts | None = None
    token: ContentRef | None = None


class StepUndone(Event):
    """Nothing of the step is left, or nothing that is the run's: `left_in_place`; or there is
    nobody any more who could be asked to undo it: `no_hook`."""

    step: StepName
    how: UndoOutcome
    attempts: int


class StepUndoFailed(Event):
    """The step could not be undone; it is tried again, for as long as it takes.

    `error` is None when the texts of the session were erased by then.
    """

    step: StepName
    attempt: int
    error: ContentRef | None = None
    retry_after_seconds: int


StepEvent = StepBegun | StepTaken | StepUndone | StepUndoFailed
