"""Errors of the client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from spawnlog.core.pointers import argument_of

if TYPE_CHECKING:
    from spawnlog.models import RunMetadataView, RunView

FAULTS_READ_MAX = 100
_AUTHORIZATION = "Authorization"
_HEADERS = ("Idempotency-Key", "If-Match")
"""Headers that are arguments of methods."""

UNREADY_STATUSES = frozenset({502, 503, 504})
"""Statuses of a server, or of a proxy in front of it, that may be ready in a moment."""


class SpawnlogError(Exception):
    """Base class of all errors of the client.

    Attributes:
        message: Text that says what to do next. It never contains a token.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidSettingError(SpawnlogError):
    """Invalid address, token, file or argument. Nothing was sent."""


class ServerUnreachableError(SpawnlogError):
    """No answer in time, or the connection was lost.

    Attributes:
        idempotency_key: Idempotency key of the request, or None. With the same key it is safe to
            repeat the request.
        is_sent: False if there was no connection, so nothing was sent.
    """

    def __init__(
        self, message: str, idempotency_key: str | None = None, *, is_sent: bool = True
    ) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key
        self.is_sent = is_sent


class UnexpectedResponseError(SpawnlogError):
    """Answer that this version cannot read.

    It is too long, it comes from a different or much newer server, or it is not from spawnlog at
    all.
    """


class StreamInterruptedError(SpawnlogError):
    """A streamed answer that ended early. The lines received until then are valid."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a request: the JSON pointer to the value, and a description."""

    pointer: str
    detail: str


class Problem(SpawnlogError):
    """Problem document (RFC 9457) that the server returned.

    Attributes:
        status: HTTP status.
        code: Stable code; None only if a proxy answered.
        title: Title; the status if the document has none.
        detail: Description of this occurrence.
        rule: Rule that refused the request.
        limit: Limit that the rule applied.
        current: Value that the rule compared with `limit`.
        run_id: Id of the refused run.
        child_session_key: Session key of the child.
        batch_id: Id of the batch.
        retryable: True if the server says that a retry may succeed.
        retry_after: Seconds to wait before a retry, from the header.
        errors: Faults of the request.
        members: The whole document, including members unknown to this version.
    """

    def __init__(
        self, status: int, members: Mapping[str, Any], retry_after: float | None = None
    ) -> None:
        self.status = status
        self.members = dict(members)
        self.code = _text(members.get("code"))
        self.title = _text(members.get("title")) or f"the server answered {status}"
        self.detail = _text(members.get("detail"))
        self.rule = _text(members.get("rule"))
        self.limit = _number(members.get("limit"))
        self.current = _number(members.get("current"))
        self.run_id = _text(members.get("runId"))
        self.child_session_key = _text(members.get("childSessionKey"))
        self.batch_id = _text(members.get("batchId"))
        self.retryable = members.get("retryable") is True
        self.retry_after = retry_after
        self.errors = faults_of(members.get("errors"))
        super().__init__(self._message())

    def _message(self) -> str:
        text = self.detail or self.title
        if self.status == HTTPStatus.UNAUTHORIZED and _AUTHORIZATION in text:
            text = "the server needs a token: give token or data_dir, or set SPAWNLOG_TOKEN"
        parts = list(problem_lines(text, self.errors, argument_of))
        if self.rule is not None:
            parts.append(f"rule: {self.rule}")
        if self.code is not None:
            parts.append(f"code: {self.code}")
        # A detail may end with a period.
        return "; ".join([*(part.removesuffix(".") for part in parts[:-1]), parts[-1]])


class NotFoundError(Problem):
    """The object does not exist, or the token may not see it."""


class PermissionDeniedError(Problem):
    """The token is missing, unknown, or lacks the permission."""


class SpawnRefusedError(Problem):
    """A rule refused a spawn or a message. `rule` names it; the refusal is recorded."""


class RunFailedError(SpawnlogError):
    """The run did not end with success.

    Attributes:
        run: Last state of the run; None if a message was dropped before it became a run.
    """

    def __init__(self, message: str, run: RunView | RunMetadataView | None) -> None:
        super().__init__(message)
        self.run = run


class WaitTimeoutError(SpawnlogError):
    """The run did not reach the stage in time. It continues.

    Attributes:
        run: Last state of the run; None if the message still waits for the run before it.
    """

    def __init__(self, message: str, run: RunView | RunMetadataView | None) -> None:
        super().__init__(message)
        self.run = run


def problem_of(status: int, members: Mapping[str, Any], retry_after: float | None) -> Problem:
    """Return the problem for a status and a document, even if its code is unknown here."""
    kind: type[Problem] = Problem
    if members.get("rule") is not None:
        kind = SpawnRefusedError
    elif status == 404:
        kind = NotFoundError
    elif status in (401, 403):
        kind = PermissionDeniedError
    return kind(status, members, retry_after)


def problem_lines(
    text: str, faults: Sequence[Fault], name_of: Callable[[str], str]
) -> Iterator[str]:
    """Yield the text of a problem, then one line for each fault that the text does not mention.

    Args:
        text: Detail or title of the problem.
        faults: Faults of the request.
        name_of: Returns the caller's name for the value at a JSON pointer. If it has no name, it
            returns the pointer.
    """
    details = [fault.detail for fault in faults]
    first = next((fault for fault in faults if text in (fault.detail, _line(fault))), None)
    if first is None:
        yield _name_headers(text, name_of)
    else:
        yield f"{name_of(first.pointer)}: {first.detail}"
    for fault in faults:
        is_mentioned = text.count(f": {fault.detail}") >= details.count(fault.detail)
        if fault is not first and not is_mentioned and _line(fault) not in text:
            yield f"{name_of(fault.pointer)}: {fault.detail}"


def _name_headers(text: str, name_of: Callable[[str], str]) -> str:
    for header in _HEADERS:
        pointer = f"/headers/{header}"
        if (name := name_of(pointer)) != pointer:
            text = text.replace(header, name)
    return text


def _line(fault: Fault) -> str:
    return f"{fault.pointer}: {fault.detail}"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def faults_of(errors: object) -> tuple[Fault, ...]:
    """Return the faults listed in a problem, up to `FAULTS_READ_MAX`; empty if the list is
    unreadable."""
    if not isinstance(errors, Sequence) or isinstance(errors, str):
        return ()
    return tuple(
        Fault(_text(fault.get("pointer")) or "", _text(fault.get("detail")) or "is invalid")
        for fault in errors[:FAULTS_READ_MAX]
        if isinstance(fault, Mapping)
    )
