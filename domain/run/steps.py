"""The steps of a preparation: what is made for a child outside the log, and unmade from it."""

from datetime import datetime
from typing import Literal, get_args
from uuid import UUID

from domain.content import ContentRef
from domain.run.facts import ForkFacts
from domain.values.record import Fact

StepName = Literal["thread_binding", "context_fork", "workspace", "attachments", "context_engine"]

STEP_ORDER: tuple[StepName, ...] = get_args(StepName)
"""Steps are taken in this order and undone in the reverse."""

StepOutcome = Literal["made", "written", "nothing", "bound", "forked", "isolated", "prepared"]
UndoOutcome = Literal["undone", "nothing_there", "left_in_place", "no_hook"]


def step_key(run_id: UUID, name: StepName) -> str:
    """By this a receiver tells a repeat of the same step of the same run."""
    return f"{run_id}:{name}"


class StepState(Fact):
    """One step of one run. Times are UTC.

    `epoch` is the claim under which it was begun last, `limit_seconds` how long from `begun_at` on
    its maker may be at work. `root` is a folder by its real path and `relative` what is made below
    it. `made` is whether anything was; None until it is taken. `undo_at` is when it is to be
    undone, not before; None when it is not to be, or is already. `undo_failures` counts the
    attempts to undo it that failed. `token` is what its maker gave to be told when it is undone,
    `fork` what was taken over of the requester's conversation. `undone` is what came of undoing it,
    None until then.
    """

    name: StepName
    key: str
    phase: Literal["begun", "taken", "undone"] = "begun"
    epoch: int
    begun_at: datetime
    limit_seconds: float
    root: str | None = None
    relative: str | None = None
    made: bool | None = None
    can_undo: bool = False
    manifest: ContentRef | None = None
    file_count: int | None = None
    total_bytes: int | None = None
    fork: ForkFacts | None = None
    token: ContentRef | None = None
    undo_at: datetime | None = None
    undo_failures: int = 0
    undone: UndoOutcome | None = None
