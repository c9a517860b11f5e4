"""Interface of the steps of a preparation."""

from dataclasses import dataclass
from typing import Protocol

from domain.run.facts import ForkFacts, Plan, StepName, StepOutcome, StepState, UndoOutcome
from domain.run.state import Run
from domain.values.record import ContentRef
from domain.values.refusals import Refusal

STEPS_AT_ONCE_MAX = 4
"""Maximum number of file steps in progress per process.

A step's timeout starts when it is recorded, and more concurrent steps on a slow disk would only
delay each other.
"""


@dataclass(frozen=True, slots=True)
class StepPlace:
    """The place where a step acts.

    Attributes:
        root: Real path of a folder; None for a step without files.
        relative: Path below it.
        limit_seconds: Timeout, if it differs from the step's default.
    """

    root: str | None = None
    relative: str | None = None
    limit_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The result of a step.

    Attributes:
        made: False if nothing was created, because it existed.
        origin: Addresses for the child's results, to be stored.
        token: Token for the undo, to be stored.
    """

    outcome: StepOutcome
    made: bool = True
    manifest: ContentRef | None = None
    file_count: int | None = None
    total_bytes: int | None = None
    can_undo: bool = False
    origin: str | None = None
    fork: ForkFacts | None = None
    token: str | None = None


class StepRefusedError(Exception):
    """The step failed; its partial results are undone from the record.

    `is_nothing` is True if it is known that nothing was created.
    """

    def __init__(self, refusal: Refusal, *, is_nothing: bool = False) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal
        self.is_nothing = is_nothing


class UndoError(Exception):
    """The undo failed for now. The message is recorded."""


class StepMaker(Protocol):
    """A step of a preparation.

    Every method must be idempotent, because a process may die at any point.
    """

    name: StepName
    limit_seconds: float

    async def place(self, run: Run, plan: Plan, /) -> StepPlace | None:
        """Return where the step will act; None if there is nothing to do.

        Raises:
            StepRefusedError: If it cannot be done.
        """
        ...

    async def make(self, run: Run, state: StepState, /, *, is_resumed: bool) -> StepResult:
        """Do the step at the recorded place, within `limit_seconds`.

        `is_resumed` is True if an earlier attempt may have left something.

        Raises:
            StepRefusedError: If it fails.
        """
        ...

    async def undo(self, run: Run, state: StepState, /) -> UndoOutcome:
        """Undo the completed part of the step.

        Raises:
            UndoError: If it cannot be undone now.
        """
        ...
