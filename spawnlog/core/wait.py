"""Waiting for a run: errands that outlive a server that is away for a moment."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from spawnlog.core.errors import (
    NotFoundProblem,
    Problem,
    ServerUnreachable,
    UnsuccessfulRun,
    WaitTimeout,
)
from spawnlog.core.request import Request
from spawnlog.core.retries import NO_RETRIES, PASSING_STATUSES, Errand, Pause, exchange
from spawnlog.operations.runs import get_run, get_run_transcript
from spawnlog.operations.sessions import get_session

WaitUntil = Literal["started", "ended", "announced", "archived"]
POLL_SECONDS = 30.0
MESSAGE_POLL_SECONDS = 0.5
PAUSE_SECONDS_MIN = 0.25
PAUSE_SECONDS_MAX = 5.0
LATE_SECONDS_MAX = 1.0
"""An answer is waited for so much longer than a wait was to take."""

ABSENT_SECONDS_MAX = 60.0
"""How long a server may be away, as in a restart, before the wait is given up."""

_REACHED: dict[WaitUntil, frozenset[str]] = {
    "started": frozenset({"started", "ended", "announced", "archived", "refused"}),
    "ended": frozenset({"ended", "announced", "archived", "refused"}),
    "announced": frozenset({"announced", "archived", "refused"}),
    "archived": frozenset({"archived", "refused"}),
}


def has_reached(stage: object, until: WaitUntil) -> bool:
    """Whether a run at this stage has come that far, or never will because it was refused."""
    return stage in _REACHED[until]


def wait_for_run(
    run_id: str,
    until: WaitUntil,
    seconds: float | None,
    *,
    is_plain: bool = False,
) -> Errand[Any]:
    """The run once it has come to `until`; `is_plain` as the JSON object that it is. WaitTimeout
    when it has not after `seconds` (None: no end); ServerUnreachable when the server stays away
    for a minute."""
    end = None if seconds is None else time.monotonic() + seconds

    def left() -> float:
        return (
            POLL_SECONDS if end is None else max(min(POLL_SECONDS, end - time.monotonic()), 0.001)
        )

    def asking() -> Request[Any]:
        request: Request[Any] = get_run(run_id, wait=left(), until=until)
        return replace(request, answers=()) if is_plain else request

    while True:
        asked, waits = time.monotonic(), left()
        answer = yield from _outlasting(asking, end)
        run, now = answer.value, time.monotonic()
        stage = run.get("stage") if is_plain else run.stage
        if has_reached(stage, until):
            return run
        if end is not None and now >= end:
            raise WaitTimeout(
                f"run {run_id} is {stage}, and not {until}, after {seconds:g} s; it goes on", run
            )
        if now - asked < min(waits, 1.0):
            # A server that answers at once does not wait; it must not be asked in a hot loop.
            yield Pause(PAUSE_SECONDS_MIN)


def _outlasting(asking: Callable[[], Request[Any]], end: float | None) -> Errand[Any]:
    """The answer to what is asked, by a server that may be away for a minute. Each attempt is asked
    anew, so that none waits for longer than is left."""
    contact, pause_seconds = time.monotonic(), PAUSE_SECONDS_MIN
    while True:
        request = asking()
        if end is not None:
            left = max(end - time.monotonic() - request.wait_seconds, 0.0)
            request = replace(request, answer_seconds_max=left + LATE_SECONDS_MAX)
        try:
            return (yield from exchange(request, NO_RETRIES))
        except (ServerUnreachable, Problem) as lost:
            asked = 0.0
            if isinstance(lost, Problem):
                if lost.status not in PASSING_STATUSES:
                    raise
                asked = lost.retry_after or 0.0
            now = time.monotonic()
            if now - contact > ABSENT_SECONDS_MAX or (end is not None and now >= end):
                raise
        pause = max(pause_seconds, asked)
        yield Pause(pause if end is None else min(pause, max(end - now, 0.001)))
        pause_seconds = min(pause_seconds * 2, PAUSE_SECONDS_MAX)


def wait_for_entries(run_id: str, after: int, *, tools: bool = False) -> Errand[Any]:
    """Return a page of the transcript behind entry `after`, as the JSON object that it is.

    It has the entries that are there, else those that come within half a minute. ServerUnreachable
    when the server stays away for a minute.
    """
    request: Request[Any] = replace(
        get_run_transcript(run_id, after=after, tools=tools or None, wait=POLL_SECONDS), answers=()
    )
    asked = time.monotonic()
    answer = yield from _outlasting(partial(_same, request), None)
    page = answer.value
    is_silent = not page.get("items") and not page.get("complete")
    if is_silent and time.monotonic() - asked < 1.0:
        # A server that answers at once does not wait; it must not be asked in a hot loop.
        yield Pause(PAUSE_SECONDS_MIN)
    return page


def wait_for_message(run_id: str, session_key: str, seconds: float | None) -> Errand[None]:
    """Until a message that waits in a session has become its run. UnsuccessfulRun when it was
    dropped."""
    end = None if seconds is None else time.monotonic() + seconds
    pause_seconds = MESSAGE_POLL_SECONDS
    while True:
        # In this order: a message that has left the queue is a run by then, or nothing.
        plain: Request[Any] = replace(get_session(session_key), answers=())
        answer = yield from _outlasting(partial(_same, plain), end)
        queue = answer.value.get("queue")
        is_queued = any(one.get("runId") == run_id for one in queue or ())
        try:
            run: Request[Any] = replace(get_run(run_id), answers=())
            yield from _outlasting(partial(_same, run), end)
        except NotFoundProblem:
            if not is_queued and queue is not None:
                raise UnsuccessfulRun(
                    "the message was dropped: its session was stopped or closed while it waited",
                    None,
                ) from None
        else:
            return
        if end is not None and time.monotonic() >= end:
            raise WaitTimeout(f"the message of run {run_id} waits still; it goes on", None)
        yield Pause(pause_seconds)
        pause_seconds = min(pause_seconds * 1.5, PAUSE_SECONDS_MAX)


def _same(request: Request[Any]) -> Request[Any]:
    return request


def result_of(run: Any) -> str | None:
    """The result of a run that is over. UnsuccessfulRun for any end but success."""
    if run.stage != "refused" and run.outcome == "success":
        return getattr(run, "result_text", None)
    reason = f": {run.error}" if run.error else ""
    raise UnsuccessfulRun(f"run {run.run_id} ended as {run.status}{reason}", run)


def goes_on_in(run: Any) -> str | None:
    """The run that took the place of this one, which yielded or was steered."""
    if run.continued_by is not None and run.announcement.state == "skipped":
        return str(run.continued_by)
    return None
