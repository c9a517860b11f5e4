"""The other lines of an exported file: the first and the last one, keys, texts, entries of
transcripts. Each has one form only, as the lines of events have."""

import re
from binascii import unhexlify
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple
from uuid import UUID

import orjson

from infrastructure.outbound.log.transfer.event_line import (
    POSITION_MAX,
    LineFault,
    data_member,
    data_of,
    instant_of,
    instant_text,
    json_text,
    text_of,
)

FILE_FORMAT = 2
"""Raised when a release writes lines that an older one cannot read."""

HEADER_BYTES_MAX = 16 * 1024
ExportScope = Literal["log", "range", "tree"]


class UnknownFileFormat(ValueError):
    """The file is of an earlier or a newer format; the message says which release reads it."""


@cache
def _source_of(log_id: UUID) -> bytes:
    return b'"urn:spawnlog:log:%b"' % str(log_id).encode()


@dataclass(frozen=True, slots=True)
class ExportHeader:
    """What a file says of itself: of which log it is, what of it, and what is beside the events.

    `after` is the position in front of the first event and `after_hash` its chain hash, empty at
    the beginning of the log; `until` is the last position that was wanted, None for all there are;
    `tree` the key of the tree's root session.
    """

    log_id: UUID
    log_format: int
    scope: ExportScope
    after: int
    after_hash: bytes
    until: int | None
    tree: str | None
    has_contents: bool
    has_transcripts: bool

    @property
    def source(self) -> bytes:
        """The log as the lines name it, as a JSON string."""
        return _source_of(self.log_id)

    def line(self) -> bytes:
        """The first line."""
        facts = {
            "format": FILE_FORMAT,
            "logFormat": self.log_format,
            "logId": str(self.log_id),
            "scope": self.scope,
            "after": str(self.after),
            "afterChainHash": self.after_hash.hex(),
            "until": None if self.until is None else str(self.until),
            "tree": self.tree,
            "contents": self.has_contents,
            "transcripts": self.has_transcripts,
        }
        return _frame(b"begin", self.source, facts)


@dataclass(frozen=True, slots=True)
class ExportSeal:
    """The last line: how much there is in front of it, and the hash of all of that."""

    events: int
    last_position: int
    chain_hash: bytes
    keys: int
    contents: int
    entries: int
    sha256: bytes

    def line(self, source: bytes) -> bytes:
        """The last line of a file with this source."""
        facts = {
            "events": str(self.events),
            "lastPosition": str(self.last_position),
            "chainHash": self.chain_hash.hex(),
            "keys": str(self.keys),
            "contents": str(self.contents),
            "transcriptEntries": str(self.entries),
            "sha256": self.sha256.hex(),
        }
        return _frame(b"end", source, facts)


class KeyLine(NamedTuple):
    """The key under which the texts of a session are hashed. A secret."""

    session_id: bytes
    key: bytes


class ContentLine(NamedTuple):
    """A text beside the log; ids are 16 bytes."""

    content_id: bytes
    session_id: bytes
    kind: str
    hmac: str
    body: str


class EntryLine(NamedTuple):
    """An entry of a transcript; `recorded_at` in microseconds since 1970, `body` JSON as stored."""

    run_id: bytes
    sequence: int
    recorded_at: int
    kind: str
    body: bytes


def _frame(name: bytes, source: bytes, facts: Mapping[str, Any]) -> bytes:
    return (
        b'{"specversion":"1.0","id":"%b","source":%b,"type":"spawnlog.export.%b"'
        b',"datacontenttype":"application/json","data":%b}\n'
        % (name, source, name, orjson.dumps(facts))
    )


