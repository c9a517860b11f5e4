"""Writes the log, a range of it or a tree as lines, in one snapshot and beside its servers."""

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg

from domain.run.events import RunEnded
from domain.values.refusals import CorruptHistory
from infrastructure.contract.errors import NameUnknown, UserError
from infrastructure.contract.operations import OnTransferProgress, ignore_transfer_progress
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.schema.format import require_known_format
from infrastructure.outbound.log.transfer.event_line import (
    LineFault,
    event_line,
)
from infrastructure.outbound.log.transfer.file_reader import FileFault, FileReader
from infrastructure.outbound.log.transfer.line_file import (
    LINE_BYTES_MAX,
    OutputFile,
    OutputStream,
    rare_collections,
)
from infrastructure.outbound.log.transfer.spool import Spool, SpooledMention, SpooledTranscript
from infrastructure.outbound.log.transfer.text_lines import (
    ContentLine,
    EntryLine,
    ExportHeader,
    ExportScope,
    ExportSeal,
    KeyLine,
    UnknownFileFormat,
    content_line,
    entry_line,
    key_line,
)
from infrastructure.outbound.log.verify.chain import BEGINNING, Link, link_to, walk
from infrastructure.outbound.log.verify.contents import find_references
from infrastructure.outbound.log.verify.rows import (
    ReadConnection,
    StoredEventRow,
    database_error_reason,
    one_row,
    open_read_connection,
    read_rows,
    read_rows_at,
    whole_table_transaction,
)
from infrastructure.outbound.log.verify.streams import commits_between

PAGE_EVENTS = 5_000
WRITE_BYTES = 1024 * 1024
_EPOCH_MICROSECONDS = "(extract(epoch FROM recorded_at) * 1000000)::bigint"

# Without its key nothing shows that a text or a transcript is the one that was recorded: it is, or
# counts as, erased.
_KEYS = "SELECT session_id, key FROM content_keys ORDER BY session_id"
_CONTENTS = (
    "SELECT c.content_id, c.session_id, c.kind, c.hmac, c.body FROM contents c"
    " JOIN content_keys k USING (session_id) ORDER BY c.content_id"
)
_SOME_CONTENTS = (
    "SELECT c.content_id, c.session_id, c.kind, c.hmac, c.body FROM contents c"
    " JOIN content_keys k USING (session_id) WHERE c.content_id = ANY(%b) ORDER BY c.content_id"
)
_SOME_KEYS = (
    "SELECT session_id, key FROM content_keys WHERE session_id IN"
    " (SELECT session_id FROM contents WHERE content_id = ANY(%b))"
)
_RUN_KEYS = (
    "SELECT k.session_id, k.key, e.run_id FROM events e JOIN content_keys k ON k.session_id ="
    " (convert_from(e.state, 'UTF8')::json ->> 'sessionId')::uuid"
    " WHERE e.stream = ANY(%b) AND e.version = 1"
)
_RUNS_WITH_ENTRIES = (
    "SELECT run_id FROM transcript_entries WHERE run_id > %b GROUP BY run_id ORDER BY run_id"
    " LIMIT 500"
)
_ENTRIES = (
    f"SELECT run_id, sequence, {_EPOCH_MICROSECONDS}, kind, body FROM transcript_entries"
    " WHERE run_id = ANY(%b) ORDER BY run_id, sequence"
)
_TREE_POSITIONS = (
    "SELECT position FROM events WHERE correlation = %s AND position > %s AND position <= %s"
    f" ORDER BY position LIMIT {PAGE_EVENTS}"
)
_HASHES = "SELECT position + 1, chain_hash FROM events WHERE position = ANY(%s)"


