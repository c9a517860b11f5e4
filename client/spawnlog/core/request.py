"""Requests as values: content, models of the answer, and whether a retry is safe.

This module does no I/O; the two clients send the requests.
"""

import json
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from spawnlog.core.errors import InvalidSettingError, UnexpectedResponseError
from spawnlog.core.pointers import python_name

T = TypeVar("T")
PageT = TypeVar("PageT")
ItemT = TypeVar("ItemT")

QueryValue = str | int | float | bool | datetime | Sequence[str] | None
Json = Mapping[str, Any]
IDEMPOTENCY_KEY_CHARACTERS_MAX = 255
WAIT_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[T]):
    """A request whose answer is parsed as `T`.

    Attributes:
        operation: `operationId` of the operation.
        answers: Names of the models of the answer; empty for a plain JSON object.
        again: True if the request is repeatable: a second one does no more than the first.
        wait_seconds: How long the server may hold the request (long poll), on top of the timeout.
        answer_seconds_max: Timeout in seconds, if it is shorter than that of the client.
    """

    operation: str
    method: str
    path: str
    query: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    again: bool = False
    wait_seconds: float = 0.0
    answer_seconds_max: float = math.inf

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{urlencode(self.query, doseq=True)}" if self.query else self.path

    @property
    def idempotency_key(self) -> str | None:
        """Return the idempotency key, the same for all attempts; None if the request has none."""
        return self.headers.get("Idempotency-Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest(Request[PageT], Generic[PageT, ItemT]):
    """A request for one page of a list. `lists` names the members that hold the items."""

    lists: tuple[str, ...] = ("items",)

    def items(self, page: PageT) -> list[ItemT]:
        """Return the items of a page. Raise ForeignAnswer if the page has no list of items."""
        found: list[ItemT] = []
        for name in self.lists:
            items = _member(page, name)
            is_plain = isinstance(page, Mapping)
            if not isinstance(items, list) or (
                is_plain and not all(isinstance(item, dict) for item in items)
            ):
                raise UnexpectedResponseError(
                    "the answer is not from a spawnlog server: it lists no items"
                )
            found += items
        return found

    def following(self, page: PageT, position: int | None) -> "PageRequest[PageT, ItemT] | None":
        """Return the request for the next page.

        If the first page has a relative `at`, all later pages are read at `position`.

        Args:
            page: The page before.
            position: Log position at which that page is true.

        Returns:
            The request, or None after the last page.
        """
        cursor = _member(page, "nextCursor")
        if cursor:
            return self._at({"cursor": str(cursor)})
        if self.query.get("order") == "desc" or "before" in self.query:
            older = _member(page, "nextBefore")
            return self._at({"before": str(older)}, position) if isinstance(older, int) else None
        after = _member(page, "nextAfter")
        if not isinstance(after, int | str) or str(after) == self.query.get("after", "0"):
            return None
        head = _member(page, "head")
        if isinstance(head, int) and isinstance(after, int) and after >= head:
            return None
        return self._at({"after": str(after)}, position)

    def _at(
        self, changes: Mapping[str, str], position: int | None = None
    ) -> "PageRequest[PageT, ItemT]":
        query = {**self.query, **changes}
        if "at" in query and position is not None:
            query["at"] = f"pos:{position}"
        return replace(self, query=query)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesRequest(Request[T]):
    """A request answered with lines of JSON (NDJSON), each parsed as `T`."""


def _member(page: object, name: str) -> object:
    """Return a member of a page by its JSON name, from a model or a JSON object."""
    if isinstance(page, Mapping):
        return page.get(name)
    return getattr(page, python_name(name), None)


TEXT = "str"
"""Pseudo name of a model: the answer is text."""


def read_request(
    operation: str, path: str, query: Mapping[str, QueryValue], *answers: str
) -> Request[Any]:
    """Return a GET request."""
    wait = query.get("wait")
    return Request(
        operation=operation,
        method="GET",
        path=path,
        query=sent_query(query),
        answers=answers,
        again=True,
        wait_seconds=float(wait) if isinstance(wait, int | float) else 0.0,
    )


def page_request(
    operation: str,
    path: str,
    query: Mapping[str, QueryValue],
    answer: str,
    *,
    lists: tuple[str, ...] = ("items",),
) -> PageRequest[Any, Any]:
    """Return a GET request for a page."""
    wait = query.get("wait")
    return PageRequest(
        operation=operation,
        method="GET",
        path=path,
        query=sent_query(query),
        answers=(answer,),
        again=True,
        wait_seconds=float(wait) if isinstance(wait, int | float) else 0.0,
        lists=lists,
    )


def command_request(
    operation: str,
    method: str,
    path: str,
    body: Mapping[str, Any],
    *answers: str,
    idempotency_key: str | None = None,
) -> Request[Any]:
    """Return a command with an idempotency key, so that retries are safe.

    Args:
        operation: `operationId` of the operation.
        method: HTTP method.
        path: Path, from `path_of`.
        body: Members of the body; those that are None are left out.
        answers: Names of the models of the answer.
        idempotency_key: The key. Default: a new UUID.

    Raises:
        InvalidSettingError: The key is empty, too long or not printable ASCII.
    """
    key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
    is_sent_as_it_is = key.isascii() and key.isprintable()
    if not 0 < len(key) <= IDEMPOTENCY_KEY_CHARACTERS_MAX or not is_sent_as_it_is:
        raise InvalidSettingError(
            f"an idempotency key is 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX} printable ASCII"
            " characters: give one, or omit it"
        )
    return Request(
        operation=operation,
        method=method,
        path=path,
        content=sent_body(body),
        headers={"Content-Type": "application/json", "Idempotency-Key": key},
        answers=answers,
        again=True,
    )


def plain_request(
    operation: str,
    method: str,
    path: str,
    *answers: str,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    again: bool = False,
) -> Request[Any]:
    """Return a command without an idempotency key. A PATCH body keeps its nulls (merge patch)."""
    return Request(
        operation=operation,
        method=method,
        path=path,
        content=b"" if body is None else sent_body(body, drop_none=method != "PATCH"),
        headers={} if body is None else {"Content-Type": "application/json", **(headers or {})},
        answers=answers,
        again=again,
    )


def lines_request(
    operation: str, path: str, body: Mapping[str, Any], *answers: str
) -> LinesRequest[Any]:
    """Return a POST request that is answered with lines of JSON."""
    return LinesRequest(
        operation=operation,
        method="POST",
        path=path,
        content=sent_body(body),
        headers={"Content-Type": "application/json", "Accept": "application/x-ndjson"},
        answers=answers,
        again=True,
    )


def requester_object(requester: str | Json) -> Json:
    """Return the requester as an object for a body; a text is its session key."""
    return {"sessionKey": requester} if isinstance(requester, str) else requester


def sent_body(body: Mapping[str, Any], *, drop_none: bool = True) -> bytes:
    """Encode the members of a body as JSON.

    Args:
        body: Members by their JSON names. A `datetime` needs a time zone.
        drop_none: Leave out members that are None.

    Raises:
        InvalidSettingError: A member has no form in JSON.
    """
    given = {name: value for name, value in body.items() if value is not None or not drop_none}
    try:
        return json.dumps(given, default=_plain, allow_nan=False).encode("ascii")
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidSettingError(f"a member of the request has no form in JSON: {error}") from None


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return _instant(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise InvalidSettingError(f"a {type(value).__name__} has no form in JSON")


def sent_query(query: Mapping[str, QueryValue]) -> dict[str, str | Sequence[str]]:
    """Encode query parameters as text; leave out those that are None. `wait` is in seconds.

    Raises:
        InvalidSettingError: `wait` is out of range, or a value has no form as text.
    """
    sent: dict[str, str | Sequence[str]] = {}
    for name, value in query.items():
        match value:
            case None:
                pass
            case bool():
                sent[name] = "true" if value else "false"
            case int() | float() if name == "wait":
                if not 0 < value <= WAIT_SECONDS_MAX:
                    raise InvalidSettingError(f"wait is up to {WAIT_SECONDS_MAX:.0f} seconds")
                whole = float(value).is_integer()
                sent[name] = f"{value:.0f}s" if whole else f"{max(1, round(value * 1000))}ms"
            case str():
                sent[name] = _text(value)
            case int() | float():
                sent[name] = str(value)
            case datetime():
                sent[name] = _instant(value)
            case Sequence():
                if value:
                    sent[name] = [_text(item) for item in value]
            case _:
                raise InvalidSettingError(f"{name} is a {type(value).__name__}: give it as text")
    return sent


def _text(value: str) -> str:
    """Replace lone surrogates: command-line arguments that are not valid text contain them, and a
    URL cannot."""
    return value.encode("utf-8", "replace").decode()


def _instant(value: datetime) -> str:
    if value.tzinfo is None:
        raise InvalidSettingError("an instant needs a time zone, such as datetime.now(UTC)")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def path_of(*segments: str | int) -> str:
    """Return a path under `/v1` with each segment quoted.

    Raises:
        InvalidSettingError: A segment is empty, `.` or `..`.
    """
    texts = [str(segment) for segment in segments]
    for text in texts:
        if text in ("", ".", ".."):
            raise InvalidSettingError(f'"{text}" is not a valid name on the server')
    return "/v1/" + "/".join(quote(text, safe="", errors="replace") for text in texts)
