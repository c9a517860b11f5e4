"""Stores an exported file into an empty log: the log is there as a whole, or nothing of it is.

One transaction stores the whole file while a verification goes through it, with the rows of runs
and sessions that the fold of this verification leads to, and commits if that has found nothing.
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
from infrastructure.contract.errors import FileFault, UserError
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
    UnknownFileFormat,
)
from infrastructure.outbound.log.transfer.verify_file import FileCheck, stated_seal
from infrastructure.outbound.log.verify.rows import (
    ReadConnection,
    StoredEventRow,
    database_error_reason,
    one_row,
)

COPY_LINES = 20_000
"""So many lines are stored by one statement, and the rows of their events by the next ones."""
STATES_BYTES_MAX = 16 * 1024 * 1024
"""Fewer lines, if the states of their rows are about so long."""
WRITE_BYTES = 256 * 1024
"""About so many bytes are sent at a time."""

FILLED = (
    *("events", "commits", "runs", "sessions"),
    *("content_keys", "contents", "transcript_entries"),
)
EMPTY = (*FILLED, "idempotency", "staged_files", "transcript_files")
"""What holds no row in a log into which a file may be imported."""

LOCK_WAIT_MS = 5_000
_Item = TypeVar("_Item")
# Servers write the files of transcripts that are not there. Of a run whose texts are erased there
# is nothing to write.
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


class LogNotEmpty(UserError):
    """There is something in the log already."""


@dataclass(frozen=True, slots=True)
class ImportOrder:
    """What to store. `without_texts` takes a file that holds neither texts nor transcripts;
    `resume` goes on where an import of the same file was killed."""

    path: Path
    without_texts: bool = False
    resume: bool = False
    on_progress: OnTransferProgress = field(default=ignore_transfer_progress)


@dataclass(frozen=True, slots=True)
class Imported:
    """What was stored; `began` is how many events of the file were there before."""

    seal: ExportSeal
    began: int
    runs: int
    sessions: int
    seconds: float


def import_log(conninfo: str, order: ImportOrder) -> Imported:
    """Store the file. `UserError` when it is not one of a whole log, or wrong anywhere, when the
    log is not empty, or the database went away: then there is nothing of it."""
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
                runs, sessions = [_count_open(connection, one.name) for one in (RUNS, SESSIONS)]
        except (FileFault, UnknownFileFormat) as fault:
            raise UserError(f"{order.path.name}: {fault}; nothing was imported") from fault
        except psycopg.errors.IntegrityError as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"the file is of no log: {reason}; nothing was imported") from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise UserError(
                "this user of the database does not own its tables; import as the one that ran"
                " `spawnlog migrate`"
            ) from error
        except psycopg.errors.LockNotAvailable as error:
            raise UserError(
                "another process works on this log; stop the servers on it and import anew"
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
    """The seal of the file when the log is already the one that it holds; None for an empty one.

    The chain of hashes says that the events are the same when the file is right, which is looked at
    as a verification does; of what is beside them, which may be erased, there must be as much.
    """
    head = connection.execute("SELECT log_id, position, chain_hash FROM log_head").fetchone()
    if head is None or head[1] == 0:
        return None
    reader = FileReader(file)
    _require_whole_log(reader.header, order)
    seal = _verified(FileCheck(reader, FileFindings(), 0, order.on_progress), reader.lines())
    found = (head[0], head[1], bytes(head[2]))
    if found != (reader.header.log_id, seal.last_position, seal.chain_hash):
        raise _another_log(order, "its last event is another one")
    for table, count in (
        ("content_keys", seal.keys),
        ("contents", seal.contents),
        ("transcript_entries", seal.entries),
    ):
        (there,) = one_row(connection, f"SELECT count(*) FROM {table}")
        if there != count:
            raise _another_log(order, f"{there} rows of {table} and not {count}")
    return seal


def _another_log(order: ImportOrder, what: str) -> LogNotEmpty:
    return LogNotEmpty(
        f"this log is not what {order.path.name} holds: {what}; a file is imported into a new"
        " database"
    )


def _verified(check: FileCheck, lines: Iterator[AnyLine]) -> ExportSeal:
    """The seal of a file in whose lines a verification finds nothing."""
    check.check(lines)
    assert check.reader.seal is not None
    return check.reader.seal


def _require_whole_log(header: ExportHeader, order: ImportOrder) -> None:
    name = order.path.name
    if header.log_format > LOG_FORMAT:
        raise UnknownFileFormat(
            f"the log of the file has format {header.log_format} and this program knows"
            f" {LOG_FORMAT}; install a newer spawnlog"
        )
    if header.scope != "log":
        what = "a range" if header.scope == "range" else "one tree"
        raise UserError(
            f"{name} holds {what} of a log, and only a whole log can be imported; export"
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
            " or give --without-texts to have all of them read as erased"
        )
    if has_all and order.without_texts:
        raise UserError(
            f"{name} holds texts and transcripts; export without --contents and --transcripts"
            " to leave them out, or import without --without-texts"
        )


class _LogImport:
    """One import under way, in one transaction."""

    def __init__(self, connection: ReadConnection, order: ImportOrder, file: BinaryIO) -> None:
        self._connection = connection
        self._order = order
        self._reader = FileReader(file)
        said = stated_seal(self._reader, last_line(file))
        self._lines = sum((said.events, said.keys, said.contents, said.entries)) if said else 0
        self._rows = FoldedRows(connection)

    def store(self) -> ExportSeal:
        """Store all lines, and commit if a verification finds nothing in them."""
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
        """All lines; the database stores them while they are verified."""
        reader = self._reader
        for (kind, *_), lines in groupby(reader.lines(), key=self._part):
            if kind is EventLine:
                yield from self._stored_events(cast("Iterator[EventLine]", lines))
                self._rows.store()
            else:
                yield from self._copied(*COPIES[kind], lines)

    def _part(self, line: AnyLine) -> tuple[type[AnyLine], int, int]:
        """Return what the lines of one statement have in common."""
        states = self._rows.bytes_added // STATES_BYTES_MAX
        return type(line), self._reader.number // COPY_LINES, states

    def _stored_events(self, events: Iterator[EventLine]) -> Iterator[EventLine]:
        ends: list[StoredEventRow] = []
        for one in self._copied("events", EVENT_COLUMNS, event_cells, events):
            if one.ends_commit:
                ends.append(one.row)
            yield one
        for _ in self._copied("commits", ("last_position", "recorded_at"), commit_cells, ends):
            pass

    def _copied(
        self,
        table: str,
        columns: Collection[str],
        cells_of: Callable[[_Item], bytes],
        items: Iterable[_Item],
    ) -> Iterator[_Item]:
        """Store a row of each item while they are gone through; `cells_of` gives its columns."""
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
                    self._order.on_progress("events", 0, self._reader.number - 1, self._lines)
                yield item
            copy.write(b"".join((*waiting, COPY_TRAILER)))
        self._order.on_progress("events", 0, self._reader.number - 1, self._lines)

    def _require_empty(self) -> None:
        connection = self._connection
        connection.execute(LOCK)
        query = "SELECT position, format, storage_home FROM log_head FOR UPDATE"
        position, log_format, home = one_row(connection, query)
        require_known_format(log_format)
        any_row = " OR ".join(f"EXISTS (SELECT FROM {table})" for table in EMPTY)
        (is_filled,) = one_row(connection, f"SELECT {any_row}")
        if position or is_filled:
            raise LogNotEmpty(
                "this log is not empty; a file is imported into a new database, or goes on with"
                " --resume when an import of it was killed"
            )
        if home is not None:
            raise LogNotEmpty(
                "a server has been started on this database; a file is imported into a new one"
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
