"""Long-polling: a read that waits until something is so."""

import re
import time
from collections.abc import Mapping

from domain.run.state import Run
from infrastructure.inbound.http.doors import Doors
from infrastructure.inbound.http.problems import Problem

WAIT_SECONDS_MAX = 60.0
_WAIT = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(ms|s|m)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}

REACHED: Mapping[str, tuple[str, ...]] = {
    "started": ("started", "ended", "announced", "archived", "refused"),
    "ended": ("ended", "announced", "archived", "refused"),
    "announced": ("announced", "archived", "refused"),
    "archived": ("archived", "refused"),
}
"""The stages at which each `until` is reached; a refusal ends every wait."""


def wait_seconds(text: str | None) -> float:
    """`30s`, `500ms` or `1m` in seconds, 60 at most; 0 for none."""
    if text is None:
        return 0.0
    match = _WAIT.fullmatch(text)
    if match is None:
        raise Problem("invalid_request", "wait must be a time such as 30s, 500ms or 1m")
    return min(float(match.group(1)) * _SECONDS[match.group(2)], WAIT_SECONDS_MAX)


async def wait_until(doors: Doors, run: Run, until: str, seconds: float) -> None:
    """Return when the run has reached a stage, or the time is over."""
    deadline = time.monotonic() + seconds
    while run.stage not in REACHED[until]:
        left = deadline - time.monotonic()
        if left <= 0 or doors.closing():
            return
        position = doors.tail.position
        fresh = await doors.work.registry.run(run.run_id)
        assert fresh is not None
        if fresh.stage in REACHED[until]:
            return
        await doors.tail.changed(run.run_id, after=position, timeout_seconds=min(left, 5.0))
        run = await doors.work.run(run.run_id)
