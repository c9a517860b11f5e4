"""The server as commands use it: the public client, with its problems as failures of commands."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar

from infrastructure.inbound.command_line.display.failures import (
    CommandError,
    UnreachableError,
    failure_from_problem,
)
from infrastructure.inbound.command_line.display.output import JsonObject, Listing
from spawnlog.client import Client
from spawnlog.core.answer import ServerAnswer
from spawnlog.core.errors import Problem, ServerUnreachableError, SpawnlogError
from spawnlog.core.event_stream import PAUSE_SECONDS_MIN, EventStream
from spawnlog.core.location import ServerAddress
from spawnlog.core.request import (
    LinesRequest,
    PageRequest,
    Request,
    command_request,
    plain_request,
    sent_query,
)
from spawnlog.core.retries import NO_RETRIES
from spawnlog.family import FollowedEvents

Parameters = Mapping[str, str | int | Sequence[str] | None]
T = TypeVar("T")
PAGE_ITEMS_MAX = 500


class CommandClient:
    """Client of one server, used in a `with` statement.

    Answers are JSON objects, which commands print unchanged. Every method raises Unreachable if the
    server does not answer, and the failure of `failure_from_problem` if it answers with an error.
    """

    def __init__(self, server: ServerAddress) -> None:
        self.server = server
        # A person sees an error at once; only waiting and following retry.
        self.client = Client(address=server, retries=NO_RETRIES, agent="spawnlog-command-line")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.client.close()

    def get(
        self, path: str, parameters: Parameters | None = None, *, wait_seconds: float = 0
    ) -> ServerAnswer[JsonObject]:
        """Return the answer to a read. The server may take `wait_seconds` longer than usual."""
        request: Request[JsonObject] = Request(
            operation="",
            method="GET",
            path=path,
            query=sent_query(parameters or {}),
            wait_seconds=wait_seconds,
        )
        with failures_of_commands():
            return self.client.answer(request)

    def post(
        self, path: str, body: JsonObject, *, idempotency_key: str
    ) -> ServerAnswer[JsonObject]:
        """Return the answer to a write. With the key it is safe to repeat after a lost answer."""
        return self.write("POST", path, body, idempotency_key=idempotency_key)

    def write(
        self, method: str, path: str, body: JsonObject, *, idempotency_key: str | None
    ) -> ServerAnswer[JsonObject]:
        """Return the answer to a write, with a key if its operation accepts one."""
        request: Request[JsonObject] = (
            plain_request("", method, path, body=None if method == "DELETE" else body)
            if idempotency_key is None
            else command_request("", method, path, body, idempotency_key=idempotency_key)
        )
        with failures_of_commands():
            return self.client.answer(request)

    def items(
        self, path: str, parameters: Parameters, *, limit: int, page_items: int = PAGE_ITEMS_MAX
    ) -> Listing:
        """Return up to `limit` items, from as many pages as needed."""
        newest_first = parameters.get("before") is not None or parameters.get("order") == "desc"
        items: list[JsonObject] = []
        following: PageRequest[JsonObject, JsonObject] | None = PageRequest(
            operation="", method="GET", path=path, query=sent_query(parameters)
        )
        while following is not None:
            page_limit = str(min(page_items, limit - len(items)))
            request = replace(following, query={**following.query, "limit": page_limit})
            with failures_of_commands():
                page = self.client.answer(request)
                items += request.items(page.value)
                following = request.following(page.value, page.position)
            if len(items) >= limit:
                break
        return Listing(
            items[:limit],
            following is not None,
            page.position,
            next_after=None if newest_first else page.value.get("nextAfter"),
            next_before=page.value.get("nextBefore") if newest_first else None,
            next_cursor=page.value.get("nextCursor"),
        )

    def follow(
        self,
        path: str,
        parameters: Parameters,
        on_lost: Callable[[SpawnlogError], None],
        *,
        pause_seconds: float = PAUSE_SECONDS_MIN,
    ) -> Iterator[JsonObject]:
        """Yield events as they are recorded, without end.

        `on_lost` is called for each lost connection, before it is resumed.
        """
        request: Request[JsonObject] = Request(
            operation="",
            method="GET",
            path=path,
            query=sent_query(parameters),
            headers={"Accept": "text/event-stream"},
        )
        with failures_of_commands():
            feed = EventStream(request, pause_seconds=pause_seconds, on_lost=on_lost)
            yield from FollowedEvents(self.client, feed)

    def lines(self, path: str, body: JsonObject) -> Iterator[JsonObject]:
        """Yield the lines of JSON that answer a question, as they arrive."""
        request: LinesRequest[JsonObject] = LinesRequest(
            operation="",
            method="POST",
            path=path,
            content=json.dumps(body).encode("ascii"),
            headers={"Accept": "application/x-ndjson", "Content-Type": "application/json"},
        )
        with failures_of_commands():
            yield from self.client._lines(request)

    def perform(self, act: Callable[[Client], T]) -> T:
        """Return the result of `act`, with the client's errors as failures of commands."""
        with failures_of_commands():
            return act(self.client)


@contextmanager
def failures_of_commands() -> Iterator[None]:
    """Convert errors of the client to failures of commands."""
    try:
        yield
    except Problem as problem:
        raise failure_from_problem(problem.status, problem.members) from None
    except ServerUnreachableError as lost:
        raise UnreachableError(lost.message, is_sent=lost.is_sent) from None
    except SpawnlogError as failure:
        raise CommandError(failure.message) from None
