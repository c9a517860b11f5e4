"""Verifies an exported file without a server or a database: the chain, the seal, the fold of every
event, and the texts and transcripts that it holds."""

import hashlib
import hmac
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, groupby
from pathlib import Path
from typing import Protocol
from uuid import UUID

import orjson

from application.ports.transcripts import RecordedEntry
from domain.run.events import RunEnded
from domain.values.record import CONFIG_STREAM
from domain.values.refusals import CorruptHistory
from infrastructure.contract.operations import OnTransferProgress, ignore_transfer_progress
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.codec.transcript_line import transcript_line
from infrastructure.outbound.log.transfer.event_line import EventLine, LineFault
from infrastructure.outbound.log.transfer.file_reader import AnyLine, FileFault, FileReader
from infrastructure.outbound.log.transfer.line_file import last_line, open_input, rare_collections
from infrastructure.outbound.log.transfer.spool import Spool, SpooledMention, SpooledTranscript
from infrastructure.outbound.log.transfer.text_lines import (
    ContentLine,
    EntryLine,
    ExportHeader,
    ExportSeal,
    KeyLine,
    parse_seal,
)
from infrastructure.outbound.log.verify.contents import find_references
from infrastructure.outbound.log.verify.ranges import mentions_in, sealed_in
from infrastructure.outbound.log.verify.refold import ReadEvent, Refold
from infrastructure.outbound.log.verify.rows import StoredEventRow

PAGE_EVENTS = 2_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class FileFindings:
    """What was found: how much was compared, and the first fault, if there is one."""

    header: ExportHeader | None = None
    events: int = 0
    last_position: int = 0
    chain_hash: bytes = b""
    contents: int = 0
    transcripts: int = 0
    erased: int = 0
    seconds: float = 0.0
    fault: FileFault | None = None


def verify_file(
    path: Path, on_progress: OnTransferProgress = ignore_transfer_progress
) -> FileFindings:
    """Go through the file up to the first fault.

    Raises:
        UserError: The file cannot be read.
        UnknownFileFormat: The file is of another format.
    """
    began = time.monotonic()
    findings = FileFindings()
    with rare_collections(), open_input(path) as file, Spool() as spool:
        try:
            reader = FileReader(file)
            findings.header = reader.header
            try:
                seal = parse_seal(last_line(file), reader.header.source)
            except LineFault:
                seal = None
            FileCheck(reader, spool, findings, seal, on_progress).check(reader.lines())
        except FileFault as fault:
            findings.fault = fault
    findings.seconds = time.monotonic() - began
    return findings


class NumberedLines(Protocol):
    """What gives the lines of a file; `number` is the one that it gave last."""

    @property
    def number(self) -> int: ...


