"""Parse answers: a model with the log position at which it is true, or a problem.

The module of models is imported with the first answer that needs it, so a program that only sends
requests does not pay for it.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from operator import or_
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from spawnlog.core.errors import Problem, UnexpectedResponseError, problem_of
from spawnlog.core.request import TEXT, Request

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

ANSWER_BYTES_MAX = 128 * 1024 * 1024
LINE_BYTES_MAX = 20 * 1024 * 1024
RETRY_AFTER_SECONDS_MAX = 3600.0


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, headers and body of an answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class ServerAnswer(Generic[T]):
    """A value and the log position at which it is true.

    Attributes:
        value: The model, JSON object or text.
        position: Log position at which `value` is true; None if the server sent none.
        replayed: True if an earlier attempt with the same idempotency key executed the command.
    """

    value: T
    position: int | None
    replayed: bool
    date: str = field(default="", repr=False)

    @property
    def sent_at(self) -> datetime | None:
        """Return when the server sent the answer, by its clock, to the second; None if it did not
        say.
        """
        try:
            return parsedate_to_datetime(self.date).astimezone(UTC)
        except ValueError:
            return None


def read_answer(request: Request[T], reply: Reply) -> ServerAnswer[T]:
    """Return the answer in a reply.

    Raises:
        Problem: The status is not a success.
        UnexpectedResponseError: The body does not fit the models of the request.
    """
    require_success(reply)
    value: Any = (
        read_value(request.answers, reply.content)
        if request.answers
        else read_object(reply.content)
    )
    position = number_in(reply.headers, "spawnlog-position")
    is_replayed = reply.headers.get("idempotent-replayed") == "true"
    if not isinstance(value, str | dict):
        value.__dict__.update(log_position=position, is_replayed=is_replayed)
    return ServerAnswer(value, position, is_replayed, reply.headers.get("date", ""))


def read_value(names: tuple[str, ...], content: bytes) -> Any:
    """Return JSON as the best-fitting model, or the content as text.

    Args:
        names: Names of the candidate models; `(TEXT,)` for text.
        content: Body of the answer.

    Raises:
        UnexpectedResponseError: No model fits.
    """
    from pydantic import ValidationError

    if names == (TEXT,):
        return content.decode("utf-8", "replace")
    try:
        return _adapter(names).validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(str(part) for part in first["loc"])
        raise UnexpectedResponseError(
            f"this client does not understand the answer: {first['msg']} at /{place}; check the"
            " address, and that client and server have the same version"
        ) from None


_ADAPTERS: dict[tuple[str, ...], "TypeAdapter[Any]"] = {}


def is_prepared(names: tuple[str, ...]) -> bool:
    """Return True if the adapter for these models is built, or none is needed."""
    return not names or names == (TEXT,) or names in _ADAPTERS


def prepare(names: tuple[str, ...]) -> None:
    """Build the adapter for these models. The first call takes about a tenth of a second."""
    if not is_prepared(names):
        _adapter(names)


def _adapter(names: tuple[str, ...]) -> "TypeAdapter[Any]":
    if names not in _ADAPTERS:
        from functools import reduce

        from pydantic import TypeAdapter

        _ADAPTERS[names] = TypeAdapter(reduce(or_, [model(name) for name in names]))
    return _ADAPTERS[names]


def model(name: str) -> Any:
    """Return the model class with this name; `str` for `TEXT`."""
    if name == TEXT:
        return str
    from spawnlog import models

    return getattr(models, name)


def require_success(reply: Reply) -> None:
    """Raise the problem in a reply whose status is not 2xx."""
    if not 200 <= reply.status < 300:
        raise read_problem(reply)


class AnswerContent:
    """Buffer for the body of one answer, limited to `ANSWER_BYTES_MAX` bytes."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._bytes = 0

    def add(self, chunk: bytes) -> None:
        """Append a chunk. Raise ForeignAnswer if the answer is too long."""
        self._bytes += len(chunk)
        if self._bytes > ANSWER_BYTES_MAX:
            raise UnexpectedResponseError(
                f"the answer is longer than {ANSWER_BYTES_MAX >> 20} MiB: ask for fewer with limit"
            )
        self._chunks.append(chunk)

    def whole(self) -> bytes:
        """Return the whole body."""
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)


def read_object(content: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raise ForeignAnswer if the content is anything else."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise UnexpectedResponseError("the answer is not from a spawnlog server: check the address")
    return body


def read_problem(reply: Reply) -> Problem:
    """Return the problem in a reply, whether the server or a proxy in front of it answered."""
    try:
        members = read_object(reply.content)
    except UnexpectedResponseError:
        members = {}
    return problem_of(reply.status, members, _retry_after(reply.headers))


def number_in(headers: Mapping[str, str], name: str) -> int | None:
    """Return the number in a header, or None if the header is missing or is not a number."""
    text = headers.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            # Compare two times of the server: its clock may differ from this one.
            date = headers.get("date")
            now = parsedate_to_datetime(date) if date else datetime.now(UTC)
            seconds = (parsedate_to_datetime(text) - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX) if math.isfinite(seconds) else None
