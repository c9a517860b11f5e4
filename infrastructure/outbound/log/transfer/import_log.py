"""Import of an exported file into an empty log: all of it, or nothing.

One transaction stores the whole file while a verification reads it, together with the run and
session rows that this verification folds. It commits only if the verification finds no fault.
"""

import struct
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

import psycopg

from application.projections.fold import FOREVER
from application.projections.run_rows import RUNS
from application.projections.session_rows import SESSIONS
from domain.event_types import LOG_FORMAT
from infrastructure.contract.errors import FileContentError, UserError
from infrastructure.contract.operations import (
    FileFindings,
    OnTransferProgress,
    ignore_transfer_progress,
)
from infrastructure.outbound.log.codec.binary import COPY_HEADER, COPY_TRAILER
from infrastructure.outbound.log.process import rare_collections
from infrastructure.outbound.log.schema.append_lock import LOCK
from infrastructure.outbound.log.schema.connections import (
    STATEMENTS_WITHOUT_LIMIT,
    WHOLE_TABLE_ANSWER_SECONDS_MAX,
    open_sync_connection,
)
from infrastructure.outbound.log.schema.format import require_known_format
from infrastructure.outbound.log.schema.projection_versions import NOTE_VERSION, VERSIONS
from infrastructure.outbound.log.transfer.copied_rows import (
    COPIES,
    EVENT_COLUMNS,
    commit_cells,
    event_cells,
)
from infrastructure.outbound.log.transfer.file_reader import FileReader
from infrastructure.outbound.log.transfer.folded_rows import FoldedRows
from infrastructure.outbound.log.transfer.indexes import DroppedIndexes
from infrastructure.outbound.log.transfer.line_file import last_line, open_input
from infrastructure.outbound.log.transfer.lines import (
    AnyLine,
    EventLine,
    ExportHeader,
    ExportSeal,
    UnknownFileFormatError,
)
from infrastructure.outbound.log.transfer.verify_file import FileCheck, stated_seal
from infrastructure.outbound.log.verify.rows import (
    ReadConnection,
    StoredEventRow,
    database_error_reason,
    one_row,
)

COPY_LINES = 20_000
"""Number of lines stored by one statement, followed by the rows of their events."""
STATES_BYTES_MAX = 16 * 1024 * 1024
"""A statement stores fewer lines if the states of their rows reach about this size."""
WRITE_BYTES = 256 * 1024
"""Approximate number of bytes sent at a time."""

FILLED = (
    *("events", "commits", "runs", "sessions"),
    *("content_keys", "contents", "transcript_entries"),
)
EMPTY = (*FILLED, "idempotency", "staged_files", "transcript_files")
"""Tables that must be empty in a log into which a file is imported."""

LOCK_WAIT_MS = 5_000
_Item = TypeVar("_Item")
# Servers write missing transcript files. There is no file to write for a run whose texts are
# erased.
_DUE_FILES = (
    "INSERT INTO transcript_files (run_id, is_archived, due_at)"
    " SELECT e.run_id, EXISTS (SELECT FROM events a WHERE a.stream = e.stream"
    " AND a.type = 'RunArchived'), statement_timestamp() FROM events e WHERE e.type = 'RunEnded'"
    " AND e.run_id IS NOT NULL"
    " AND convert_from(e.state, 'UTF8')::json -> 'transcript' ->> 'path' IS NOT NULL"
    " AND EXISTS (SELECT FROM transcript_entries t WHERE t.run_id = e.run_id)"
    " ON CONFLICT DO NOTHING"
)
_HEAD = "UPDATE log_head SET log_id = %s, format = %s, position = %s, chain_hash = %s"


class LogNotEmptyError(UserError):
    """The log already contains something."""


@dataclass(frozen=True, slots=True)
class ImportOrder:
    """Options of an import. `without_texts` accepts a file without texts and transcripts. `resume`
    continues after an import of the same file was killed."""

    path: Path
    without_texts: bool = False
    resume: bool = False
    on_progress: OnTransferProgress = field(default=ignore_transfer_progress)


@dataclass(frozen=True, slots=True)
class Imported:
    """Result of an import. `began` is the number of the file's events that were stored before."""

    seal: ExportSeal
    began: int
    runs: int
    sessions: int
    seconds: float


