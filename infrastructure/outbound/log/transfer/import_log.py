"""Stores an exported file into an empty log: the log is there as a whole, or nothing of it is.

What the file holds comes in one transaction. Its rows of runs and sessions are noted as made by no
release, so they are made by the rebuild behind it, or by the first server that starts when that was
killed: nobody ever serves a log without them.
"""

import asyncio
import contextlib
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import psycopg

from application.projections.run_rows import RUNS
from application.projections.session_rows import SESSIONS
from domain.event_types import LOG_FORMAT
from domain.values.refusals import CorruptHistory
from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import (
    OnProgress,
    OnTransferProgress,
    RebuildProgress,
    TransferStep,
    ignore_transfer_progress,
)
from infrastructure.outbound.log.append.load import LOCK
from infrastructure.outbound.log.append.store import PREVIEW_CHARS
from infrastructure.outbound.log.codec.binary import COPY_HEADER, COPY_TRAILER
from infrastructure.outbound.log.rebuild.rebuild import (
    WAIT_SECONDS,
    RebuildUnderWay,
    count_open,
    open_rebuild_connection,
    rebuild,
)
from infrastructure.outbound.log.schema.connections import (
    WHOLE_TABLE_ANSWER_SECONDS_MAX,
    open_sync_connection,
)
from infrastructure.outbound.log.schema.format import require_known_format
from infrastructure.outbound.log.schema.projection_versions import VERSIONS, stale_projections
from infrastructure.outbound.log.transfer.bulk_indexes import drop_indexes, make_indexes
from infrastructure.outbound.log.transfer.event_line import EVENT_COLUMNS, EventLine, LineFault
from infrastructure.outbound.log.transfer.file_reader import AnyLine, FileFault, FileReader
from infrastructure.outbound.log.transfer.fold_file import FileFolds
from infrastructure.outbound.log.transfer.line_file import last_line, open_input, rare_collections
from infrastructure.outbound.log.transfer.spool import Spool
from infrastructure.outbound.log.transfer.text_lines import (
    ContentLine,
    EntryLine,
    ExportHeader,
    ExportSeal,
    KeyLine,
    UnknownFileFormat,
    parse_seal,
)
from infrastructure.outbound.log.transfer.verify_file import FileCheck, FileFindings
from infrastructure.outbound.log.verify.rows import ReadConnection, database_error_reason, one_row

PAGE_BYTES = 4 * 1024 * 1024
TABLES = {
    "events": EVENT_COLUMNS,
    "commits": ("last_position", "recorded_at"),
    "content_keys": ("session_id", "key"),
    "contents": ("content_id", "session_id", "kind", "bytes", "hmac", "preview", "body"),
    "transcript_entries": ("run_id", "sequence", "recorded_at", "kind", "body"),
}
EMPTY = (*TABLES, "runs", "sessions", "idempotency", "staged_files", "transcript_files")
"""What holds no row in a log into which a file may be imported."""

PROCESSES_FROM_EVENTS = 20_000
"""Fewer are folded when they are stored, before a process would have started."""

LOCK_WAIT_MS = 5_000
_YEAR_2000_MICROSECONDS = 946_684_800_000_000
_COMMIT = struct.Struct(">hiqiq").pack
_LENGTH = struct.Struct(">i").pack
_COUNT = struct.Struct(">h").pack
_NUMBER = struct.Struct(">ii").pack
_INSTANT = struct.Struct(">iq").pack
_ID = b"\0\0\0\x10"

# Servers write the files of transcripts that are not there. Of a run whose texts are erased there
# is nothing to write.
_DUE_FILES = (
    "INSERT INTO transcript_files (run_id, is_archived, due_at)"
    " SELECT e.run_id, EXISTS (SELECT FROM events a WHERE a.run_id = e.run_id"
    " AND a.type = 'RunArchived'), statement_timestamp() FROM events e WHERE e.type = 'RunEnded'"
    " AND e.run_id IS NOT NULL"
    " AND convert_from(e.state, 'UTF8')::json -> 'transcript' ->> 'path' IS NOT NULL"
    " AND EXISTS (SELECT FROM transcript_entries t WHERE t.run_id = e.run_id)"
    " ON CONFLICT DO NOTHING"
)
_GAP = "SELECT stream FROM events GROUP BY stream HAVING count(*) <> max(version) LIMIT 1"
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
                    seal = _store(connection, conninfo, order, file)
        except (FileFault, UnknownFileFormat) as fault:
            raise UserError(f"{order.path.name}: {fault}; nothing was imported") from fault
        except CorruptHistory as error:
            raise _misfit_failure(error) from error
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
    runs, sessions = _make_rows(conninfo, seal, order.on_progress)
    return Imported(seal, stored, runs, sessions, time.monotonic() - began)


