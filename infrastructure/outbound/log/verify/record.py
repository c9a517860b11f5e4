"""Record of verifications: one row each, and an advisory lock held by the running one.

The lock belongs to the connection that wrote the row, so it is released as soon as the process
ends. A row without an outcome whose lock is free is of a verification that was broken off.
"""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from typing import Any

import psycopg

from application.ports.verifications import VERIFICATIONS_MAX, VerificationOrigin
from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import OnVerifyProgress
from infrastructure.outbound.log.schema.connections import LIMITS, open_sync_connection
from infrastructure.outbound.log.verify.processes import VerificationStoppedError
from infrastructure.outbound.log.verify.rows import (
    ReadConnection,
    database_error_reason,
    one_row,
)
from infrastructure.outbound.log.verify.verify import Verification, VerifyOrder, run_verification

VERIFY_LOCK_CLASS = 0x53504C56
NOTE_SECONDS = 1.0
"""Interval for storing the progress and checking for a stop request."""
TEXT_CHARS_MAX = 2_000

_LOCK = f"SELECT pg_try_advisory_lock({VERIFY_LOCK_CLASS}, hashtext(current_schema()))"
IS_HELD = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    f" AND classid = {VERIFY_LOCK_CLASS} AND objsubid = 2"
    " AND objid = (hashtext(current_schema())::bigint & 4294967295)::oid)"
)
"""SQL query: whether the lock of this log is held. Trying to take the lock would keep others from
taking it."""
# The holder of the lock knows that no other verification is running.
_BREAK_OFF = "UPDATE verifications SET outcome = 'broken-off' WHERE outcome IS NULL"
_FORGET = f"DELETE FROM verifications WHERE number <= %s - {VERIFICATIONS_MAX}"
_BEGIN = (
    "INSERT INTO verifications (started_by, origin, process) VALUES (%s, %s, %s) RETURNING number"
)
_NOTE = (
    "UPDATE verifications SET began = %s, checked = %s, last_position = %s,"
    " noted_at = clock_timestamp() WHERE number = %s AND outcome IS NULL"
    " RETURNING stop_requested_by"
)
_END = (
    "UPDATE verifications SET outcome = %s, failure = %s, noted_at = clock_timestamp(),"
    " ended_at = clock_timestamp() WHERE number = %s AND outcome IS NULL"
)
_FOUND = (
    "UPDATE verifications SET began = %s, checked = %s, last_position = %s, head_hash = %s,"
    " run_rows = %s, session_rows = %s, contents = %s, transcripts = %s, erased = %s,"
    " difference_position = %s, difference_kind = %s, difference_text = %s"
    " WHERE number = %s AND outcome IS NULL"
)
_UNWRITABLE = (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.InsufficientPrivilege)


class VerificationInProgressError(UserError):
    """Another process is verifying this log."""


class VerificationStopRequestedError(VerificationStoppedError):
    """A user asked this verification to stop."""


@dataclass(frozen=True, slots=True)
class VerifyingProcess:
    """The process that verifies the log, and who started it."""

    started_by: str
    origin: VerificationOrigin
    process: str

    @classmethod
    def here(cls, started_by: str, origin: VerificationOrigin) -> "VerifyingProcess":
        """Return the identity of this process, or of a worker that it starts."""
        return cls(started_by, origin, f"{socket.gethostname()}:{os.getpid()}")


def run_recorded_verification(
    conninfo: str,
    order: VerifyOrder,
    process: VerifyingProcess,
    *,
    on_begin: Callable[[], None] = lambda: None,
) -> tuple[Verification, bool]:
    """Verify the log and record the verification.

    Returns:
        The verification, and whether it was recorded. A command may also verify a read-only
        database.

    Raises:
        VerificationInProgressError: Another process is verifying the log.
        VerificationStoppedError: It was stopped, or the database became unavailable.
    """
    try:
        with _open_connection(conninfo) as connection:
            return _run(conninfo, order, connection, process, on_begin)
    except psycopg.OperationalError as error:
        raise VerificationStoppedError(
            f"{database_error_reason(error)}; continue with --resume"
        ) from error


