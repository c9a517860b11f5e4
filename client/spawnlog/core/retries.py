"""How often, and for how long, a request is repeated."""

import random
import time
from dataclasses import dataclass
from typing import Any

from spawnlog.core.errors import UNREADY_STATUSES, InvalidSetting, Problem, ServerUnreachable
from spawnlog.core.request import Request

PASSING_STATUSES = UNREADY_STATUSES | {429}
PASSING_CODES = frozenset({"idempotency_in_flight"})


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """A request is sent at most `attempts_max` times, and no attempt begins later than
    `seconds_max` after the first. The first pause is about `pause_seconds`, each later one twice as
    long."""

    attempts_max: int = 4
    seconds_max: float = 30.0
    pause_seconds: float = 0.25

    def __post_init__(self) -> None:
        if self.attempts_max < 1 or self.seconds_max < 0 or self.pause_seconds < 0:
            raise InvalidSetting("retries need at least one attempt, and times that are not past")


NO_RETRIES = RetryLimits(attempts_max=1)


class Attempts:
    """Attempts at one request, within limits. It sends nothing and does not sleep."""

    def __init__(self, request: Request[Any], limits: RetryLimits) -> None:
        self._request, self._limits = request, limits
        self._began = time.monotonic()
        self._count = 0

    def pause_seconds(self, failure: ServerUnreachable | Problem) -> float:
        """Return how long to wait before the next attempt.

        An attempt is repeated if the failure may pass (no connection, a server that is not ready,
        the same request under way) and a second request does no more than the first.

        Raises:
            ServerUnreachable, Problem: `failure`, if there is no next attempt.
        """
        asked = None
        if isinstance(failure, Problem):
            if failure.status not in PASSING_STATUSES and failure.code not in PASSING_CODES:
                raise failure
            asked = failure.retry_after
        pause: float = self._limits.pause_seconds * 2**self._count
        # Many clients of a server that was away do not come back in one moment.
        pause = max(asked or 0.0, pause * random.uniform(0.5, 1.0))  # noqa: S311
        self._count += 1
        is_late = time.monotonic() - self._began + pause > self._limits.seconds_max
        if not self._request.again or self._count >= self._limits.attempts_max or is_late:
            raise failure
        return pause
