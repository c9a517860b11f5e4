"""A thin client of the HTTP API: positions with every answer, problems as failures."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Self

import httpx2

from infrastructure.inbound.command_line.client.location import ServerAddress
from infrastructure.inbound.command_line.client.paging import (
    PAGE_ITEMS_MAX,
    items_of,
    next_page_parameters,
)
from infrastructure.inbound.command_line.display.failures import (
    CommandFailed,
    Unreachable,
    failure_from_problem,
)
from infrastructure.inbound.command_line.display.output import JsonObject, Listing

Parameters = Mapping[str, str | int | tuple[str, ...] | None]
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
ANSWER_BYTES_MAX = 128 * 1024 * 1024
EVENT_BYTES_MAX = 20 * 1024 * 1024
SILENCE_SECONDS_MAX = 45.0
"""A live stream says something every 15 seconds; three times that is a lost connection."""


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """What the server said; `position` is the place in the log at which it is true, `sent_at` when
    it was sent by the server's clock, to the second."""

    body: JsonObject
    position: int | None = None
    sent_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """A live stream; `position` is the id at which it began."""

    position: str | None
    messages: Iterator[httpx2.ServerSentEvent]


class Client:
    """Speaks to one server. Use it in a `with` statement; not shared between threads.

    Every method raises Unreachable when nobody answers, and what `from_problem` makes of an
    answer that is none of success.
    """

    def __init__(self, server: ServerAddress) -> None:
        self.server = server
        headers = {"Accept": "application/json", "User-Agent": "spawnlog-command-line"}
        if server.token is not None:
            headers["Authorization"] = f"Bearer {server.token}"
        try:
            self._http = httpx2.Client(
                base_url=server.url,
                headers=headers,
                timeout=httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
                # Certificates take a tenth of a second to load, and here none is looked at.
                verify=not (server.is_on_this_machine and server.url.startswith("http:")),
                # A proxy has no business between two programs of one machine.
                trust_env=not server.is_on_this_machine,
            )
        except (httpx2.InvalidURL, ValueError) as error:
            raise CommandFailed(f"cannot speak to {server.url}: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()

    def get(
        self, path: str, parameters: Parameters | None = None, *, wait_seconds: float = 0
    ) -> ServerResponse:
        """The answer to a read; the server may take `wait_seconds` longer than usual."""
        timeout = httpx2.Timeout(ANSWER_SECONDS + wait_seconds, connect=CONNECT_SECONDS)
        request = self._http.build_request(
            "GET", path, params=_present_parameters(parameters), timeout=timeout
        )
        return self._answer(request)

    def post(self, path: str, body: JsonObject, *, idempotency_key: str) -> ServerResponse:
        """The answer to a write. The key makes it safe to ask again when the answer was lost."""
        headers = {"Idempotency-Key": idempotency_key, "Content-Type": "application/json"}
        content = json.dumps(body).encode("ascii")
        return self._answer(
            self._http.build_request("POST", path, content=content, headers=headers)
        )

    def items(
        self, path: str, parameters: Parameters, *, limit: int, page_items: int = PAGE_ITEMS_MAX
    ) -> Listing:
        """Up to `limit` items, by as many pages as that takes."""
        query = dict(parameters)
        newest_first = query.get("before") is not None or query.get("order") == "desc"
        items: list[JsonObject] = []
        while True:
            query["limit"] = min(page_items, limit - len(items))
            answer = self.get(path, query)
            items += items_of(answer.body)
            after = query.get("after")
            following = next_page_parameters(
                answer.body, None if isinstance(after, tuple) else after, newest_first=newest_first
            )
            if following is None or len(items) >= limit:
                return Listing(
                    items[:limit],
                    following is not None,
                    answer.position,
                    next_after=None if newest_first else answer.body.get("nextAfter"),
                    next_before=answer.body.get("nextBefore") if newest_first else None,
                )
            query |= following
            if "cursor" not in following and query.get("at") and answer.position is not None:
                # What was five minutes ago for the first page is so for all of them.
                query["at"] = f"pos:{answer.position}"

    @contextmanager
    def stream(self, path: str, parameters: Parameters, last_id: str | None) -> Iterator[Stream]:
        """Server-sent events from after `last_id`, or from where the parameters say."""
        headers = {"Accept": "text/event-stream"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        timeout = httpx2.Timeout(SILENCE_SECONDS_MAX, connect=CONNECT_SECONDS)
        request = self._http.build_request(
            "GET", path, params=_present_parameters(parameters), headers=headers, timeout=timeout
        )
        with self._raise_if_unreachable(), self._send_request(request) as response:
            position = _number(response, "Spawnlog-Position")
            yield Stream(
                None if position is None else str(position),
                iter(httpx2.EventSource(response, EVENT_BYTES_MAX)),
            )

    def lines(self, path: str, body: JsonObject) -> Iterator[JsonObject]:
        """The lines of JSON that answer a question, as they come."""
        headers = {"Accept": "application/x-ndjson", "Content-Type": "application/json"}
        timeout = httpx2.Timeout(SILENCE_SECONDS_MAX, connect=CONNECT_SECONDS)
        content = json.dumps(body).encode("ascii")
        request = self._http.build_request(
            "POST", path, content=content, headers=headers, timeout=timeout
        )
        with self._raise_if_unreachable(), self._send_request(request) as response:
            for line in response.iter_lines():
                if len(line) > EVENT_BYTES_MAX:
                    raise CommandFailed("a line of the answer is longer than 20 MiB")
                if line:
                    yield _object(line.encode())

    def _answer(self, request: httpx2.Request) -> ServerResponse:
        with self._raise_if_unreachable(), self._send_request(request) as response:
            return ServerResponse(
                _object(_content(response)),
                _number(response, "Spawnlog-Position"),
                _sent_at(response),
            )

    @contextmanager
    def _send_request(self, request: httpx2.Request) -> Iterator[httpx2.Response]:
        response = self._http.send(request, stream=True)
        try:
            if not response.is_success:
                raise failure_from_problem(response.status_code, _problem(response))
            yield response
        finally:
            response.close()

    @contextmanager
    def _raise_if_unreachable(self) -> Iterator[None]:
        try:
            yield
        except httpx2.SSEError as error:
            raise CommandFailed(f"{self.server.url} sends no event stream: {error}") from None
        except httpx2.TimeoutException:
            raise Unreachable(f"{self.server.url} did not answer in time") from None
        except (httpx2.ConnectError, httpx2.ProxyError) as error:
            raise Unreachable(
                f"no server answers at {self.server.url} ({error}): start one with "
                "`spawnlog serve`, or say where it is with --url or --data-dir"
            ) from None
        except httpx2.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise Unreachable(f"the connection to {self.server.url} was lost: {reason}") from None


def _sent_at(response: httpx2.Response) -> datetime | None:
    try:
        return parsedate_to_datetime(response.headers.get("Date", "")).astimezone(UTC)
    except ValueError:
        return None


def _present_parameters(parameters: Parameters | None) -> dict[str, str | int | list[str]]:
    return {
        name: _without_lone_surrogates(value)
        for name, value in (parameters or {}).items()
        if value is not None
    }


def _without_lone_surrogates(value: str | int | tuple[str, ...]) -> str | int | list[str]:
    """Arguments that were no text to begin with hold halves of characters; no URL can."""
    if isinstance(value, int):
        return value
    if isinstance(value, tuple):
        return [one.encode("utf-8", "replace").decode() for one in value]
    return value.encode("utf-8", "replace").decode()


def _content(response: httpx2.Response) -> bytes:
    content = bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > ANSWER_BYTES_MAX:
            raise CommandFailed("the answer is longer than 128 MiB: ask for fewer with --limit")
    return bytes(content)


def _object(content: bytes) -> JsonObject:
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise CommandFailed("the answer is not from a spawnlog server: check --url")
    return body


def _problem(response: httpx2.Response) -> JsonObject:
    try:
        return _object(_content(response))
    except CommandFailed:
        return {"title": f"the server answered {response.status_code} {response.reason_phrase}"}


def _number(response: httpx2.Response, header: str) -> int | None:
    text = response.headers.get(header, "")
    return int(text) if text.isascii() and text.isdigit() else None
