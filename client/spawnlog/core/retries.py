"""Retry limits and backoff of a request."""

import random
import time
from dataclasses import dataclass
from typing import Any

from spawnlog.core.errors import (
    UNREADY_STATUSES,
    InvalidSettingError,
    Problem,
    ServerUnreachableError,
)
from spawnlog.core.request import Request

PASSING_STATUSES = UNREADY_STATUSES | {429}
PASSING_CODES = frozenset({"idempotency_in_flight"})


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """Limits of the retries of one request.

    Attributes:
        attempts_max: Maximum number of attempts, including the first.
        seconds_max: No attempt starts later than this many seconds after the first.
        pause_seconds: Initial backoff in seconds. It doubles with each retry, with random jitter.

    Raises:
        InvalidSettingError: `attempts_max` is less than 1, or a time is negative.
    """

    attempts_max: int = 4
    seconds_max: float = 30.0
    pause_seconds: float = 0.25

    def __post_init__(self) -> None:
        if self.attempts_max < 1 or self.seconds_max < 0 or self.pause_seconds < 0:
            raise InvalidSettingError("retries need at least one attempt, and no negative times")


NO_RETRIES = RetryLimits(attempts_max=1)


class Attempts:
    """Retry state of one request. It neither sends nor sleeps."""

    def __init__(self, request: Request[Any], limits: RetryLimits) -> None:
        self._request, self._limits = request, limits
        self._began = time.monotonic()
        self._count = 0

    def pause_seconds(self, failure: ServerUnreachableError | Problem) -> float:
        """Return the seconds to wait before the next attempt.

        A request is retried if the failure may pass (no connection, server not ready, same request
        in flight) and if the request is repeatable. A `Retry-After` of the server is a minimum.

        Args:
            failure: Error of the last attempt.

        Raises:
            ServerUnreachable, Problem: `failure`, if there is no next attempt.
        """
        retry_after = None
        if isinstance(failure, Problem):
            if failure.status not in PASSING_STATUSES and failure.code not in PASSING_CODES:
                raise failure
            retry_after = failure.retry_after
        pause: float = self._limits.pause_seconds * 2**self._count
        # Jitter: after a restart of the server, its clients must not all retry at once.
        pause = max(retry_after or 0.0, pause * random.uniform(0.5, 1.0))  # noqa: S311
        self._count += 1
        is_late = time.monotonic() - self._began + pause > self._limits.seconds_max
        if not self._request.again or self._count >= self._limits.attempts_max or is_late:
            raise failure
        return pause