@dataclass(slots=True)
class TextCheck:
    """Holds the texts and transcripts of one file against what its events said of them.

    Who has folded a part of its streams alone checks what these refer to, and of the texts to
    which none of them refers those that `is_own` says, so that all parts look at all there is.
    """

    spool: Spool
    at: NumberedLines
    log_id: UUID
    is_own: Callable[[bytes], bool] = field(default=lambda _: True)
    contents: int = 0
    transcripts: int = 0
    erased: int = 0

    def note(self, events: Sequence[ReadEvent]) -> None:
        """Remember what these events refer to; they come in their order."""
        self.spool.add_mentions(
            SpooledMention(
                one.ref.id.bytes,
                one.owner.bytes,
                one.ref.bytes,
                one.ref.hmac,
                one.position,
                one.place,
                one.stream,
            )
            for one in mentions_in(events, self.log_id)
        )
        self.spool.add_transcripts(
            SpooledTranscript(
                one.run_id.bytes,
                one.owner.bytes,
                one.position,
                one.seal.count,
                one.seal.bytes,
                one.seal.hmac,
            )
            for one in sealed_in(events)
        )

    def check(self, lines: Iterator[AnyLine], header: ExportHeader) -> None:
        """Go through the lines behind the events. `FileFault` for the first that is wrong."""
        groups = groupby(lines, key=type)
        kind, group = next(groups, (None, iter(())))
        if kind is KeyLine:
            self.spool.add_keys(one for one in group if isinstance(one, KeyLine))
            kind, group = next(groups, (None, iter(())))
        if header.has_contents:
            texts = group if kind is ContentLine else iter(())
            self._check_contents(one for one in texts if isinstance(one, ContentLine))
            if kind is ContentLine:
                kind, group = next(groups, (None, iter(())))
        if header.has_transcripts:
            entries = group if kind is EntryLine else iter(())
            self._check_transcripts(one for one in entries if isinstance(one, EntryLine))
        for _ in lines:
            # What stands in order was taken; the reader knows what is wrong with anything else.
            pass

    def _check_contents(self, lines: Iterator[ContentLine]) -> None:
        """Texts and mentions are both in the order of their ids."""
        text = next(lines, None)
        checked = b""
        for mention in self.spool.mentions():
            while text is not None and text.content_id < mention.content_id:
                self._check_unmentioned(text, checked)
                text = next(lines, None)
            if text is not None and text.content_id == mention.content_id:
                self._check_text(text, mention, again=text.content_id == checked)
                checked = text.content_id
            else:
                self._require_erased(mention)
        while text is not None:
            self._check_unmentioned(text, checked)
            text = next(lines, None)

    def _check_unmentioned(self, text: ContentLine, checked: bytes) -> None:
        """No event refers to it. Nothing says what it must be, but its own hash."""
        if text.content_id != checked and self.is_own(text.content_id):
            self._require_own_hash(text)

    def _check_text(self, text: ContentLine, mention: SpooledMention, *, again: bool) -> None:
        what = f"the {mention.place} of {mention.stream[:600]} at position {mention.position}"
        if mention.owner not in (None, text.session_id):
            raise FileFault(self.at.number, f"{what} is of another session", mention.position)
        body = text.body.encode()
        if text.hmac != mention.hmac or len(body) != mention.bytes:
            raise FileFault(self.at.number, f"{what} is another text", mention.position)
        if not again:
            self._require_own_hash(text, what, mention.position)
            self.contents += 1

    def _require_own_hash(
        self, text: ContentLine, what: str = "the text", position: int | None = None
    ) -> None:
        key = self.spool.key(text.session_id)
        if key is None:
            raise FileFault(self.at.number, f"{what} has no key in the file", position)
        if hmac.digest(key, text.body.encode(), "sha256").hex() != text.hmac:
            fault = f"{what} was changed: it is not the text that was recorded, or its key is not"
            raise FileFault(self.at.number, fault, position)

    def _require_erased(self, mention: SpooledMention) -> None:
        if mention.owner is not None and self.spool.key(mention.owner) is not None:
            what = f"the {mention.place} of {mention.stream[:600]}"
            fault = f"{what} is missing in front of this line, and the key of its session is there"
            raise FileFault(self.at.number, fault, mention.position)
        self.erased += 1

    def _check_transcripts(self, lines: Iterator[EntryLine]) -> None:
        sealed = self.spool.transcripts()
        expected = next(sealed, None)
        for run_id, entries in groupby(lines, key=lambda one: one.run_id):
            first_line = self.at.number
            while expected is not None and expected.run_id < run_id:
                self._require_no_entries(expected)
                expected = next(sealed, None)
            if expected is not None and expected.run_id == run_id:
                self._check_entries(expected, entries, first_line)
                expected = next(sealed, None)
            else:
                for _ in entries:
                    # Of a run that goes on, or of another part: nothing is sealed here.
                    pass
        while expected is not None:
            self._require_no_entries(expected)
            expected = next(sealed, None)

    def _check_entries(
        self, sealed: SpooledTranscript, entries: Iterator[EntryLine], first_line: int
    ) -> None:
        owner_key = self.spool.key(sealed.owner) if sealed.owner is not None else None
        digests = [hmac.new(owner_key, digestmod=hashlib.sha256)] if owner_key else []
        count = size = 0
        for one in entries:
            line = _printed_entry(one)
            count += 1
            size += len(line)
            for digest in digests:
                digest.update(line)
        what = f"the transcript of run {UUID(bytes=sealed.run_id)}"
        if (count, size) != (sealed.entries, sealed.bytes):
            fault = (
                f"{what} was changed: it has {count} entries of {size} bytes and had"
                f" {sealed.entries} of {sealed.bytes}"
            )
            raise FileFault(first_line, fault, sealed.position)
        if digests and digests[0].hexdigest() != sealed.hmac:
            fault = f"{what} was changed: its entries are not the ones that were sealed"
            raise FileFault(first_line, fault, sealed.position)
        self.transcripts += 1

    def _require_no_entries(self, sealed: SpooledTranscript) -> None:
        if not sealed.entries:
            return
        has_key = sealed.owner is not None and self.spool.key(sealed.owner) is not None
        if has_key:
            what = f"the transcript of run {UUID(bytes=sealed.run_id)}"
            fault = f"{what} is missing in front of this line, and the key of its session is there"
            raise FileFault(self.at.number, fault, sealed.position)
        self.erased += 1


