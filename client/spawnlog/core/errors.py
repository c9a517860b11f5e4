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
"""Headers that a method has an argument for."""

UNREADY_STATUSES = frozenset({502, 503, 504})
"""A server, or a proxy before it, that may answer in a moment."""


class SpawnlogError(Exception):
    """Base of all errors of the client. `message` says what to do next, and never has a token."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidSetting(SpawnlogError):
    """An invalid address, token, file or argument. Nothing was sent."""


class ServerUnreachable(SpawnlogError):
    """The server did not answer in time, or the connection was lost. `idempotency_key` is that of
    the request, if it had one: with it the request can be repeated safely. `is_sent` is False if
    there was no connection, so that nothing was sent."""

    def __init__(
        self, message: str, idempotency_key: str | None = None, *, is_sent: bool = True
    ) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key
        self.is_sent = is_sent


class ForeignAnswer(SpawnlogError):
    """An answer that this version does not understand: of another server, of a much newer one, or
    too long."""


class StreamCutShort(SpawnlogError):
    """An answer in lines that ended early. The lines until then are right."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a request: where, as a JSON pointer, and what."""

    pointer: str
    detail: str


class Problem(SpawnlogError):
    """A problem (RFC 9457) that the server answered.

    `code` is stable; it is None only if a proxy answered. `rule` refused, and compared `limit` with
    `current`; `run_id` is the refused run. `retry_after` is in seconds. `members` is the whole
    document, with members that this version does not know.
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
        # A detail can be a sentence.
        return "; ".join([*(one.removesuffix(".") for one in parts[:-1]), parts[-1]])


class NotFoundProblem(Problem):
    """Nothing has that name, or this token may not see it."""


class PermissionProblem(Problem):
    """The token is missing, unknown, or does not permit this."""


class RefusalProblem(Problem):
    """A rule refused a spawn or a message. `rule` names it; the refusal is recorded."""


class UnsuccessfulRun(SpawnlogError):
    """The run did not end with success. `run` is its last state, None if a message was dropped
    before it became a run."""

    def __init__(self, message: str, run: RunView | RunMetadataView | None) -> None:
        super().__init__(message)
        self.run = run


class WaitTimeout(SpawnlogError):
    """The run did not reach the stage in time. It continues; `run` is its last state, None if a
    message waits for the run before it."""

    def __init__(self, message: str, run: RunView | RunMetadataView | None) -> None:
        super().__init__(message)
        self.run = run


def problem_of(status: int, members: Mapping[str, Any], retry_after: float | None) -> Problem:
    """Return the problem for an answer with this status, also if its code is unknown here."""
    kind: type[Problem] = Problem
    if members.get("rule") is not None:
        kind = RefusalProblem
    elif status == 404:
        kind = NotFoundProblem
    elif status in (401, 403):
        kind = PermissionProblem
    return kind(status, members, retry_after)


def problem_lines(
    text: str, faults: Sequence[Fault], name_of: Callable[[str], str]
) -> Iterator[str]:
    """Yield the text of a problem, then a line for each fault that the text does not tell.
    `name_of` returns the caller's name for the value at a JSON pointer, which may be itself."""
    details = [one.detail for one in faults]
    first = next((one for one in faults if text in (one.detail, _line(one))), None)
    if first is None:
        yield _name_headers(text, name_of)
    else:
        yield f"{name_of(first.pointer)}: {first.detail}"
    for fault in faults:
        is_told = text.count(f": {fault.detail}") >= details.count(fault.detail)
        if fault is not first and not is_told and _line(fault) not in text:
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
    """Return the faults that a problem lists, none if it lists nothing that can be read."""
    if not isinstance(errors, Sequence) or isinstance(errors, str):
        return ()
    return tuple(
        Fault(_text(one.get("pointer")) or "", _text(one.get("detail")) or "is invalid")
        for one in errors[:FAULTS_READ_MAX]
        if isinstance(one, Mapping)
    )