def import_log(conninfo: str, order: ImportOrder) -> Imported:
    """Import the file.

    Raises:
        UserError: The file is wrong or not of a whole log, the log is not empty, or the database is
            unavailable. Nothing is stored then.
    """
    began = time.monotonic()
    stored = 0
    with rare_collections(), open_input(order.path) as file:
        try:
            with _open_connection(conninfo) as connection:
                seal = _resumed(connection, order, file) if order.resume else None
                if seal is not None:
                    stored = seal.events
                else:
                    seal = _store(connection, order, file)
                runs, sessions = [
                    _count_open(connection, projection.name) for projection in (RUNS, SESSIONS)
                ]
        except (FileContentError, UnknownFileFormatError) as fault:
            raise UserError(f"{order.path.name}: {fault}; nothing was imported") from fault
        except psycopg.errors.IntegrityError as error:
            reason = str(error).splitlines()[0]
            raise UserError(
                f"the file is not of a valid log: {reason}; nothing was imported"
            ) from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise UserError(
                "this user of the database does not own its tables; import as the user that ran"
                " `spawnlog migrate`"
            ) from error
        except psycopg.errors.LockNotAvailable as error:
            raise UserError(
                "another process uses this log; stop its servers and import again"
            ) from error
        except psycopg.Error as error:
            raise UserError(f"{database_error_reason(error)}; nothing was imported") from error
    return Imported(seal, stored, runs, sessions, time.monotonic() - began)


def _store(connection: ReadConnection, order: ImportOrder, file: BinaryIO) -> ExportSeal:
    file.seek(0)
    return _LogImport(connection, order, file).store()


def _count_open(connection: ReadConnection, table: str) -> int:
    (count,) = one_row(connection, f"SELECT count(*) FROM {table} WHERE to_position = {FOREVER}")
    return int(count)


def _open_connection(conninfo: str) -> ReadConnection:
    return open_sync_connection(
        conninfo,
        application="import",
        autocommit=False,
        answer_seconds_max=WHOLE_TABLE_ANSWER_SECONDS_MAX,
        settings=f"SET lock_timeout = {LOCK_WAIT_MS}; {STATEMENTS_WITHOUT_LIMIT};"
        " SET idle_in_transaction_session_timeout = 0; SET maintenance_work_mem = '128MB'",
    )


def _resumed(connection: ReadConnection, order: ImportOrder, file: BinaryIO) -> ExportSeal | None:
    """Return the file's seal if the log already holds the file, or None if the log is empty.

    If the file is right, which this function verifies, the hash chain proves that the events are
    the same. Texts and transcripts may have been erased, so only their number is compared.
    """
    head = connection.execute("SELECT log_id, position, chain_hash FROM log_head").fetchone()
    if head is None or head[1] == 0:
        return None
    reader = FileReader(file)
    _require_whole_log(reader.header, order)
    seal = _verified(FileCheck(reader, FileFindings(), 0, order.on_progress), reader.lines())
    found = (head[0], head[1], bytes(head[2]))
    if found != (reader.header.log_id, seal.last_position, seal.chain_hash):
        raise _another_log(order, "its last event differs")
    for table, count in (
        ("content_keys", seal.keys),
        ("contents", seal.contents),
        ("transcript_entries", seal.entries),
    ):
        (there,) = one_row(connection, f"SELECT count(*) FROM {table}")
        if there != count:
            raise _another_log(order, f"{there} rows of {table} instead of {count}")
    return seal


def _another_log(order: ImportOrder, difference: str) -> LogNotEmptyError:
    return LogNotEmptyError(
        f"this log differs from {order.path.name}: {difference}; import a file into a new database"
    )


def _verified(check: FileCheck, lines: Iterator[AnyLine]) -> ExportSeal:
    """Verify the lines and return the file's seal."""
    check.check(lines)
    assert check.reader.seal is not None
    return check.reader.seal


def _require_whole_log(header: ExportHeader, order: ImportOrder) -> None:
    name = order.path.name
    if header.log_format > LOG_FORMAT:
        raise UnknownFileFormatError(
            f"the log of the file has format {header.log_format} and this program knows"
            f" {LOG_FORMAT}; install a newer spawnlog"
        )
    if header.scope != "log":
        part = "a range" if header.scope == "range" else "one tree"
        raise UserError(
            f"{name} holds {part} of a log, but only a whole log can be imported; export"
            " without --from, --to and --tree"
        )
    has_all = header.has_contents and header.has_transcripts
    if header.has_contents != header.has_transcripts:
        missing = "transcripts" if header.has_contents else "texts"
        raise UserError(
            f"{name} holds no {missing}; export with --contents --transcripts, or without both"
        )
    if not has_all and not order.without_texts:
        raise UserError(
            f"{name} holds no texts and no transcripts; export with --contents --transcripts,"
            " or give --without-texts to import them all as erased"
        )
    if has_all and order.without_texts:
        raise UserError(
            f"{name} holds texts and transcripts; export without --contents and --transcripts"
            " to leave them out, or import without --without-texts"
        )


