"""Where a test may end the process: right before and right after something is done outside the
log."""

from collections.abc import Callable
from typing import Literal

Interruption = Callable[[Literal["before", "after"], str], None]
"""Called with the moment and the name of what is done, such as `step:attachments`."""


def uninterrupted(moment: Literal["before", "after"], name: str) -> None:
    """For a process that nobody tests."""
