"""Reader of an exported file: parses each line and checks that it follows from the previous one."""

import hashlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from infrastructure.contract.errors import FileContentError
from infrastructure.outbound.log.codec.chain import link_hash
from infrastructure.outbound.log.transfer.line_file import bounded_lines
from infrastructure.outbound.log.transfer.lines import (
    HEADER_BYTES_MAX,
    AnyLine,
    ContentLine,
    EntryLine,
    EventLine,
    ExportHeader,
    ExportSeal,
    KeyLine,
    LineFormatError,
    is_event_line,
    parse_header,
    parse_line,
)
from infrastructure.outbound.log.verify.chain import BEGINNING, Link, find_link_fault, link_to
from infrastructure.outbound.log.verify.rows import StoredEventRow

_SECTIONS = (EventLine, KeyLine, ContentLine, EntryLine, ExportSeal)
"""The kinds of lines, in their order in a file."""


class FileReader:
    """Reader that goes through one file once.

    `number` is the number of the last line read, `bytes_read` its end, and `link` the last event.
    `seal` is set if everything before it was right.

    Raises:
        FileFault: The first wrong line.
        UnknownFileFormatError: The file has another format.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.number = 1
        self.digest = hashlib.sha256()
        try:
            line = next(bounded_lines(file, bytes_max=HEADER_BYTES_MAX), b"")
            if not line.endswith(b"\n"):
                raise LineFormatError("it is not the first line of a spawnlog export")
            self.header: ExportHeader = parse_header(line)
        except LineFormatError as fault:
            raise FileContentError(1, str(fault)) from None
        self._source = self.header.source
        self.digest.update(line)
        self.bytes_read = len(line)
        self.events = 0
        self.keys = 0
        self.contents = 0
        self.entries = 0
        self.seal: ExportSeal | None = None
        header = self.header
        self._last: Link | StoredEventRow = BEGINNING._replace(
            position=header.after, chain_hash=header.after_hash, append_last=header.after
        )
        self._section = 0
        self._before: tuple[Any, ...] = ()
        self._ended_commit = True
        self._is_tree, self._until = header.scope == "tree", header.until

    @property
    def link(self) -> Link:
        """Return the last event."""
        return link_to(self._last)

    def events_only(self) -> Iterator[EventLine]:
        """Yield the events up to the first line that is incomplete or not an event. An export
        resumes there; the attributes describe the lines read so far."""
        for line in self._bounded():
            if not line.endswith(b"\n") or not is_event_line(line, self._source):
                return
            self.number += 1
            parsed = self._parsed(line)
            if isinstance(parsed, EventLine):
                self._add_event(parsed)
                yield parsed
            self._take(line)

    def lines(self) -> Iterator[AnyLine]:
        """Yield every line between the first and the last one."""
        for line in self._bounded():
            self.number += 1
            if self.seal is not None:
                raise FileContentError(self.number, "there is data after the last line")
            if not line.endswith(b"\n"):
                raise FileContentError(self.number, "the file is cut in the middle of this line")
            parsed = self._parsed(line)
            if isinstance(parsed, EventLine):
                self._add_event(parsed)
            else:
                self._add_other(parsed)
                if isinstance(parsed, ExportSeal):
                    continue
            yield parsed
            self._take(line)
        if self.seal is None:
            raise FileContentError(
                self.number, "the file is cut after this line: its last line is missing"
            )

    def _parsed(self, line: bytes) -> AnyLine:
        try:
            parsed = parse_line(line, self._source)
        except LineFormatError as fault:
            position = self._next_position()
            if not is_event_line(line, self._source) and b'"spawnlog.export.' in line[:160]:
                position = None
            raise FileContentError(self.number, str(fault), position) from None
        section = _SECTIONS.index(type(parsed))
        if section < self._section:
            text = "it is in the wrong section"
            raise FileContentError(self.number, text, self._next_position())
        if section != self._section:
            self._begin(section)
        return parsed

    def _bounded(self) -> Iterator[bytes]:
        try:
            yield from bounded_lines(self._file)
        except LineFormatError as fault:
            raise FileContentError(self.number + 1, str(fault)) from None

    def _take(self, line: bytes) -> None:
        self.digest.update(line)
        self.bytes_read += len(line)

    def _add_event(self, parsed: EventLine) -> None:
        row = parsed.row
        if self._is_tree:
            self._require_of_tree(parsed)
        else:
            wrong = find_link_fault(self._last, row)
            if parsed.previous_hash is not None:
                raise FileContentError(
                    self.number, "only the export of a tree has previous hashes", row.position
                )
            if wrong is not None:
                raise FileContentError(self.number, wrong.text, wrong.position)
            if not self._ended_commit and row.recorded_at != self._last.recorded_at:
                text = "its time differs from the preceding event's, which ended no commit"
                raise FileContentError(self.number, text, row.position)
        if parsed.ends_commit and row.append_last != row.position:
            text = "it is marked as the end of a commit, but its append continues"
            raise FileContentError(self.number, text, row.position)
        if self._until is not None and row.position > self._until:
            raise FileContentError(self.number, "it is after the end of the range", row.position)
        self._last = row
        self.events += 1
        self._ended_commit = parsed.ends_commit

    def _require_of_tree(self, parsed: EventLine) -> None:
        row, before = parsed.row, self._last
        if row.position <= before.position:
            text = f"it is not after position {before.position}"
            raise FileContentError(self.number, text, row.position)
        follows = row.position == before.position + 1 and self.events > 0
        if parsed.previous_hash is None or (follows and parsed.previous_hash != before.chain_hash):
            text = "it does not have the hash of the preceding event"
            raise FileContentError(self.number, text, row.position)
        if link_hash(parsed.previous_hash, row.encoded) != row.chain_hash:
            text = "its bytes differ from the recorded ones (chain)"
            raise FileContentError(self.number, text, row.position)

    def _add_other(self, parsed: KeyLine | ContentLine | EntryLine | ExportSeal) -> None:
        if isinstance(parsed, ExportSeal):
            self._require_sealed(parsed)
            return
        key = parsed[:2] if isinstance(parsed, EntryLine) else parsed[:1]
        if key <= self._before:
            text = "it is out of order"
            raise FileContentError(self.number, text)
        self._before = key
        if isinstance(parsed, KeyLine):
            self.keys += 1
        elif isinstance(parsed, ContentLine):
            self.contents += 1
        else:
            self.entries += 1

    def _next_position(self) -> int | None:
        return None if self._section or self._is_tree else self._last.position + 1

    def _begin(self, section: int) -> None:
        header = self.header
        if not self._section:
            if self.link.position < self.link.append_last and header.scope == "log":
                text = f"the append that ends at position {self.link.append_last} is cut off here"
                raise FileContentError(self.number, text, self.link.position + 1)
            if not self._ended_commit and header.scope == "log":
                text = "no commit ended with the last event"
                raise FileContentError(self.number, text, self.link.position)
        has = {1: header.has_contents, 2: header.has_contents, 3: header.has_transcripts, 4: True}
        if not has[section]:
            text = "the first line says that the file has no such lines"
            raise FileContentError(self.number, text)
        self._section = section
        self._before = ()

    def _require_sealed(self, seal: ExportSeal) -> None:
        found = ExportSeal(
            events=self.events,
            last_position=self.link.position,
            chain_hash=self.link.chain_hash,
            keys=self.keys,
            contents=self.contents,
            entries=self.entries,
            sha256=self.digest.digest(),
        )
        if seal == found:
            self.seal = seal
            return
        for noun, here, there in (
            ("events", found.events, seal.events),
            ("keys", found.keys, seal.keys),
            ("texts", found.contents, seal.contents),
            ("entries of transcripts", found.entries, seal.entries),
        ):
            if here != there:
                raise FileContentError(
                    self.number, f"it counts {there} {noun}, but there are {here}", self._lost(noun)
                )
        if (seal.last_position, seal.chain_hash) != (found.last_position, found.chain_hash):
            raise FileContentError(self.number, "it names a different last event than the file has")
        raise FileContentError(self.number, "an earlier line was changed: the file hash differs")

    def _lost(self, noun: str) -> int | None:
        is_event = noun == "events" and self.header.scope != "tree"
        return self.link.position + 1 if is_event else None
