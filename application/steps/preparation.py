"""A preparation that is under way, as each decision about it needs it."""

from collections.abc import Callable
from dataclasses import dataclass

from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from domain.run.state import Run

CallerPresence = Callable[[], bool]


def no_caller() -> bool:
    """For preparations that go on after a crash: no caller waits for them."""
    return False


@dataclass(frozen=True, slots=True)
class Preparation:
    """The run as it is on record, and all that the next decision about it needs.

    `workspace` is the folder that was asked for, `keeper` takes the texts of the next append.
    """

    run: Run
    task: str
    workspace: str | None
    pinned: PinnedConfiguration
    keeper: TextStore
    caller_is_there: CallerPresence
