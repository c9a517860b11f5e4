"""Export of the log, a range of it or a tree as lines, in one snapshot and while servers run."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg

from application.log.texts import keyed_hash
from domain.values.record import run_stream
from domain.values.refusals import CorruptHistoryError
from infrastructure.contract.errors import FileContentError, UnknownNameError, UserError
from infrastructure.contract.operations import OnTransferProgress, ignore_transfer_progress
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.process import rare_collections
from infrastructure.outbound.log.read.events import OF_TREE
from infrastructure.outbound.log.schema.format import require_known_format
from infrastructure.outbound.log.transfer.file_reader import FileReader
from infrastructure.outbound.log.transfer.line_file import (
    LINE_BYTES_MAX,
    OutputFile,
    OutputStream,
)
from infrastructure.outbound.log.transfer.lines import (
    ContentLine,
    EntryLine,
    ExportHeader,
    ExportScope,
    ExportSeal,
    KeyLine,
    LineFormatError,
    UnknownFileFormatError,
    event_line,
)
from infrastructure.outbound.log.verify.chain import BEGINNING, Link, link_to, verify_chain
from infrastructure.outbound.log.verify.references import References
from infrastructure.outbound.log.verify.refold import unfolded
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

# Without its key, nothing proves that a text or transcript is the recorded one: it is erased, or
# counts as erased.
_KEYS = "SELECT session_id, key FROM content_keys{where} ORDER BY session_id"
_CONTENTS = (
    "SELECT c.content_id, c.session_id, c.kind, k.key, c.body FROM contents c"
    " JOIN content_keys k USING (session_id){where} ORDER BY c.content_id"
)
_OWNERS = "SELECT DISTINCT session_id FROM contents WHERE content_id = ANY(%b)"
_RUN_OWNERS = (
    "SELECT e.run_id, k.session_id FROM events e JOIN content_keys k ON k.session_id ="
    " (convert_from(e.state, 'UTF8')::json ->> 'sessionId')::uuid"
    " WHERE e.version = 1 AND {where}"
)
_ENTRIES = (
    "SELECT run_id, sequence, recorded_at, kind, body FROM transcript_entries{where}"
    " ORDER BY run_id, sequence"
)
_TREE_POSITIONS = (
    f"SELECT position FROM events WHERE {OF_TREE.format(tree='%(tree)s')}"
    f" AND position > %(after)s AND position <= %(last)s ORDER BY position LIMIT {PAGE_EVENTS}"
)
_HASHES = "SELECT position + 1, chain_hash FROM events WHERE position = ANY(%s)"


@dataclass(frozen=True, slots=True)
class ExportOrder:
    """Options of an export. `first` and `last` are the positions of a range, `tree` is the key of a
    root session; without all three, the whole log is exported. With `is_resumed`, continue an
    unfinished file."""

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
    """Result of an export. `began` is the number of events that the file had before."""

    header: ExportHeader
    seal: ExportSeal
    began: int
    seconds: float


def export_log(conninfo: str, order: ExportOrder) -> Exported:
    """Export the log in one snapshot.

    Raises:
        UserError: The log cannot be exported, its chain is broken, or the database is unavailable.
    """
    began = time.monotonic()
    try:
        with rare_collections(), open_read_connection(conninfo) as connection:
            with whole_table_transaction(connection):
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                header, seal, resumed = _LogExport(connection, order).write()
    except psycopg.Error as error:
        raise UserError(f"{database_error_reason(error)}; continue with --resume") from error
    return Exported(header, seal, resumed, time.monotonic() - began)


class _LogExport:
    """A running export, inside its snapshot."""

    def __init__(self, connection: ReadConnection, order: ExportOrder) -> None:
        self._connection = connection
        self._order = order
        self._content_ids: set[UUID] = set()
        self._sealed_runs: set[UUID] = set()
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
            found = self._resume(order.destination, header)
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
            self._write_keys()
            self._write_contents()
        if header.has_transcripts:
            self._write_transcripts()
        self._flush()
        seal = ExportSeal(
            events=self._events,
            last_position=link.position,
            chain_hash=link.chain_hash,
            keys=self._keys,
            contents=self._contents,
            entries=self._entries,
            sha256=order.destination.digest.digest(),
        )
        self._add(seal.line(header.source))
        self._flush()
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
            raise UserError(f"the range is empty: {first} is after {last}")
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

    def _resume(self, file: OutputFile, header: ExportHeader) -> Link | None:
        """Continue an unfinished file of the same export: keep its events, which never change. Its
        texts may have been erased in the meantime, so they are written again. Return None if the
        file has no events."""
        reading = file.reading
        if not reading.read(1):
            return None
        reading.seek(0)
        try:
            reader = FileReader(reading)
            if reader.header != header:
                raise UserError(
                    f"{file.part} is of another export, of other positions, another tree or log;"
                    " give the same flags, or --force to start over"
                )
            noted: list[StoredEventRow] = []
            for event in reader.events_only():
                noted.append(event.row)
                if len(noted) >= PAGE_EVENTS:
                    self._collect_references(noted)
                    noted = []
            self._collect_references(noted)
        except (FileContentError, UnknownFileFormatError) as fault:
            raise UserError(
                f"{file.part} cannot be resumed: {fault}; give --force to start over"
            ) from fault
        link = reader.link
        if reader.events:
            query = "SELECT chain_hash FROM events WHERE position = %s"
            row = self._connection.execute(query, [link.position]).fetchone()
            if row is None or bytes(row[0]) != link.chain_hash:
                raise UserError(
                    f"{file.part} holds another event at position {link.position} than the log;"
                    " give --force to start over"
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
            walked = verify_chain(link, read_rows(self._connection, first, until), until)
            if walked.difference is not None:
                raise UserError(
                    f"the log is broken at {walked.difference}; run `spawnlog log verify`"
                )
            for row in walked.rows:
                committed = commits.get(row.position)
                if committed not in (None, row.recorded_at):
                    raise UserError(
                        f"the log is broken at position {row.position}: the table of commits has"
                        " a different time; run `spawnlog log verify`"
                    )
                self._add_event(row, ends_commit=committed is not None)
            self._collect_references(walked.rows)
            link = walked.link
            self._order.on_progress("events", began, until, last)
        return link

    def _write_tree(self, header: ExportHeader, link: Link, last: int) -> Link:
        after = link.position
        while True:
            values = {"tree": header.tree, "after": after, "last": last}
            rows = self._connection.execute(_TREE_POSITIONS, values).fetchall()
            positions = [row[0] for row in rows]
            if not positions:
                break
            before = self._connection.execute(_HASHES, [[position - 1 for position in positions]])
            hashes: dict[int, bytes] = {1: b"", **{row[0]: bytes(row[1]) for row in before}}
            commits = commits_between(self._connection, positions[0], positions[-1])
            events = read_rows_at(self._connection, positions)
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
            self._collect_references(events)
            after = positions[-1]
            self._order.on_progress("events", header.after, after, last)
        if not self._events:
            raise UnknownNameError(
                "no tree has this root; give the key of a root session, which is the correlation"
                " in `spawnlog event list --output json`"
            )
        return link

    def _add_event(self, row: StoredEventRow, **more: Any) -> None:
        try:
            self._add(event_line(self._source, row, **more))
        except LineFormatError as fault:
            raise UserError(f"position {row.position} cannot be exported: {fault}") from fault
        self._events += 1

    def _collect_references(self, rows: Sequence[StoredEventRow]) -> None:
        """Collect the texts and transcripts that the events refer to, if a part of the log is
        exported.
        """
        order = self._order
        if self._is_whole or not (order.has_contents or order.has_transcripts):
            return
        references = References()
        for row in rows:
            try:
                event = unfolded(self._mapper, row)
                references.add(row.stream, event, row.position, None)
            except (CorruptHistoryError, ValueError) as error:
                raise UserError(f"position {row.position} cannot be read: {error}") from error
        self._content_ids.update(text.ref.id for text in references.texts)
        self._sealed_runs.update(transcript.run_id for transcript in references.transcripts)

    @property
    def _is_whole(self) -> bool:
        order = self._order
        return order.tree is None and order.last is None and order.first in (None, 1)

    def _write_keys(self) -> None:
        where, values = "", None
        if not self._is_whole:
            found = self._connection.execute(_OWNERS, [list(self._content_ids)], binary=True)
            owners = {row[0] for row in found.fetchall()}
            if self._order.has_transcripts:
                owners |= set(self._run_owners().values())
            where, values = " WHERE session_id = ANY(%b)", [list(owners)]
        for session_id, key in self._stream(_KEYS.format(where=where), values):
            self._add(KeyLine(session_id, bytes(key)).line(self._source))
            self._keys += 1

    def _write_contents(self) -> None:
        where, values = "", None
        if not self._is_whole:
            where, values = " WHERE c.content_id = ANY(%b)", [list(self._content_ids)]
        for content_id, owner, kind, key, body in self._stream(
            _CONTENTS.format(where=where), values
        ):
            text_hash = keyed_hash(bytes(key), body.encode())
            self._add(ContentLine(content_id, owner, kind, text_hash, body).line(self._source))
            self._contents += 1
            if self._contents % PAGE_EVENTS == 0:
                self._order.on_progress("texts", 0, self._contents, 0)

    def _run_owners(self) -> dict[UUID, UUID]:
        """Return the session of each run whose transcript is wanted and whose key exists."""
        where, values = "starts_with(e.stream, 'run:')", None
        if not self._is_whole:
            where = "e.stream = ANY(%b)"
            values = [[run_stream(run_id) for run_id in self._sealed_runs]]
        return dict(self._stream(_RUN_OWNERS.format(where=where), values))

    def _write_transcripts(self) -> None:
        owners = self._run_owners()
        where, values = "", None
        if not self._is_whole:
            where, values = " WHERE run_id = ANY(%b)", [list(owners)]
        for row in self._stream(_ENTRIES.format(where=where), values):
            if row[0] in owners:
                self._add(EntryLine(*row).line(self._source))
                self._entries += 1
                if self._entries % PAGE_EVENTS == 0:
                    self._order.on_progress("transcripts", 0, self._entries, 0)

    def _stream(self, query: str, values: Sequence[Any] | None = None) -> Iterator[Any]:
        """Yield the rows of a query, holding one in memory at a time."""
        with self._connection.cursor(binary=True) as cursor:
            yield from cursor.stream(query, values)

    def _add(self, line: bytes) -> None:
        if len(line) > LINE_BYTES_MAX:
            raise UserError(f"a line would have more than {LINE_BYTES_MAX} bytes")
        self._waiting.append(line)
        self._waiting_bytes += len(line)
        if self._waiting_bytes >= WRITE_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._order.destination.write(b"".join(self._waiting))
        self._waiting = []
        self._waiting_bytes = 0
