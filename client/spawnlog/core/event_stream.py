"""State of the live event stream: position, reconnects and backoff."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from spawnlog.core.answer import number_in, read_value
from spawnlog.core.errors import (
    UNREADY_STATUSES,
    Problem,
    ServerUnreachableError,
    SpawnlogError,
    UnexpectedResponseError,
)
from spawnlog.core.request import Request, path_of, sent_query

if TYPE_CHECKING:
    from spawnlog.models import EventView

T = TypeVar("T")

CHECKPOINT = "checkpoint"
ABSENT_SECONDS_MAX = 120.0
"""Maximum time in seconds that the server may be away before the stream gives up."""

PAUSE_SECONDS_MIN = 0.25
PAUSE_SECONDS_MAX = 5.0


def event_stream_request(
    *,
    after: int | None = None,
    types: Sequence[str] = (),
    run_id: str | None = None,
    tree: str | None = None,
    actor: str | None = None,
) -> "Request[EventView]":
    """Return the request for the log as a stream of events after `after`; from now on if it is
    None."""
    return Request(
        operation="listEvents",
        method="GET",
        path=path_of("events"),
        query=sent_query(
            {"after": after, "types": types, "runId": run_id, "tree": tree, "actor": actor}
        ),
        headers={"Accept": "text/event-stream"},
        answers=("EventView",),
        again=True,
    )


class EventStream(Generic[T]):
    """One event stream over any number of connections, without I/O.

    It parses messages, builds the request of the next connection and computes the backoff. The
    caller sends and sleeps.

    Attributes:
        position: Every event up to this position was returned or filtered out. Pass it as `after`
            to continue in another program. None until it is known.
    """

    def __init__(
        self,
        request: Request[T],
        *,
        pause_seconds: float = PAUSE_SECONDS_MIN,
        absent_seconds_max: float = ABSENT_SECONDS_MAX,
        on_lost: Callable[[SpawnlogError], None] | None = None,
    ) -> None:
        self._request = request
        self._on_lost = on_lost
        self._pause_seconds = pause_seconds
        self._absent_seconds_max = absent_seconds_max
        after = request.query.get("after")
        self.position: int | None = int(after) if isinstance(after, str) else None
        self._resumes = False
        self._connected = False
        self._opened: float | None = None
        self._tries = 0
        self._absent_since = 0.0

    def request(self) -> Request[Any]:
        """Return the request of the next connection."""
        self._opened = None
        if not self._resumes:
            return self._request
        headers = {**self._request.headers, "Last-Event-ID": str(self.position)}
        return replace(self._request, headers=headers)

    def opened(self, headers: Mapping[str, str]) -> None:
        """Record that the server began to answer; read the initial position from the headers."""
        self._connected, self._opened = True, time.monotonic()
        if self.position is None:
            self.position = number_in(headers, "spawnlog-position")
        self._resumes = self.position is not None

    def take(self, name: str, id: str, data: str) -> T | None:
        """Return the event of a message.

        Args:
            name: Type of the message; `checkpoint` carries a position only.
            id: Id of the message: the log position.
            data: Body of the message.

        Returns:
            The event; None if the message has no event, or one that was already returned.

        Raises:
            UnexpectedResponseError: The message is not from a spawnlog server.
        """
        if not data:
            return None
        self._tries = 0
        position = int(id) if id.isascii() and id.isdigit() and len(id) < 20 else None
        if position is None:
            raise UnexpectedResponseError(
                "the stream is not from a spawnlog server: check the address"
            )
        fresh = self.position is None or position > self.position
        event = self._event(data) if fresh and name != CHECKPOINT else None
        if fresh:
            self.position, self._resumes = position, True
        return event

    def _event(self, data: str) -> Any:
        if not self._request.answers:
            try:
                return dict(json.loads(data))
            except (ValueError, TypeError):
                raise UnexpectedResponseError(
                    "the stream is not from a spawnlog server: check the address"
                ) from None
        return read_value(self._request.answers, data.encode())

    def pause_seconds(self, failure: SpawnlogError) -> float:
        """Return the seconds to wait before the next connection.

        Args:
            failure: Error that ended the last connection.

        Raises:
            SpawnlogError: `failure`, if it is permanent, if the first connection failed, or if the
                server is away for too long.
        """
        if not _passes(failure):
            raise failure
        now = time.monotonic()
        if self._opened is not None and now - self._opened > PAUSE_SECONDS_MAX:
            self._tries = 0  # an idle connection counts as a success
        if self._tries == 0:
            self._absent_since = now
        if not self._connected or now - self._absent_since > self._absent_seconds_max:
            raise failure
        seconds: float = min(self._pause_seconds * 2**self._tries, PAUSE_SECONDS_MAX)
        self._tries += 1
        if self._on_lost is not None:
            self._on_lost(failure)
        return seconds


def _passes(failure: SpawnlogError) -> bool:
    if isinstance(failure, Problem):
        return failure.status in UNREADY_STATUSES
    return isinstance(failure, ServerUnreachableError)
