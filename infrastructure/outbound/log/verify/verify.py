"""Verification of a log from its first event to its head, while servers append to it."""

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import psycopg

from application.ports.verifications import Difference
from application.projections.catalog import PROJECTIONS
from domain.run.state import Run
from domain.session.state import Session
from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import (
    OnVerifyProgress,
    VerifiedCounts,
    ignore_verify_progress,
)
from infrastructure.outbound.log.process import rare_collections
from infrastructure.outbound.log.verify.difference import first_difference
from infrastructure.outbound.log.verify.processes import RangeWorkers, VerificationStoppedError
from infrastructure.outbound.log.verify.ranges import Range, RangeChecker, RangeFindings, RangeQueue
from infrastructure.outbound.log.verify.rows import (
    ReadConnection,
    database_error_reason,
    open_read_connection,
)
from infrastructure.outbound.log.verify.whole_tables import (
    ExpectedHead,
    LogOverview,
    StoredHead,
    open_log,
    row_without_event,
)

FILE_BYTES_MAX = 4_096
STATE_FILE = "log-verify.json"
"""Name of the progress file in a data directory."""

_COUNT_NAMES = ("runRows", "sessionRows", "contents", "transcripts", "erased")


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress: every event up to `position` was right. `counts` are the items compared so far."""

    log_id: UUID
    position: int = 0
    chain_hash: bytes = b""
    counts: VerifiedCounts = field(default_factory=VerifiedCounts)

    def after(self, findings: RangeFindings) -> "Progress":
        """Return the progress after a range that was right as a whole."""
        return replace(
            self,
            position=findings.range.last,
            chain_hash=findings.chain_hash,
            counts=self.counts + findings.counts,
        )


def note_progress(path: Path, progress: Progress) -> None:
    """Write the progress file atomically: a concurrent reader sees the previous or the new content.

    Raises:
        UserError: The file cannot be written.
    """
    values = {
        "logId": str(progress.log_id),
        "position": progress.position,
        "chainHash": progress.chain_hash.hex(),
        **dict(zip(_COUNT_NAMES, astuple(progress.counts), strict=True)),
    }
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE))
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(
            f"the progress cannot be written to {path}: {error.strerror};"
            " name another file with --state"
        ) from error


def read_progress(path: Path, log_id: UUID) -> Progress | None:
    """Return the stored progress, or None if there is no such file.

    Raises:
        UserError: The file cannot be read, has other content, or is of another log.
    """
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"the progress in {path} cannot be read: {error.strerror}") from error
    try:
        found = orjson.loads(text)
        progress = Progress(
            log_id=UUID(found["logId"]),
            position=int(found["position"]),
            chain_hash=bytes.fromhex(found["chainHash"]),
            counts=VerifiedCounts(*(int(found[name]) for name in _COUNT_NAMES)),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path} holds no progress of a verification; remove it or omit --resume"
        ) from error
    if progress.log_id != log_id:
        raise UserError(
            f"the progress in {path} is of another log; name another file with --state or omit"
            " --resume"
        )
    return progress


RANGE_EVENTS_MAX = 20_000
"""The findings of a range are reported and stored as a whole."""


PROCESSES = 2
"""Including this one."""
NOTE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOrder:
    """Options of a verification. `head` is a head noted earlier; `state_file` stores the progress,
    from which `resume` continues."""

    state_file: Path
    head: ExpectedHead | None = None
    resume: bool = False
    on_progress: OnVerifyProgress = ignore_verify_progress


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of a verification. It began after position `began`; `checked` is the verified part,
    including that of the resumed verification; `head` is the last event of the log."""

    head: StoredHead
    began: int
    checked: Progress
    seconds: float
    difference: Difference | None


def run_verification(conninfo: str, order: VerifyOrder) -> Verification:
    """Verify the log.

    Raises:
        VerificationStoppedError: The database became unavailable.
    """
    try:
        with rare_collections(), open_read_connection(conninfo) as connection:
            return _VerificationRun(conninfo, connection, order).verify()
    except psycopg.OperationalError as error:
        raise VerificationStoppedError(
            f"{database_error_reason(error)}; continue with --resume"
        ) from error


