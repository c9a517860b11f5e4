"""How often and how long a request is sent again: an errand that a client of either kind does.

An errand is a generator: it yields what is to be done (a request to send, a pause), is given
what came of it, and returns its result. It never sends and never sleeps, so it is the same for a
client that blocks and for one that awaits.
"""

import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from spawnlog.core.answer import Reply, ServerAnswer, read_answer
from spawnlog.core.errors import UNREADY_STATUSES, InvalidSetting, Problem, ServerUnreachable
from spawnlog.core.request import Request

T = TypeVar("T")

PASSING_STATUSES = UNREADY_STATUSES | {429}
PASSING_CODES = frozenset({"idempotency_in_flight"})


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so long."""

    seconds: float


Step = Request[Any] | Pause
Errand = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """A request is sent at most `attempts_max` times, and none begins behind `seconds_max` since
    the first. The first pause is about `pause_seconds`, each later one twice as long."""

    attempts_max: int = 4
    seconds_max: float = 30.0
    pause_seconds: float = 0.25

    def __post_init__(self) -> None:
        if self.attempts_max < 1 or self.seconds_max < 0 or self.pause_seconds < 0:
            raise InvalidSetting("retries need at least one attempt, and times that are not past")


NO_RETRIES = RetryLimits(attempts_max=1)


def exchange(request: Request[T], limits: RetryLimits) -> Errand[ServerAnswer[T]]:
    """The answer to a request, tried again within the limits."""
    return attempts(request, limits, partial(read_answer, request))


def attempts(request: Request[Any], limits: RetryLimits, read: Callable[[Reply], T]) -> Errand[T]:
    """What `read` makes of the reply to a request. What may pass (no connection, a server that is
    not ready, the same request under way) is tried again, if a second request does nothing more
    than the first."""
    began = time.monotonic()
    attempt = 1
    while True:
        try:
            reply: Reply = yield request
            return read(reply)
        except ServerUnreachable as lost:
            failure: ServerUnreachable | Problem = lost
            asked: float | None = None
        except Problem as problem:
            if problem.status not in PASSING_STATUSES and problem.code not in PASSING_CODES:
                raise
            failure, asked = problem, problem.retry_after
        pause = limits.pause_seconds * 2 ** (attempt - 1)
        # Many clients of a server that was away do not come back in one moment.
        pause = max(asked or 0.0, pause * random.uniform(0.5, 1.0))  # noqa: S311
        late = time.monotonic() - began + pause > limits.seconds_max
        if not request.again or attempt >= limits.attempts_max or late:
            raise failure
        attempt += 1
        yield Pause(pause)