def parse_header(line: bytes) -> ExportHeader:
    """Return what the first line of a file says.

    Raises:
        UnknownFileFormat: The file is of another format.
        LineFault: It is no line that `ExportHeader.line` gives.
    """
    facts = _facts(line, "spawnlog.export.begin")
    found = facts.get("format")
    if isinstance(found, int) and found < FILE_FORMAT:
        raise UnknownFileFormat(
            f"the file has format {found}, an earlier one that this program does not read (it reads"
            f" {FILE_FORMAT}); use the release that wrote it"
        )
    if isinstance(found, int) and found > FILE_FORMAT:
        raise UnknownFileFormat(
            f"the file has format {found} and this program reads {FILE_FORMAT}; install a newer"
            " spawnlog"
        )
    try:
        header = ExportHeader(
            log_id=UUID(facts["logId"]),
            log_format=int(facts["logFormat"]),
            scope=facts["scope"],
            after=_count(facts["after"]),
            after_hash=unhexlify(facts["afterChainHash"]),
            until=None if facts["until"] is None else _count(facts["until"]),
            tree=facts["tree"],
            has_contents=facts["contents"],
            has_transcripts=facts["transcripts"],
        )
        right = header.line() == line and header.scope in ("log", "range", "tree")
    except (KeyError, TypeError, ValueError, AttributeError):
        right = False
    if not right or header.log_format < 0 or len(header.after_hash) not in (0, 32):
        raise LineFault("it is not the first line of a file that spawnlog exported")
    if (header.scope == "tree") != (header.tree is not None):
        raise LineFault("it names no tree, or one that it is not of")
    if header.scope == "log" and (header.after or header.after_hash or header.until is not None):
        raise LineFault("it says that it is a whole log, and that it is a part of one")
    if header.scope == "range" and (header.after == 0) != (header.after_hash == b""):
        raise LineFault("it does not say the chain hash in front of its range")
    return header


def parse_seal(line: bytes, source: bytes) -> ExportSeal:
    """The last line of a file. `LineFault` when it is not one that `line()` gives."""
    facts = _facts(line, "spawnlog.export.end")
    try:
        seal = ExportSeal(
            events=_count(facts["events"]),
            last_position=_count(facts["lastPosition"]),
            chain_hash=unhexlify(facts["chainHash"]),
            keys=_count(facts["keys"]),
            contents=_count(facts["contents"]),
            entries=_count(facts["transcriptEntries"]),
            sha256=unhexlify(facts["sha256"]),
        )
        right = seal.line(source) == line
    except (KeyError, TypeError, ValueError, AttributeError):
        right = False
    if not right:
        raise LineFault("it is not the last line of a file that spawnlog exported")
    return seal


def _facts(line: bytes, kind: str) -> dict[str, Any]:
    try:
        frame = orjson.loads(line)
    except orjson.JSONDecodeError:
        frame = None
    if not isinstance(frame, dict) or frame.get("type") != kind:
        raise LineFault(f"it is no line of the type {kind}")
    facts = frame.get("data")
    return facts if isinstance(facts, dict) else {}


def _count(text: Any) -> int:
    if not isinstance(text, str) or len(text) > len(str(POSITION_MAX)) or not text.isdecimal():
        raise LineFault("a number is none")
    number = int(text)
    if number > POSITION_MAX:
        raise LineFault("a number is too large")
    return number


def key_line(source: bytes, one: KeyLine) -> bytes:
    """The line of a key."""
    return (
        b'{"specversion":"1.0","id":"%b","source":%b,"type":"spawnlog.export.content-key"'
        b',"datacontenttype":"application/json","data":"%b"}\n'
        % (_uuid_text(one.session_id), source, one.key.hex().encode())
    )


def content_line(source: bytes, one: ContentLine) -> bytes:
    """The line of a text."""
    return (
        b'{"specversion":"1.0","id":"%b","source":%b,"type":"spawnlog.export.content"'
        b',"datacontenttype":"application/json","sessionid":"%b","kind":%b,"hmac":%b,"data":%b}\n'
        % (
            _uuid_text(one.content_id),
            source,
            _uuid_text(one.session_id),
            json_text(one.kind),
            json_text(one.hmac),
            json_text(one.body),
        )
    )


def entry_line(source: bytes, one: EntryLine) -> bytes:
    """The line of an entry of a transcript."""
    run_id = _uuid_text(one.run_id)
    return (
        b'{"specversion":"1.0","id":"%b/%d","source":%b,"type":"spawnlog.export.transcript-entry"'
        b',"time":"%b","datacontenttype":"application/json","runid":"%b","entrynumber":%d'
        b',"kind":%b,%b'
        % (
            run_id,
            one.sequence,
            source,
            instant_text(one.recorded_at),
            run_id,
            one.sequence,
            json_text(one.kind),
            data_member(one.body),
        )
    )