class _VerificationRun:
    """A running verification."""

    def __init__(self, conninfo: str, connection: ReadConnection, order: VerifyOrder) -> None:
        self._conninfo = conninfo
        self._connection = connection
        self._order = order
        self._noted_at = time.monotonic()

    def verify(self) -> Verification:
        began = time.monotonic()
        opening, start = self._open()
        checked, difference = self._walk(opening, start)
        note_progress(self._order.state_file, checked)
        difference = first_difference(
            (difference, opening.difference, self._rows(opening, checked))
        )
        if difference is not None:
            unknown = row_without_event(self._connection, difference.position)
            difference = first_difference((difference, unknown))
        return Verification(
            opening.head, start.position, checked, time.monotonic() - began, difference
        )

    def _open(self) -> tuple[LogOverview, Progress]:
        order = self._order
        log_id = self._connection.execute("SELECT log_id FROM log_head").fetchone()
        resumed = None
        if order.resume and log_id is not None:
            resumed = read_progress(order.state_file, log_id[0])
        noted = [order.head] if order.head is not None else []
        if resumed is not None and resumed.position > 0:
            source = "the verification that is resumed"
            noted.append(ExpectedHead(resumed.position, resumed.chain_hash, source))
        opening = open_log(self._connection, tuple(noted))
        return opening, resumed or Progress(opening.head.log_id)

    def _walk(self, opening: LogOverview, start: Progress) -> tuple[Progress, Difference | None]:
        """Verify up to the head or to the first difference; later positions are not checked."""
        checked = start
        last = opening.head.position
        if opening.difference is not None:
            last = min(last, opening.difference.position)
        self._order.on_progress(start.position, start.position, last)
        for findings in self._in_order(opening.head, start.position + 1, last):
            if findings.difference is not None:
                return checked, findings.difference
            checked = checked.after(findings)
            if time.monotonic() - self._noted_at > NOTE_SECONDS:
                note_progress(self._order.state_file, checked)
                self._noted_at = time.monotonic()
            try:
                self._order.on_progress(start.position, checked.position, last)
            except VerificationStoppedError:
                note_progress(self._order.state_file, checked)
                raise
        return checked, None

    def _in_order(self, head: StoredHead, first: int, last: int) -> Iterator[RangeFindings]:
        """Yield the findings of all ranges, in order."""
        ranges = _ranges(first, last)
        waiting: dict[int, RangeFindings] = {}
        for findings in self._as_found(head, first, ranges):
            waiting[findings.range.first] = findings
            while (following := waiting.pop(first, None)) is not None:
                yield following
                first = following.range.last + 1

    def _as_found(
        self, head: StoredHead, first: int, ranges: Sequence[Range]
    ) -> Iterator[RangeFindings]:
        checker = RangeChecker(self._connection, head.log_id, head.head_hash)
        queue = RangeQueue(ranges)
        beside = [queue.take() for _ in range(min(len(ranges), PROCESSES) - 1)]
        with RangeWorkers(self._conninfo, head, beside) as processes:
            for findings in map(checker.check, queue.take(after=first - 1)):
                yield findings
                yield from processes.answers(wait=False)
            yield from processes.answers(wait=True)

    def _rows(self, opening: LogOverview, checked: Progress) -> Difference | None:
        """Check the number of rows against the events, if everything was verified."""
        if checked.position < opening.head.position:
            return None
        rows: dict[type[Any], int] = {
            Run: checked.counts.run_rows,
            Session: checked.counts.session_rows,
        }
        if all(
            opening.rows[projection.name] == rows[projection.state] for projection in PROJECTIONS
        ):
            return None
        return row_without_event(self._connection, opening.head.position)


def _ranges(first: int, last: int) -> list[Range]:
    """Return sixteen ranges per process, so that all end at about the same time; more if the log is
    long."""
    shared = -(-(last - first + 1) // (PROCESSES * 16))
    size = min(RANGE_EVENTS_MAX, max(RANGE_EVENTS_MAX // 10, shared))
    return [Range(begin, min(begin + size - 1, last)) for begin in range(first, last + 1, size)]