def _run(
    conninfo: str,
    order: VerifyOrder,
    connection: ReadConnection,
    process: VerifyingProcess,
    on_begin: Callable[[], None],
) -> tuple[Verification, bool]:
    record = _begin(connection, process)
    on_begin()
    if record is None:
        return run_verification(conninfo, order), False
    try:
        noting = replace(order, on_progress=record.note_and(order.on_progress))
        found = run_verification(conninfo, noting)
    except (KeyboardInterrupt, VerificationStopRequestedError):
        record.end("stopped")
        raise
    except UserError as error:
        record.end("failed", str(error))
        raise
    return found, record.end_with(found)


def _open_connection(conninfo: str) -> ReadConnection:
    """Open the connection that holds the lock. If the client's machine is lost, the database
    notices within half a minute."""
    return open_sync_connection(
        conninfo,
        application="verify record",
        settings=f"{LIMITS}; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;"
        " SET tcp_keepalives_count = 3",
    )


def _begin(connection: ReadConnection, process: VerifyingProcess) -> "_VerificationRow | None":
    """Insert the row of a new verification. Return None if the database accepts no writes."""
    if one_row(connection, _LOCK) != (True,):
        raise VerificationInProgressError(
            "another process is already verifying this log; wait for it, or stop it"
            " (`spawnlog log head` shows how far it is)"
        )
    try:
        connection.execute(_BREAK_OFF)
        values = [process.started_by, process.origin, process.process]
        (number,) = one_row(connection, _BEGIN, values)
        connection.execute(_FORGET, [number])
    except _UNWRITABLE as error:
        if process.origin == "server":
            raise UserError(
                "the database accepts no writes, so the verification cannot be recorded; use"
                " `spawnlog log verify`"
            ) from error
        return None
    return _VerificationRow(connection, number)


class _VerificationRow:
    """The row of a running verification."""

    def __init__(self, connection: ReadConnection, number: int) -> None:
        self._connection = connection
        self._number = number
        self._noted_at = -NOTE_SECONDS

    def note_and(self, on_progress: OnVerifyProgress) -> OnVerifyProgress:
        """Return a callback that also stores the progress at intervals."""

        def report(began: int, position: int, last: int) -> None:
            on_progress(began, position, last)
            now = time.monotonic()
            if now - self._noted_at >= NOTE_SECONDS:
                self._noted_at = now
                self._note(began, position, last)

        return report

    def _note(self, began: int, position: int, last: int) -> None:
        values = [began, position, last, self._number]
        row = self._connection.execute(_NOTE, values).fetchone()
        if row is None:
            raise VerificationStoppedError("its record was deleted; verify the log again")
        if row[0] is not None:
            raise VerificationStopRequestedError(f"stopped by {row[0]}; continue with --resume")

    def end(self, outcome: str, failure: str | None = None) -> bool:
        """Record an end without a result. Return False if it could not be recorded."""
        text = failure[:TEXT_CHARS_MAX] if failure is not None else None
        return self._write((_END, [outcome, text, self._number]))

    def end_with(self, found: Verification) -> bool:
        """Record the result. Return False if it could not be recorded."""
        checked, wrong = found.checked, found.difference
        values = [
            *(found.began, checked.position, found.head.position, found.head.chain_hash),
            *astuple(checked.counts),
            *(
                (None, None, None)
                if wrong is None
                else (wrong.position, wrong.kind, wrong.text[:TEXT_CHARS_MAX])
            ),
            self._number,
        ]
        outcome = "right" if wrong is None else "different"
        return self._write((_FOUND, values), (_END, [outcome, None, self._number]))

    def _write(self, *statements: tuple[str, list[Any]]) -> bool:
        """Execute the statements in one transaction. If the database is unavailable, the row keeps
        no outcome and is read as broken off."""
        rows = 0
        try:
            with self._connection.transaction():
                for statement, values in statements:
                    rows = self._connection.execute(statement, values).rowcount
        except psycopg.Error:
            return False
        return rows == 1
