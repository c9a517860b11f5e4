"""How a step of a preparation is made and unmade."""

from dataclasses import dataclass
from typing import Protocol

from domain.run.facts import ForkFacts, Plan, StepName, StepOutcome, StepState, UndoOutcome
from domain.run.state import Run
from domain.values.record import ContentRef
from domain.values.refusals import Refusal

STEPS_AT_ONCE_MAX = 4
"""So many are made at once by one process. More would only make each of them slower on a disk that
is slow, and the time of a step counts from when it is on record."""


@dataclass(frozen=True, slots=True)
class StepPlace:
    """Where something is about to be made: below a folder by its real path; None for a step that
    makes no files. `limit_seconds` is how long it may take where that is not the same for all."""

    root: str | None = None
    relative: str | None = None
    limit_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What was made; `made` is False when it was there already. `origin` and `token` are texts
    that are kept: where the child's results go, and what is told when it is undone."""

    outcome: StepOutcome
    made: bool = True
    manifest: ContentRef | None = None
    file_count: int | None = None
    total_bytes: int | None = None
    can_undo: bool = False
    origin: str | None = None
    fork: ForkFacts | None = None
    token: str | None = None


class StepRefused(Exception):
    """It cannot be made, and what was made of it is unmade from the record. `is_nothing` when it
    is known that nothing was."""

    def __init__(self, refusal: Refusal, *, is_nothing: bool = False) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal
        self.is_nothing = is_nothing


class UndoFailed(Exception):
    """It could not be unmade now. The text says why, for the record."""


class StepMaker(Protocol):
    """One step. What it does may be repeated: nobody knows how far a process came that died."""

    name: StepName
    limit_seconds: float

    async def place(self, run: Run, plan: Plan, /) -> StepPlace | None:
        """Where it will be made; None when there is nothing to make. Raises `StepRefused`."""
        ...

    async def make(self, run: Run, state: StepState, /, *, is_resumed: bool) -> StepResult:
        """Make it at the place on record, within `limit_seconds`. `is_resumed` is whether it was
        begun before, so that something of it may be there. Raises `StepRefused`."""
        ...

    async def undo(self, run: Run, state: StepState, /) -> UndoOutcome:
        """Unmake it, as far as it was made. Raises `UndoFailed`."""
        ...