@dataclass(slots=True)
class FileCheck:
    """One file under way. `said` is what its last line says, whether that is right or not."""

    reader: FileReader
    spool: Spool
    findings: FileFindings
    said: ExportSeal | None
    on_progress: OnTransferProgress
    _refold: Refold = field(init=False)
    _texts: TextCheck = field(init=False)
    _mapper: EventMapper = field(default_factory=EventMapper)
    _revision: int = 0
    _page_line: int = 2

    def check(self, lines: Iterator[AnyLine]) -> None:
        """Go through the lines of the reader, up to the first fault."""
        self._refold = Refold(self.spool, 0)
        self._texts = TextCheck(self.spool, self.reader, self.reader.header.log_id)
        other = self._check_events(lines)
        rest: Iterator[AnyLine] = lines if other is None else chain((other,), lines)
        try:
            self._texts.check(rest, self.reader.header)
        finally:
            found, texts = self.findings, self._texts
            found.contents, found.transcripts = texts.contents, texts.transcripts
            found.erased = texts.erased

    def _check_events(self, lines: Iterator[AnyLine]) -> AnyLine | None:
        """Up to the first line that is none, which is given back."""
        page: list[EventLine] = []
        other: AnyLine | None = None
        try:
            for one in lines:
                if not isinstance(one, EventLine):
                    other = one
                    break
                page.append(one)
                if len(page) == PAGE_EVENTS:
                    self._check_page(page)
                    page = []
        except FileFault:
            # What is in front of it comes first.
            self._check_page(page)
            raise
        self._check_page(page)
        return other

    def _check_page(self, page: list[EventLine]) -> None:
        if not page:
            return
        rows = [one.row for one in page]
        if self.reader.header.scope == "log":
            self._fold(rows, {one.row.position for one in page if one.ends_commit})
        else:
            self._decode(rows)
        self._page_line += len(page)
        findings = self.findings
        findings.events += len(page)
        findings.last_position, findings.chain_hash = rows[-1].position, rows[-1].chain_hash
        self.on_progress("events", 0, findings.events, self.said.events if self.said else 0)

    def _fold(self, rows: list[StoredEventRow], ends: set[int]) -> None:
        first = rows[0].position
        self._require_versions(rows)
        page = self._refold.fold(rows, ends)
        if page.difference is not None:
            fault = page.difference
            line = self._page_line + fault.position - first
            raise FileFault(line, fault.text, fault.position)
        self._texts.note(page.events)

    def _require_versions(self, rows: list[StoredEventRow]) -> None:
        """Of the configuration's own stream, which leads to no state that would know."""
        for offset, row in enumerate(rows):
            if row.stream == CONFIG_STREAM:
                self._revision += 1
                if row.version != self._revision:
                    text = f"version {row.version} of {row.stream} follows {self._revision - 1}"
                    raise FileFault(self._page_line + offset, text, row.position)

    def _decode(self, rows: list[StoredEventRow]) -> None:
        mentions: list[SpooledMention] = []
        transcripts: list[SpooledTranscript] = []
        for offset, row in enumerate(rows):
            try:
                event = self._mapper.event(
                    row.stream, row.version, row.type, row.type_version, row.state
                )
                run_id = UUID(row.stream.partition(":")[2]) if type(event) is RunEnded else None
            except (CorruptHistory, ValueError):
                text = f"its bytes are no event of the type {row.type}"
                raise FileFault(self._page_line + offset, text, row.position) from None
            for place, ref in find_references(event):
                mention = SpooledMention(
                    ref.id.bytes, None, ref.bytes, ref.hmac, row.position, place, row.stream
                )
                mentions.append(mention)
            if run_id is not None and isinstance(event, RunEnded) and event.transcript is not None:
                seal = event.transcript
                sealed = (seal.count, seal.bytes, seal.hmac)
                transcripts.append(SpooledTranscript(run_id.bytes, None, row.position, *sealed))
        self.spool.add_mentions(mentions)
        self.spool.add_transcripts(transcripts)


def _printed_entry(one: EntryLine) -> bytes:
    try:
        return transcript_line(
            RecordedEntry(
                one.sequence,
                _EPOCH + timedelta(microseconds=one.recorded_at),
                one.kind,
                orjson.loads(one.body),
            )
        )
    except (TypeError, ValueError):
        # Not a JSON object: no transcript ever had it.
        return b""