class _LogImport:
    """A running import, in one transaction."""

    def __init__(self, connection: ReadConnection, order: ImportOrder, file: BinaryIO) -> None:
        self._connection = connection
        self._order = order
        self._reader = FileReader(file)
        stated = stated_seal(self._reader, last_line(file))
        self._lines = (
            sum((stated.events, stated.keys, stated.contents, stated.entries)) if stated else 0
        )
        self._rows = FoldedRows(connection)

    def store(self) -> ExportSeal:
        """Store all lines, and commit if a verification finds no fault in them."""
        _require_whole_log(self._reader.header, self._order)
        self._require_empty()
        indexes = DroppedIndexes(self._connection, FILLED)
        check = FileCheck(
            self._reader, FileFindings(), 0, ignore_transfer_progress, on_fold=self._rows.add
        )
        with closing(self._stored()) as lines:
            seal = _verified(check, lines)
        self._rows.store()
        indexes.make(lambda done, total: self._order.on_progress("indexes", 0, done, total))
        self._finish(seal)
        self._connection.commit()
        self._connection.autocommit = True
        self._connection.execute(f"ANALYZE {', '.join(FILLED)}")
        return seal

    def _stored(self) -> Generator[AnyLine]:
        """Yield all lines; the database stores them while they are verified."""
        reader = self._reader
        for (kind, *_), lines in groupby(reader.lines(), key=self._part):
            if kind is EventLine:
                yield from self._stored_events(cast("Iterator[EventLine]", lines))
                self._rows.store()
            else:
                yield from self._copied(*COPIES[kind], lines)

    def _part(self, line: AnyLine) -> tuple[type[AnyLine], int, int]:
        """Return the group of a line: consecutive lines of a group are stored by one statement."""
        states = self._rows.bytes_added // STATES_BYTES_MAX
        return type(line), self._reader.number // COPY_LINES, states

    def _stored_events(self, events: Iterator[EventLine]) -> Iterator[EventLine]:
        ends: list[StoredEventRow] = []
        for event in self._copied("events", EVENT_COLUMNS, event_cells, events):
            if event.ends_commit:
                ends.append(event.row)
            yield event
        for _ in self._copied("commits", ("last_position", "recorded_at"), commit_cells, ends):
            pass

    def _copied(
        self,
        table: str,
        columns: Collection[str],
        cells_of: Callable[[_Item], bytes],
        items: Iterable[_Item],
    ) -> Iterator[_Item]:
        """Store a row of each item while yielding it; `cells_of` returns its columns."""
        count = struct.pack(">h", len(columns))
        waiting, size = [COPY_HEADER], 0
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for item in items:
                cells = cells_of(item)
                waiting += (count, cells)
                size += len(cells)
                if size >= WRITE_BYTES:
                    copy.write(b"".join(waiting))
                    waiting, size = [], 0
                    self._report()
                yield item
            copy.write(b"".join((*waiting, COPY_TRAILER)))
        self._report()

    def _report(self) -> None:
        # The reader may be one line ahead: at the end, at the seal.
        done = min(self._reader.number - 1, self._lines)
        self._order.on_progress("events", 0, done, self._lines)

    def _require_empty(self) -> None:
        connection = self._connection
        connection.execute(LOCK)
        query = "SELECT position, format, storage_home FROM log_head FOR UPDATE"
        position, log_format, home = one_row(connection, query)
        require_known_format(log_format)
        any_row = " OR ".join(f"EXISTS (SELECT FROM {table})" for table in EMPTY)
        (is_filled,) = one_row(connection, f"SELECT {any_row}")
        if position or is_filled:
            raise LogNotEmptyError(
                "this log is not empty; import the file into a new database, or give --resume to"
                " continue an import of it that was killed"
            )
        if home is not None:
            raise LogNotEmptyError(
                "a server has been started on this database; import the file into a new one"
            )

    def _finish(self, seal: ExportSeal) -> None:
        connection, header = self._connection, self._reader.header
        connection.execute(
            _HEAD, [header.log_id, header.log_format, seal.last_position, seal.chain_hash]
        )
        connection.execute(
            "UPDATE log_head SET recorded_at = coalesce((SELECT recorded_at FROM events"
            " WHERE position = log_head.position), recorded_at)"
        )
        connection.execute(_DUE_FILES)
        for name, version in VERSIONS.items():
            connection.execute(NOTE_VERSION, [name, version])
