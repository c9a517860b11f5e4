"""Cursors: opaque to callers, and bound to a log, a snapshot and a question."""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from uuid import UUID

import orjson

from infrastructure.inbound.http.problems import Problem

LIMIT_MAX = 500
LIMIT_DEFAULT = 50


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next page begins: behind `behind`, in the registry as of `at`."""

    at: int
    behind: int


def fingerprint(*question: object) -> str:
    """By this a cursor knows the question it belongs to."""
    return hashlib.sha256(repr(question).encode()).hexdigest()[:16]


def written(cursor: Cursor, log_id: UUID, question: str) -> str:
    """The cursor as callers hold it."""
    parts = [str(log_id), question, cursor.at, cursor.behind]
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def read(text: str, log_id: UUID, question: str) -> Cursor:
    """The cursor again. 410 for one of another log, 422 for what is none of this question."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        log, asked, at, behind = orjson.loads(base64.b64decode(padded, b"-_", validate=True))
        cursor = Cursor(int(at), int(behind))
    except (UnicodeEncodeError, binascii.Error, ValueError, TypeError):
        raise Problem("invalid_request", "this is no cursor; begin again without it") from None
    if log != str(log_id):
        raise Problem("foreign_cursor", "this cursor is of another log; begin again without it")
    if asked != question:
        raise Problem(
            "invalid_request", "this cursor belongs to another question; begin again without it"
        )
    return cursor
