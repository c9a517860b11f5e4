"""Cursors: opaque to callers, and bound to a log, a snapshot and a query."""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import orjson

from application.queries.errors import QueryError

LIMIT_MAX = 500
LIMIT_DEFAULT = 50


@dataclass(frozen=True, slots=True)
class Cursor:
    """The start of the next page: after position `after`, as of `at`.

    `window` are the positions that bound a listing of part of the log. Times ago in a filter are
    counted from `counts_back_from`, the instant of the first page.
    """

    at: int
    after: int
    window: tuple[int, int] | None = None
    counts_back_from: datetime | None = None

    @classmethod
    def first(cls, at: int, now: datetime) -> "Cursor":
        """Return the start of the first page as of `at`, which was requested at `now`."""
        return cls(at, -1, counts_back_from=now)


def fingerprint(*question: object) -> str:
    """Return a hash that binds a cursor to its query."""
    return hashlib.sha256(repr(question).encode()).hexdigest()[:16]


def encode_cursor(cursor: Cursor, log_id: UUID, question: str) -> str:
    """Return the cursor as opaque text."""
    instant = cursor.counts_back_from
    parts = [
        str(log_id),
        question,
        cursor.at,
        cursor.after,
        *(cursor.window or ()),
        *([instant.isoformat()] if instant is not None else ()),
    ]
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def read_cursor(text: str, log_id: UUID, head: int) -> tuple[Cursor, str]:
    """Return a decoded cursor and the fingerprint of its query.

    Raises:
        QueryError: The cursor belongs to another log, or is invalid.
    """
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        parts = orjson.loads(base64.b64decode(padded, b"-_", validate=True))
        log, query, at, after, *window = parts
        instant = _instant(window.pop()) if window and isinstance(window[-1], str) else None
    except (UnicodeEncodeError, binascii.Error, ValueError, TypeError):
        raise _invalid_cursor() from None
    if not isinstance(log, str):
        raise _invalid_cursor()
    if log != str(log_id):
        raise QueryError(
            "foreign_cursor", ("this cursor belongs to another log; start again without it")
        )
    positions = [at, after, *window]
    if not isinstance(query, str) or not all(
        _is_position(position, head) for position in positions
    ):
        raise _invalid_cursor()
    if not window:
        return Cursor(at, after, None, instant), query
    if len(window) != 2 or window[0] > window[1]:
        raise _invalid_cursor()
    return Cursor(at, after, (window[0], window[1]), instant), query


def decode_cursor(text: str, log_id: UUID, question: str, head: int) -> Cursor:
    """Return a decoded cursor.

    Raises:
        QueryError: The cursor belongs to another log or query, or is invalid.
    """
    cursor, found = read_cursor(text, log_id, head)
    if found != question:
        raise foreign_question()
    return cursor


def foreign_question() -> QueryError:
    """Return the error for a cursor of another query."""
    return QueryError(
        "invalid_request", "this cursor belongs to another query; start again without it"
    )


def _instant(text: str) -> datetime:
    """Return the instant of a cursor. Raise ValueError if it has no UTC offset."""
    instant = datetime.fromisoformat(text)
    if instant.utcoffset() is None:
        raise ValueError(text)
    return instant


def _is_position(value: object, head: int) -> bool:
    return type(value) is int and 0 <= value <= head


def _invalid_cursor() -> QueryError:
    return QueryError("invalid_request", "this is not a cursor; start again without it")