@dataclass(frozen=True, slots=True)
class ExportOrder:
    """What to write. `first` and `last` are the positions of a range, `tree` the key of a root
    session; None of them is the whole log. `is_resumed` goes on with what the file holds."""

    destination: OutputFile | OutputStream
    first: int | None = None
    last: int | None = None
    tree: str | None = None
    has_contents: bool = False
    has_transcripts: bool = False
    is_resumed: bool = False
    on_progress: OnTransferProgress = field(default=ignore_transfer_progress)


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written; `began` is how many of the events were there already."""

    header: ExportHeader
    seal: ExportSeal
    began: int
    seconds: float


def export_log(conninfo: str, order: ExportOrder) -> Exported:
    """Write the lines in one snapshot. `UserError` when the log is not one that can be exported,
    when its chain is broken, or when the database went away."""
    began = time.monotonic()
    try:
        with rare_collections(), open_read_connection(conninfo) as connection, Spool() as spool:
            with whole_table_transaction(connection):
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                header, seal, resumed = _LogExport(connection, order, spool).write()
    except psycopg.Error as error:
        raise UserError(f"{database_error_reason(error)}; go on with --resume") from error
    return Exported(header, seal, resumed, time.monotonic() - began)


class _LogExport:
    """One export under way, inside of its snapshot."""

    def __init__(self, connection: ReadConnection, order: ExportOrder, spool: Spool) -> None:
        self._connection = connection
        self._order = order
        self._spool = spool
        self._mapper = EventMapper()
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._events = self._keys = self._contents = self._entries = 0

    def write(self) -> tuple[ExportHeader, ExportSeal, int]:
        order = self._order
        header, head = self._begin()
        self._source = header.source
        link = BEGINNING._replace(
            position=header.after, chain_hash=header.after_hash, append_last=header.after
        )
        resumed = 0
        if order.is_resumed and isinstance(order.destination, OutputFile):
            found = self._go_on(order.destination, header)
            if found is not None:
                link, resumed = found, self._events
        if not resumed:
            self._add(header.line())
        last = head if header.until is None else header.until
        if header.scope == "tree":
            link = self._write_tree(header, link, last)
        else:
            link = self._write_range(link, last)
        if header.has_contents:
            self._write_keys(header)
            self._write_contents(header)
        if header.has_transcripts:
            self._write_transcripts(header)
        self._send()
        seal = ExportSeal(
            self._events,
            link.position,
            link.chain_hash,
            self._keys,
            self._contents,
            self._entries,
            order.destination.digest.digest(),
        )
        self._add(seal.line(header.source))
        self._send()
        order.destination.finish()
        return header, seal, resumed

    def _begin(self) -> tuple[ExportHeader, int]:
        order, connection = self._order, self._connection
        query = "SELECT log_id, format, position FROM log_head"
        log_id, log_format, head = one_row(connection, query)
        require_known_format(log_format)
        first, last = order.first or 1, order.last
        if first > head + 1 or (last is not None and last > head):
            raise UserError(f"the log ends at position {head}; name positions up to there")
        if last is not None and last < first:
            raise UserError(f"the range from {first} to {last} is none")
        after, after_hash = first - 1, b""
        if after and order.tree is None:
            query = "SELECT chain_hash FROM events WHERE position = %s"
            after_hash = bytes(one_row(connection, query, [after])[0])
        scope: ExportScope = "log" if after == 0 and last is None else "range"
        header = ExportHeader(
            log_id=log_id,
            log_format=log_format,
            scope="tree" if order.tree is not None else scope,
            after=after,
            after_hash=after_hash,
            until=last,
            tree=order.tree,
            has_contents=order.has_contents,
            has_transcripts=order.has_transcripts,
        )
        return header, head

    def _go_on(self, file: OutputFile, header: ExportHeader) -> Link | None:
        """What is there of an earlier export of the same: its events, which never change. Texts may
        have been erased meanwhile, so they are written anew. None when nothing is there."""
        reading = file.reading
        if not reading.read(1):
            return None
        reading.seek(0)
        try:
            reader = FileReader(reading)
            if reader.header != header:
                raise UserError(
                    f"{file.part} is of another export, of other positions, another tree or log;"
                    " give the same flags, or --force to begin anew"
                )
            noted: list[StoredEventRow] = []
            for one in reader.events_only():
                noted.append(one.row)
                if len(noted) >= PAGE_EVENTS:
                    self._note(noted)
                    noted = []
            self._note(noted)
        except (FileFault, UnknownFileFormat) as fault:
            raise UserError(
                f"{file.part} cannot be gone on with: {fault}; give --force to begin anew"
            ) from fault
        link = reader.link
        if reader.events:
            query = "SELECT chain_hash FROM events WHERE position = %s"
            row = self._connection.execute(query, [link.position]).fetchone()
            if row is None or bytes(row[0]) != link.chain_hash:
                raise UserError(
                    f"{file.part} holds another event at position {link.position} than the log;"
                    " give --force to begin anew"
                )
        file.go_on_from(reader.bytes_read, reader.digest)
        self._events = reader.events
        if not reader.events:
            file.go_on_from(0, hashlib.sha256())
            return None
        return link

    def _write_range(self, link: Link, last: int) -> Link:
        began = link.position
        for first in range(link.position + 1, last + 1, PAGE_EVENTS):
            until = min(first + PAGE_EVENTS - 1, last)
            commits = commits_between(self._connection, first, until)
            walked = walk(link, read_rows(self._connection, first, until), until)
            if walked.difference is not None:
                raise UserError(
                    f"the log is broken at {walked.difference}; run `spawnlog log verify`"
                )
            for row in walked.rows:
                committed = commits.get(row.position)
                if committed not in (None, row.recorded_at):
                    raise UserError(
                        f"the log is broken at position {row.position}: the table of commits says"
                        " another instant; run `spawnlog log verify`"
                    )
                self._add_event(row, ends_commit=committed is not None)
            self._note(walked.rows)
            link = walked.link
            self._order.on_progress("events", began, until, last)
        return link

    def _write_tree(self, header: ExportHeader, link: Link, last: int) -> Link:
        after = link.position
        while True:
            values = [header.tree, after, last]
            rows = self._connection.execute(_TREE_POSITIONS, values).fetchall()
            positions = [row[0] for row in rows]
            if not positions:
                break
            before = self._connection.execute(_HASHES, [[one - 1 for one in positions]])
            hashes: dict[int, bytes] = {1: b"", **{row[0]: bytes(row[1]) for row in before}}
            commits = commits_between(self._connection, positions[0], positions[-1])
            events = list(read_rows_at(self._connection, positions))
            for row in events:
                if row.hash_after(hashes.get(row.position, b"")) != row.chain_hash:
                    raise UserError(
                        f"the log is broken at position {row.position}; run `spawnlog log verify`"
                    )
                self._add_event(
                    row,
                    ends_commit=row.position in commits,
                    previous_hash=hashes[row.position],
                )
                link = link_to(row)
            self._note(events)
            after = positions[-1]
            self._order.on_progress("events", header.after, after, last)
        if not self._events:
            raise NameUnknown(
                "no event is of a tree with this root; give the key of a root session, as"
                " `spawnlog event list --output json` has it as correlation"
            )
        return link

    def _add_event(self, row: StoredEventRow, **more: Any) -> None:
        try:
            self._add(event_line(self._source, row, **more))
        except LineFault as fault:
            raise UserError(f"position {row.position} cannot be exported: {fault}") from fault
        self._events += 1

    def _note(self, rows: Sequence[StoredEventRow]) -> None:
        """For a part of the log: which texts and transcripts its events refer to."""
        order = self._order
        if (order.first, order.last, order.tree) == (None, None, None):
            return
        if not (order.has_contents or order.has_transcripts):
            return
        mentions: list[SpooledMention] = []
        transcripts: list[SpooledTranscript] = []
        for row in rows:
            try:
                event = self._mapper.event(
                    row.stream, row.version, row.type, row.type_version, row.state
                )
            except CorruptHistory as error:
                raise UserError(f"position {row.position} cannot be read: {error}") from error
            for place, ref in find_references(event):
                mention = SpooledMention(
                    ref.id.bytes, None, ref.bytes, ref.hmac, row.position, place, row.stream
                )
                mentions.append(mention)
            if type(event) is RunEnded and event.transcript is not None:
                seal = event.transcript
                run_id = UUID(row.stream.partition(":")[2]).bytes
                transcripts.append(
                    SpooledTranscript(run_id, None, row.position, seal.count, seal.bytes, seal.hmac)
                )
        self._spool.add_mentions(mentions)
        self._spool.add_transcripts(transcripts)

    def _write_keys(self, header: ExportHeader) -> None:
        if header.scope == "log":
            keys: Iterable[Any] = self._stream(_KEYS)
        else:
            for ids in self._spool.mentioned_ids():
                found = self._connection.execute(_SOME_KEYS, [ids], binary=True)
                self._spool.add_keys((row[0].bytes, bytes(row[1])) for row in found.fetchall())
            if header.has_transcripts:
                for runs in _grouped(UUID(bytes=one.run_id) for one in self._spool.transcripts()):
                    found = self._connection.execute(_RUN_KEYS, [_streams(runs)], binary=True)
                    rows = found.fetchall()
                    self._spool.add_keys((row[0].bytes, bytes(row[1])) for row in rows)
            keys = ((UUID(bytes=one), key) for one, key in self._spool.all_keys())
        for session_id, key in keys:
            self._add(key_line(self._source, KeyLine(session_id.bytes, bytes(key))))
            self._keys += 1

    def _write_contents(self, header: ExportHeader) -> None:
        if header.scope == "log":
            self._add_contents(self._stream(_CONTENTS))
            return
        for ids in self._spool.mentioned_ids():
            self._add_contents(self._stream(_SOME_CONTENTS, [ids]))

    def _add_contents(self, rows: Iterable[Any]) -> None:
        for content_id, session_id, kind, keyed_hash, body in rows:
            one = ContentLine(content_id.bytes, session_id.bytes, kind, keyed_hash, body)
            self._add(content_line(self._source, one))
            self._contents += 1
            if self._contents % PAGE_EVENTS == 0:
                self._order.on_progress("texts", 0, self._contents, 0)

    def _write_transcripts(self, header: ExportHeader) -> None:
        if header.scope == "log":
            groups = self._runs_with_entries()
        else:
            groups = _grouped(UUID(bytes=one.run_id) for one in self._spool.transcripts())
        for runs in groups:
            found = self._connection.execute(_RUN_KEYS, [_streams(runs)], binary=True)
            with_key = [row[2] for row in found.fetchall()]
            for run_id, sequence, recorded_at, kind, body in self._stream(_ENTRIES, [with_key]):
                one = EntryLine(run_id.bytes, sequence, recorded_at, kind, body.encode())
                self._add(entry_line(self._source, one))
                self._entries += 1
                if self._entries % PAGE_EVENTS == 0:
                    self._order.on_progress("transcripts", 0, self._entries, 0)

    def _runs_with_entries(self) -> Iterator[list[UUID]]:
        last = UUID(int=0)
        while True:
            found = self._connection.execute(_RUNS_WITH_ENTRIES, [last]).fetchall()
            if not found:
                return
            yield [row[0] for row in found]
            last = found[-1][0]

    def _stream(self, query: str, values: Sequence[Any] | None = None) -> Iterator[Any]:
        """The rows of a query, one in memory at a time."""
        with self._connection.cursor(binary=True) as cursor:
            yield from cursor.stream(query, values)

    def _add(self, line: bytes) -> None:
        if len(line) > LINE_BYTES_MAX:
            raise UserError(f"a line would have more than {LINE_BYTES_MAX} bytes")
        self._waiting.append(line)
        self._waiting_bytes += len(line)
        if self._waiting_bytes >= WRITE_BYTES:
            self._send()

    def _send(self) -> None:
        self._order.destination.write(b"".join(self._waiting))
        self._waiting = []
        self._waiting_bytes = 0


def _streams(runs: Iterable[UUID]) -> list[str]:
    return [f"run:{one}" for one in runs]


def _grouped(run_ids: Iterable[UUID]) -> Iterator[list[UUID]]:
    group: list[UUID] = []
    for one in run_ids:
        group.append(one)
        if len(group) == 500:
            yield group
            group = []
    if group:
        yield group