_BEGINNING = re.compile(
    rb'\{"specversion":"1\.0","id":"[^"\\]{1,60}","source":"[^"\\]{1,100}"'
    rb',"type":"spawnlog\.export\.(content-key|content|transcript-entry|end)"'
)
_UUID = rb"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
_TEXT = rb'"([^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+)"'
_PARTS = {b"uuid": _UUID, b"text": _TEXT}
_KEY = re.compile(
    rb'\{"specversion":"1\.0","id":"%(uuid)b","source":%(text)b,"type":"spawnlog\.export\.content-key"'
    rb',"datacontenttype":"application/json","data":"((?:[0-9a-f]{2}){1,1024})"\}\n' % _PARTS
)
_CONTENT = re.compile(
    rb'\{"specversion":"1\.0","id":"%(uuid)b","source":%(text)b,"type":"spawnlog\.export\.content"'
    rb',"datacontenttype":"application/json","sessionid":"%(uuid)b","kind":%(text)b'
    rb',"hmac":%(text)b,"data":"' % _PARTS
)
_TEXT_END = b'"}\n'
_ENTRY = re.compile(
    rb'\{"specversion":"1\.0","id":"%(uuid)b/(0|[1-9][0-9]{0,9})","source":%(text)b'
    rb',"type":"spawnlog\.export\.transcript-entry","time":"([0-9T:.-]{26}Z)"'
    rb',"datacontenttype":"application/json","runid":"%(uuid)b","entrynumber":(0|[1-9][0-9]{0,9})'
    rb',"kind":%(text)b,"(data|data_base64)":([^\r\n]*)\}\n' % _PARTS
)


def kind_of(line: bytes) -> str | None:
    """What a line behind the events is: `content-key`, `content`, `transcript-entry`, `end`."""
    found = _BEGINNING.match(line)
    return found[1].decode() if found is not None else None


def parse_key(line: bytes, source: bytes) -> KeyLine:
    """The key of a line. `LineFault` when it is not one that `key_line` would have written."""
    found = _matched(_KEY, line)
    one = KeyLine(_uuid(found[1]), unhexlify(found[3]))
    if key_line(source, one) != line:
        raise LineFault("it is not the line of a key in the form of this file")
    return one


def parse_content(line: bytes, source: bytes) -> ContentLine:
    """The text of a line. `LineFault` when it is not one that `content_line` would have written."""
    found = _CONTENT.match(line)
    if found is None or not line.endswith(_TEXT_END):
        raise _unmatched()
    # Up to there it is one JSON string, or none: to look for its end first takes twice the time.
    body = text_of(line[found.end() : -len(_TEXT_END)])
    one = ContentLine(_uuid(found[1]), _uuid(found[3]), text_of(found[4]), text_of(found[5]), body)
    if b'"%b"' % found[2] != source:
        raise LineFault("its source is not the log of the first line")
    return one


def parse_entry(line: bytes, source: bytes) -> EntryLine:
    """The entry of a line. `LineFault` when it is not one that `entry_line` would have written."""
    found = _matched(_ENTRY, line)
    body = data_of(found[8], found[9]) if found[7] is not None else b""
    one = EntryLine(_uuid(found[1]), int(found[2]), instant_of(found[4]), text_of(found[7]), body)
    if one.sequence >= 2**31 or entry_line(source, one) != line:
        raise LineFault("it is not the line of an entry in the form of this file")
    if b"\0" in body or _is_no_text(body):
        raise LineFault("its body is no text")
    return one


PARSERS: Mapping[str, Callable[[bytes, bytes], KeyLine | ContentLine | EntryLine]] = {
    "content-key": parse_key,
    "content": parse_content,
    "transcript-entry": parse_entry,
}
"""What reads a line beside the events, by its kind."""


def _is_no_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return True
    return False


def _matched(pattern: re.Pattern[bytes], line: bytes) -> re.Match[bytes]:
    found = pattern.fullmatch(line)
    if found is None:
        raise _unmatched()
    return found


def _unmatched() -> LineFault:
    return LineFault("it is not a line in the form of this file")


def _uuid(printed: bytes) -> bytes:
    return unhexlify(printed.replace(b"-", b""))


def _uuid_text(value: bytes) -> bytes:
    digits = value.hex()
    text = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return text.encode()
