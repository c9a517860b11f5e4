# Written by `make client` from `core/async_wait.py`.
"""Wait for a run, through restarts of the server."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from spawnlog.core.errors import (
    NotFoundError,
    Problem,
    RunFailedError,
    ServerUnreachableError,
    WaitTimeoutError,
)
from spawnlog.core.pauses import sleep
from spawnlog.core.request import QueryValue, Request, path_of, read_request
from spawnlog.core.retries import NO_RETRIES, PASSING_STATUSES
from spawnlog.core.stages import (
    ABSENT_SECONDS_MAX,
    LATE_SECONDS_MAX,
    MESSAGE_POLL_SECONDS,
    PAUSE_SECONDS_MAX,
    PAUSE_SECONDS_MIN,
    POLL_SECONDS,
    WaitUntil,
    has_reached,
)

if TYPE_CHECKING:
    from spawnlog.core.answer import ServerAnswer
    from spawnlog.core.sender import Sender

T = TypeVar("T")
RUN_MODELS = ("RunView", "RunMetadataView")


def wait_for_run(
    client: Sender,
    run_id: str,
    until: WaitUntil,
    seconds: float | None,
    *,
    is_plain: bool = False,
) -> Any:
    """Return the run when it has reached `until`.

    Args:
        client: Sends the requests.
        run_id: Id of the run.
        until: Stage to wait for. A refused run reaches every stage.
        seconds: Timeout in seconds; None for no limit.
        is_plain: Return the JSON object instead of the model.

    Raises:
        WaitTimeoutError: The run has not reached the stage in time. It continues.
        ServerUnreachableError: The server is away for more than a minute.
    """
    end = None if seconds is None else time.monotonic() + seconds

    def left() -> float:
        return (
            POLL_SECONDS if end is None else max(min(POLL_SECONDS, end - time.monotonic()), 0.001)
        )

    def asking() -> Request[Any]:
        return _get_run(run_id, RUN_MODELS if not is_plain else (), wait=left(), until=until)

    while True:
        sent, waits = time.monotonic(), left()
        run, now = (_outlasting(client, asking, end)).value, time.monotonic()
        stage = run.get("stage") if is_plain else run.stage
        if has_reached(stage, until):
            return run
        if end is not None and now >= end:
            took = f"{round(seconds or 0, 3):g} s"
            raise WaitTimeoutError(
                f"run {run_id} is {stage}, not {until}, after {took}; it continues", run
            )
        if now - sent < min(waits, 1.0):
            # The server answered without waiting: avoid a busy loop.
            sleep(PAUSE_SECONDS_MIN)


def wait_for_entries(client: Sender, run_id: str, after: int, *, tools: bool = False) -> Any:
    """Return a page of the transcript after entry `after`, as a JSON object.

    If there are no entries yet, wait up to half a minute for them.

    Raises:
        ServerUnreachableError: The server is away for more than a minute.
    """
    query: dict[str, QueryValue] = {"after": after, "tools": tools or None, "wait": POLL_SECONDS}
    request = read_request("getRunTranscript", path_of("runs", run_id, "transcript"), query)
    began = time.monotonic()
    page = (_outlasting(client, lambda: request, None)).value
    is_silent = not page.get("items") and not page.get("complete")
    if is_silent and time.monotonic() - began < 1.0:
        # The server answered without waiting: avoid a busy loop.
        sleep(PAUSE_SECONDS_MIN)
    return page


def wait_for_message(client: Sender, run_id: str, session_key: str, seconds: float | None) -> None:
    """Wait until a queued message of a session has become a run.

    Args:
        client: Sends the requests.
        run_id: Id of the run that the message becomes.
        session_key: Session with the queue.
        seconds: Timeout in seconds; None for no limit.

    Raises:
        RunFailedError: The message was dropped.
        WaitTimeoutError: The message is still in the queue.
        ServerUnreachableError: The server is away for more than a minute.
    """
    end = None if seconds is None else time.monotonic() + seconds
    pause_seconds = MESSAGE_POLL_SECONDS
    session = read_request("getSession", path_of("sessions", session_key), {})
    run = _get_run(run_id, ())
    while True:
        # Read the queue first: if the message has left it by then, it is a run, or was dropped.
        queue = (_outlasting(client, lambda: session, end)).value.get("queue")
        is_queued = any(message.get("runId") == run_id for message in queue or ())
        try:
            _outlasting(client, lambda: run, end)
        except NotFoundError:
            if not is_queued and queue is not None:
                raise RunFailedError(
                    "the message was dropped: its session was stopped or closed while it waited",
                    None,
                ) from None
        else:
            return
        if end is not None and time.monotonic() >= end:
            raise WaitTimeoutError(
                f"the message of run {run_id} is still queued; it remains in the queue", None
            )
        sleep(pause_seconds)
        pause_seconds = min(pause_seconds * 1.5, PAUSE_SECONDS_MAX)


def _get_run(run_id: str, answers: tuple[str, ...], **query: QueryValue) -> Request[Any]:
    return read_request("getRun", path_of("runs", run_id), query, *answers)


def _outlasting(
    client: Sender, asking: Callable[[], Request[T]], end: float | None
) -> ServerAnswer[T]:
    """Return the answer of a server that may be away for a minute.

    `asking` builds a new request for each attempt, so that none waits for longer than is left.
    """
    contact, pause_seconds = time.monotonic(), PAUSE_SECONDS_MIN
    while True:
        request = asking()
        if end is not None:
            left = max(end - time.monotonic() - request.wait_seconds, 0.0)
            request = replace(request, answer_seconds_max=left + LATE_SECONDS_MAX)
        try:
            return client.answer(request, NO_RETRIES)
        except (ServerUnreachableError, Problem) as lost:
            retry_after = 0.0
            if isinstance(lost, Problem):
                if lost.status not in PASSING_STATUSES:
                    raise
                retry_after = lost.retry_after or 0.0
            now = time.monotonic()
            if now - contact > ABSENT_SECONDS_MAX or (end is not None and now >= end):
                raise
        pause = max(pause_seconds, retry_after)
        sleep(pause if end is None else min(pause, max(end - now, 0.001)))
        pause_seconds = min(pause_seconds * 2, PAUSE_SECONDS_MAX)
