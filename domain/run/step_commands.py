"""What may be asked of the steps of a preparation."""

from dataclasses import dataclass

from domain.content import ContentRef
from domain.run.facts import ForkFacts
from domain.run.steps import StepName, StepOutcome, UndoOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginStep:
    """Something is about to be made, within `limit_seconds` from now on; below `root`, if it is
    files. Whoever goes on after a crash begins it once more, at the place on record."""

    epoch: int
    step: StepName
    limit_seconds: float
    root: str | None = None
    relative: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeStep:
    """It is made."""

    epoch: int
    step: StepName
    outcome: StepOutcome
    made: bool = True
    manifest: ContentRef | None = None
    file_count: int | None = None
    total_bytes: int | None = None
    can_undo: bool = False
    origin: ContentRef | None = None
    fork: ForkFacts | None = None
    token: ContentRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmUndo:
    """It is unmade, by whoever has come to it: no claim is needed."""

    step: StepName
    how: UndoOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteUndoFailure:
    """It could not be unmade. `attempt` counts from 1; one that is on record is not noted again.
    `error` is None when nothing can be kept of it any more."""

    step: StepName
    attempt: int
    error: ContentRef | None


StepCommand = BeginStep | TakeStep | ConfirmUndo | NoteUndoFailure
