"""The hooks of a run: who outside is told of it, and how far that has come."""

from datetime import datetime
from typing import Literal, get_args
from uuid import UUID

from domain.run.hook_events import HookName
from domain.values.record import Fact

HOOK_ORDER: tuple[HookName, ...] = get_args(HookName)
"""Nobody is told of an end before the beginning."""


def hook_key(run_id: UUID, name: HookName) -> str:
    """By this a receiver tells a repeat of the same hook of the same run."""
    return f"{run_id}:{name}"


class HookState(Fact):
    """One hook of one run. `due_at` (UTC) is when it is to be told, not before; None when it is
    not to be, yet or any more; `passed_on` is one of which the run that continues this one tells.
    `attempts` counts those that were made."""

    name: HookName
    phase: Literal["waiting", "due", "told", "parked", "passed_on"] = "waiting"
    attempts: int = 0
    due_at: datetime | None = None
