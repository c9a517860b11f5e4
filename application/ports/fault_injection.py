"""Where a test may end the process: right before and right after something is done outside the
log."""

from collections.abc import Callable
from typing import Literal

FaultPoint = Callable[[Literal["before", "after"], str], None]
"""Called with the moment and the name of what is done, such as `step:attachments`."""
