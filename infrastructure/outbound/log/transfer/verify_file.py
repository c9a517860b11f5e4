"""Verification of an exported file without a server or database: the chain, the seal, the fold of
every event, and the texts and transcripts that it holds."""

import hashlib
import hmac
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from uuid import UUID

import orjson

from application.ports.transcripts import RecordedEntry
from domain.values.refusals import CorruptHistoryError
from infrastructure.contract.errors import FileContentError
from infrastructure.contract.operations import (
    FileFindings,
    OnTransferProgress,
    ignore_transfer_progress,
)
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.codec.transcript_line import transcript_line
from infrastructure.outbound.log.process import rare_collections
from infrastructure.outbound.log.transfer.file_memory import FileMemory
from infrastructure.outbound.log.transfer.file_reader import FileReader
from infrastructure.outbound.log.transfer.line_file import last_line, open_input
from infrastructure.outbound.log.transfer.lines import (
    AnyLine,
    ContentLine,
    EntryLine,
    EventLine,
    ExportSeal,
    KeyLine,
    LineFormatError,
    parse_line,
)
from infrastructure.outbound.log.verify.contents import ContentMention
from infrastructure.outbound.log.verify.references import References
from infrastructure.outbound.log.verify.refold import Refold, RefoldResult, unfolded
from infrastructure.outbound.log.verify.rows import StoredEventRow
from infrastructure.outbound.log.verify.transcripts import RecordedTranscript

PAGE_EVENTS = 2_000


def verify_file(
    path: Path, on_progress: OnTransferProgress = ignore_transfer_progress
) -> FileFindings:
    """Verify the file up to the first fault, which is returned in the findings.

    Raises:
        UserError: The file cannot be read.
        UnknownFileFormatError: The file has another format.
    """
    began = time.monotonic()
    findings = FileFindings()
    with rare_collections(), open_input(path) as file:
        try:
            reader = FileReader(file)
            findings.scope = reader.header.scope
            stated = stated_seal(reader, last_line(file))
            FileCheck(reader, findings, stated.events if stated else 0, on_progress).check(
                reader.lines()
            )
        except FileContentError as fault:
            findings.fault = fault
    findings.seconds = time.monotonic() - began
    return findings


def stated_seal(reader: FileReader, line: bytes) -> ExportSeal | None:
    """Return the seal on a file's last line, unverified, or None if that line is not a seal."""
    try:
        seal = parse_line(line, reader.header.source)
    except LineFormatError:
        return None
    return seal if isinstance(seal, ExportSeal) else None