def _store(
    connection: ReadConnection, conninfo: str, order: ImportOrder, file: BinaryIO
) -> ExportSeal:
    file.seek(0)
    work = _LogImport(connection, order, file)
    work.begin()
    if work.events < PROCESSES_FROM_EVENTS:
        return work.store(None)
    with FileFolds(conninfo, order.path) as folds:
        return work.store(folds)


def _misfit_failure(error: CorruptHistory) -> UserError:
    return UserError(
        f"the events of the file do not follow from each other: {error}; nothing was imported"
    )


def _open_connection(conninfo: str) -> ReadConnection:
    return open_sync_connection(
        conninfo,
        application="import",
        autocommit=False,
        answer_seconds_max=WHOLE_TABLE_ANSWER_SECONDS_MAX,
        settings=f"SET lock_timeout = {LOCK_WAIT_MS}; SET statement_timeout = 0;"
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
    _check_file(reader, reader.lines(), order.on_progress)
    seal = reader.seal
    assert seal is not None
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


def _check_file(
    reader: FileReader, lines: Iterator[AnyLine], on_progress: OnTransferProgress
) -> None:
    """All that a verification of the file looks at, of the lines of its reader."""
    with Spool() as spool:
        FileCheck(reader, spool, FileFindings(), None, on_progress).check(lines)


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
        self._file = file
        self._pages: dict[str, list[bytes]] = {table: [] for table in TABLES}
        self._bytes = 0
        self._lines = 0
        self.events = 0

    def begin(self) -> None:
        """Look at the file's first line, and whether the log is empty; hold it from now on.

        `events` are as many as the last line says, which is looked at when it is reached.
        """
        self._reader = FileReader(self._file)
        _require_whole_log(self._reader.header, self._order)
        with contextlib.suppress(LineFault):
            seal = parse_seal(last_line(self._file), self._reader.header.source)
            self.events = seal.events
            self._lines = seal.events + seal.keys + seal.contents + seal.entries
        self._require_empty()

    def store(self, folds: FileFolds | None) -> ExportSeal:
        """Store all lines, and commit when all of them are right. With `folds` the rows are made
        beside it."""
        reader = self._reader
        indexes = drop_indexes(self._connection, list(TABLES))
        if folds is None:
            _check_file(reader, self._stored(), ignore_transfer_progress)
        else:
            # The processes hold what they read against what they fold.
            for _ in self._stored():
                pass
        seal = reader.seal
        assert seal is not None
        tell = self._order.on_progress
        make_indexes(self._connection, indexes, lambda done, all_: tell("indexes", 0, done, all_))
        self._finish(reader, seal)
        if folds is not None:
            tell("rows", 0, 0, 0)
            folds.finish(seal.events, seal.sha256)
            folds.adopt(self._connection, seal.last_position)
        self._connection.commit()
        self._connection.autocommit = True
        self._connection.execute(f"ANALYZE {', '.join(TABLES)}")
        return seal

    def _stored(self) -> Iterator[AnyLine]:
        """All lines, each once it is on its way into the database."""
        for one in self._reader.lines():
            self._add(one)
            if self._bytes >= PAGE_BYTES:
                self._send()
                self._order.on_progress("events", 0, self._reader.number - 1, self._lines)
            yield one
        self._send()

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

    def _add(self, one: EventLine | KeyLine | ContentLine | EntryLine) -> None:
        pages = self._pages
        if isinstance(one, EventLine):
            pages["events"].append(one.copied)
            self._bytes += len(one.copied)
            if one.ends_commit:
                instant = one.row.recorded_at - _YEAR_2000_MICROSECONDS
                pages["commits"].append(_COMMIT(2, 8, one.row.position, 8, instant))
            return
        table, row = _copied(one)
        pages[table].append(row)
        self._bytes += len(row)

    def _send(self) -> None:
        for table, rows in self._pages.items():
            if not rows:
                continue
            columns = ", ".join(TABLES[table])
            statement = f"COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)"
            with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
                for piece in (COPY_HEADER, b"".join(rows), COPY_TRAILER):
                    copy.write(piece)
            rows.clear()
        self._bytes = 0

    def _finish(self, reader: FileReader, seal: ExportSeal) -> None:
        connection, header = self._connection, reader.header
        connection.execute(
            _HEAD, [header.log_id, header.log_format, seal.last_position, seal.chain_hash]
        )
        connection.execute(
            "UPDATE log_head SET recorded_at = coalesce((SELECT recorded_at FROM events"
            " WHERE position = log_head.position), recorded_at)"
        )
        gap = connection.execute(_GAP).fetchone()
        if gap is not None:
            raise UserError(
                f"the file is of no log: versions of the stream {gap[0][:200]!r} are missing;"
                " nothing was imported"
            )
        connection.execute(_DUE_FILES)
        _note_unmade_rows(connection)


def _note_unmade_rows(connection: ReadConnection) -> None:
    """Note that the rows are of no release's making: whoever starts on them makes them anew."""
    for name in VERSIONS:
        connection.execute(
            "INSERT INTO projections (name, version) VALUES (%s, 0)"
            " ON CONFLICT (name) DO UPDATE SET version = 0",
            [name],
        )


def _copied(one: KeyLine | ContentLine | EntryLine) -> tuple[str, bytes]:
    """The table of a line beside the events, and its row as COPY takes it."""
    if isinstance(one, KeyLine):
        return "content_keys", b"".join(
            (_COUNT(2), _ID, one.session_id, _LENGTH(len(one.key)), one.key)
        )
    if isinstance(one, ContentLine):
        body = one.body.encode()
        texts = (one.hmac.encode(), one.body[:PREVIEW_CHARS].encode(), body)
        return "contents", b"".join(
            (
                *(_COUNT(7), _ID, one.content_id, _ID, one.session_id),
                _text(one.kind.encode()),
                _NUMBER(4, len(body)),
                *map(_text, texts),
            )
        )
    return "transcript_entries", b"".join(
        (
            *(_COUNT(5), _ID, one.run_id, _NUMBER(4, one.sequence)),
            _INSTANT(8, one.recorded_at - _YEAR_2000_MICROSECONDS),
            _text(one.kind.encode()),
            _text(one.body),
        )
    )


def _text(data: bytes) -> bytes:
    return _LENGTH(len(data)) + data


def _make_rows(conninfo: str, seal: ExportSeal, on_progress: OnTransferProgress) -> tuple[int, int]:
    def tell(progress: RebuildProgress) -> None:
        step: TransferStep = "rows" if progress.step == "events" else "indexes"
        on_progress(step, progress.began, progress.done, progress.total)

    try:
        return asyncio.run(_have_rows(conninfo, tell))
    except CorruptHistory as error:
        _empty(conninfo, seal)
        raise _misfit_failure(error) from error
    except psycopg.Error as error:
        raise UserError(
            f"the events are stored, their rows are not: {database_error_reason(error)}; go on"
            " with --resume, or start a server, which makes them"
        ) from error


async def _have_rows(conninfo: str, on_progress: OnProgress) -> tuple[int, int]:
    """Make the rows, unless a server that has started meanwhile does; gives how many runs and
    sessions there are."""
    async with open_rebuild_connection(conninfo) as connection:
        while await stale_projections(connection):
            try:
                made = await rebuild(conninfo, compare=False, on_progress=on_progress)
            except RebuildUnderWay:
                await asyncio.sleep(WAIT_SECONDS)
            else:
                return made.runs, made.sessions
        runs, sessions = [await count_open(connection, one.name) for one in (RUNS, SESSIONS)]
    return runs, sessions


def _empty(conninfo: str, seal: ExportSeal) -> None:
    """Take everything out again that was stored. Nobody can have added to it: no server starts on
    events that cannot be folded."""
    with _open_connection(conninfo) as connection:
        connection.execute(LOCK)
        query = "SELECT position, chain_hash FROM log_head FOR UPDATE"
        position, chain_hash = one_row(connection, query)
        if (position, bytes(chain_hash)) != (seal.last_position, seal.chain_hash):
            return
        connection.execute(f"TRUNCATE {', '.join(EMPTY)}, projections")
        connection.execute(
            "UPDATE log_head SET log_id = %s, position = 0, recorded_at = 'epoch',"
            " chain_hash = '', format = 1",
            [uuid4()],
        )
