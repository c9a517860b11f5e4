"""Fault points: where a test may end the process, just before or after an action outside the
log."""

from collections.abc import Callable
from typing import Literal

FaultPoint = Callable[[Literal["before", "after"], str], None]
"""Called with the moment and the name of the action, such as `step:attachments`."""