@dataclass(slots=True)
class FileCheck:
    """Verification of one file. `total` is the number of events stated in its last line; `on_fold`
    receives the fold of each page."""

    reader: FileReader
    findings: FileFindings
    total: int
    on_progress: OnTransferProgress
    on_fold: Callable[[RefoldResult], None] = lambda _: None
    _memory: FileMemory = field(default_factory=FileMemory)
    _mapper: EventMapper = field(default_factory=EventMapper)
    _refold: Refold = field(init=False)
    _page_line: int = 2

    def __post_init__(self) -> None:
        log_id = self.reader.header.log_id
        self._refold = Refold(self._memory, 0, log_id=log_id, config_version=0)

    def check(self, lines: Iterator[AnyLine]) -> None:
        """Check the lines of the reader, once.

        Raises:
            FileFault: The first wrong line.
        """
        with closing(self._memory):
            other = self._check_events(lines)
            self._check_others(lines if other is None else chain((other,), lines))

    def _check_others(self, lines: Iterator[AnyLine]) -> None:
        header = self.reader.header
        groups = groupby(lines, key=type)
        kind, group = next(groups, (None, iter(())))
        if kind is KeyLine:
            self._memory.add_keys(line for line in group if isinstance(line, KeyLine))
            kind, group = next(groups, (None, iter(())))
        if header.has_contents:
            texts = group if kind is ContentLine else iter(())
            self._check_contents(line for line in texts if isinstance(line, ContentLine))
            if kind is ContentLine:
                kind, group = next(groups, (None, iter(())))
        if header.has_transcripts:
            entries = group if kind is EntryLine else iter(())
            self._check_transcripts(line for line in entries if isinstance(line, EntryLine))
        for _ in lines:
            # Exhaust the reader: it reports lines that are out of order.
            pass

    def _check_contents(self, lines: Iterator[ContentLine]) -> None:
        """Compare texts with mentions, both ordered by id."""
        text = next(lines, None)
        checked: UUID | None = None
        for mention in self._memory.mentions():
            wanted = mention.ref.id.int
            while text is not None and text.content_id.int < wanted:
                self._check_unmentioned(text, checked)
                text = next(lines, None)
            if text is not None and text.content_id.int == wanted:
                self._check_text(text, mention, again=text.content_id is checked)
                checked = text.content_id
            else:
                subject = f"the {mention.place} of {mention.stream[:600]}"
                self._require_erased(mention.owner, subject, mention.position)
        while text is not None:
            self._check_unmentioned(text, checked)
            text = next(lines, None)

    def _check_unmentioned(self, text: ContentLine, checked: UUID | None) -> None:
        """Check a text that no event refers to against its own hash, the only evidence."""
        if text.content_id is not checked and (wrong := self._own_fault(text, text.body.encode())):
            raise self._fault(f"the text {wrong}", None)

    def _check_text(self, text: ContentLine, mention: ContentMention, *, again: bool) -> None:
        ref, body = mention.ref, text.body.encode()
        wrong = None
        if mention.owner not in (None, text.session_id):
            wrong = "belongs to another session"
        elif text.hmac != ref.hmac or len(body) != ref.bytes:
            wrong = "is a different text"
        elif not again:
            wrong = self._own_fault(text, body)
            self.findings.counts.contents += wrong is None
        if wrong is not None:
            subject = (
                f"the {mention.place} of {mention.stream[:600]} at position {mention.position}"
            )
            raise self._fault(f"{subject} {wrong}", mention.position)

    def _own_fault(self, text: ContentLine, body: bytes) -> str | None:
        key = self._memory.key_of(text.session_id)
        if key is None:
            return "has no key in the file"
        if hmac.digest(key, body, "sha256").hex() != text.hmac:
            return "was changed: the text or its key is not the recorded one"
        return None

    def _require_erased(self, owner: UUID | None, subject: str, position: int) -> None:
        if self._memory.key_of(owner) is not None:
            fault = f"{subject} is missing before this line, but the key of its session exists"
            raise self._fault(fault, position)
        self.findings.counts.erased += 1

    def _check_transcripts(self, lines: Iterator[EntryLine]) -> None:
        sealed = self._memory.transcripts()
        expected = next(sealed, None)
        for run_id, entries in groupby(lines, key=attrgetter("run_id")):
            first_line = self.reader.number
            while expected is not None and expected.run_id < run_id:
                self._require_no_entries(expected)
                expected = next(sealed, None)
            if expected is not None and expected.run_id == run_id:
                self._check_entries(expected, entries, first_line)
                expected = next(sealed, None)
            else:
                for _ in entries:
                    # The run has not ended, so its transcript is not sealed.
                    pass
        while expected is not None:
            self._require_no_entries(expected)
            expected = next(sealed, None)

    def _check_entries(
        self, sealed: RecordedTranscript, entries: Iterator[EntryLine], first_line: int
    ) -> None:
        key = self._memory.key_of(sealed.owner)
        digest = hmac.new(key or b"", digestmod=hashlib.sha256)
        count = size = 0
        for entry in entries:
            line = _entry_line_bytes(entry)
            count += 1
            size += len(line)
            digest.update(line)
        subject, seal = f"the transcript of run {sealed.run_id}", sealed.seal
        if (count, size) != (seal.count, seal.bytes):
            fault = (
                f"{subject} was changed: it has {count} entries of {size} bytes instead of"
                f" {seal.count} of {seal.bytes}"
            )
            raise FileContentError(first_line, fault, sealed.position)
        if key and digest.hexdigest() != seal.hmac:
            fault = f"{subject} was changed: its entries differ from the sealed ones"
            raise FileContentError(first_line, fault, sealed.position)
        self.findings.counts.transcripts += 1

    def _require_no_entries(self, sealed: RecordedTranscript) -> None:
        if sealed.seal.count:
            subject = f"the transcript of run {sealed.run_id}"
            self._require_erased(sealed.owner, subject, sealed.position)

    def _fault(self, text: str, position: int | None) -> FileContentError:
        return FileContentError(self.reader.number, text, position)

    def _check_events(self, lines: Iterator[AnyLine]) -> AnyLine | None:
        """Check the event lines and return the first line of another kind, or None."""
        page: list[EventLine] = []
        other: AnyLine | None = None
        try:
            for line in lines:
                if not isinstance(line, EventLine):
                    other = line
                    break
                page.append(line)
                if len(page) == PAGE_EVENTS:
                    self._check_page(page)
                    page = []
        except FileContentError:
            # Report a fault in the lines before it first.
            self._check_page(page)
            raise
        self._check_page(page)
        return other

    def _check_page(self, page: list[EventLine]) -> None:
        if not page:
            return
        rows = [line.row for line in page]
        if self.reader.header.scope == "log":
            self._fold(rows, {line.row.position for line in page if line.ends_commit})
        else:
            self._decode(rows)
        self._page_line += len(page)
        findings = self.findings
        findings.events += len(page)
        findings.last_position, findings.chain_hash = rows[-1].position, rows[-1].chain_hash
        self.on_progress("events", 0, findings.events, self.total)

    def _fold(self, rows: list[StoredEventRow], ends: set[int]) -> None:
        first = rows[0].position
        page = self._refold.fold(rows, ends)
        if page.difference is not None:
            fault = page.difference
            line = self._page_line + fault.position - first
            raise FileContentError(line, fault.text, fault.position)
        self.on_fold(page)
        self._memory.add_mentions(page.references.texts)
        self._memory.add_transcripts(page.references.transcripts)

    def _decode(self, rows: list[StoredEventRow]) -> None:
        """Decode the events of a part of a log: without the earlier events it cannot be folded."""
        references = References()
        for offset, row in enumerate(rows):
            try:
                references.add(row.stream, unfolded(self._mapper, row), row.position, None)
            except (CorruptHistoryError, ValueError):
                text = f"its bytes are not a valid event of the type {row.type}"
                raise FileContentError(self._page_line + offset, text, row.position) from None
        self._memory.add_mentions(references.texts)
        self._memory.add_transcripts(references.transcripts)


def _entry_line_bytes(entry: EntryLine) -> bytes:
    try:
        return transcript_line(
            RecordedEntry(entry.sequence, entry.recorded_at, entry.kind, orjson.loads(entry.body))
        )
    except (TypeError, ValueError):
        # Not a JSON object, so no transcript ever contained it.
        return b""
