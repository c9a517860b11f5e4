"""How far a rebuild is, told by the log to whoever shows it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

RebuildStep = Literal["events", "indexes", "comparison", "exchange"]


@dataclass(frozen=True, slots=True)
class RebuildProgress:
    """`done` of `total` events folded, or indexes made; `began` is how many of them were done
    before this process began, by a rebuild that was killed."""

    step: RebuildStep
    done: int
    total: int
    began: int = 0


OnProgress = Callable[[RebuildProgress], None]


def ignore_rebuild_progress(_: RebuildProgress) -> None:
    """Nobody wants to know."""
