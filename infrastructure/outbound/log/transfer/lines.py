"""Line formats of an exported file: each line is a CloudEvent with exactly one valid form.

A line is accepted only if writing it again gives the same bytes. So alternative spellings of a
number, an instant or a name need no rule, and an imported file is exported as the same file.
"""

import struct
from base64 import b64decode, b64encode
from binascii import unhexlify
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, Self
from uuid import UUID

import msgspec
import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from infrastructure.outbound.log.codec.chain import microseconds
from infrastructure.outbound.log.verify.rows import StoredEventRow, made_row

FILE_FORMAT = 2
"""Raised if a release writes lines that an older one cannot read."""

HEADER_BYTES_MAX = 16 * 1024
POSITION_MAX = 2**62
_DIGITS_MAX = len(str(POSITION_MAX))
_INT_MAX = 2**31 - 1
_SHORT_MAX = 2**15 - 1
_CACHED_MAX = 8_192
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EVENT = "spawnlog.event."
_EXPORT = "spawnlog.export."
_LENGTH = struct.Struct(">I")
_ABSENT = 0xFFFFFFFF
_NUMBER = struct.Struct(">Iq").pack
_FIXED = struct.Struct(">IqIqIqI16sI16s").pack
_END = struct.Struct(">IqI").pack


_NO_DATA = msgspec.Raw()


class LineFormatError(ValueError):
    """A line is wrong; the message says why."""


class UnknownFileFormatError(ValueError):
    """The file has an earlier or a newer format; the message says which release reads it."""


@lru_cache(maxsize=_CACHED_MAX)
def instant_text(instant: datetime) -> str:
    """Return an instant in RFC 3339 form, always with six fractional digits."""
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


@lru_cache(maxsize=_CACHED_MAX)
def instant_of(text: str) -> datetime:
    """Return the instant of a text in this form.

    Raises:
        LineFormatError: The text has another form.
    """
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is not None and instant_text(instant) == text:
            return instant
    except (TypeError, ValueError, OverflowError):
        pass
    raise LineFormatError(f"{text[:60]!r} is not a time of the form 2026-01-31T12:00:00.000000Z")


@lru_cache(maxsize=_CACHED_MAX)
def _instant_since_1970(microseconds_: int) -> str:
    try:
        return instant_text(_EPOCH + timedelta(microseconds=microseconds_))
    except OverflowError:
        raise LineFormatError("an instant is outside the years 1 to 9999") from None


def _encode_line(members: Mapping[str, Any]) -> bytes:
    """Return the line of these members, without the absent ones."""
    present = {name: value for name, value in members.items() if value is not None}
    try:
        return orjson.dumps(present, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError as error:
        raise LineFormatError(f"a text cannot be written as JSON: {error}") from None


def _frame(name: str, identity: object, source: str, /, **members: Any) -> dict[str, Any]:
    time = members.pop("time", None)
    return {
        "specversion": "1.0",
        "id": str(identity),
        "source": source,
        "type": _EXPORT + name,
        "time": time,
        "datacontenttype": "application/json",
        **members,
    }


def _data_members(data: bytes) -> tuple[msgspec.Raw, str | None]:
    """Return the `data` members of a line: valid JSON unchanged, anything else as base64."""
    if b"\n" not in data and b"\r" not in data:
        try:
            orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
        else:
            return msgspec.Raw(data), None
    return _NO_DATA, b64encode(data).decode()


def _is_plain(line: bytes) -> bool:
    r"""Return True if the line is ASCII and has no `\u` escape."""
    return line.isascii() and (b"\\" not in line or b"\\u" not in line)


def _count(text: str) -> int:
    if len(text) > _DIGITS_MAX or not text.isdecimal():
        raise LineFormatError("a number is invalid")
    number = int(text)
    if number > POSITION_MAX:
        raise LineFormatError(f"the number {number} is too large")
    return number


def _within(number: int, most: int = _INT_MAX) -> int:
    if not 0 <= number <= most:
        raise LineFormatError(f"the number {number} is too large")
    return number


class _Members(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """Members of a line, in their order in the file."""

    specversion: Literal["1.0"]

    def line(self) -> bytes:
        return _encode_members(self) + b"\n"


_encode_members = msgspec.json.Encoder().encode


class _EventMembers(_Members, kw_only=True):
    id: UUID
    source: str
    type: str
    subject: str
    time: str
    datacontenttype: Literal["application/json"]
    position: str
    streamversion: int
    typeversion: int
    occurredat: str
    commandid: UUID
    actorkind: str
    actortoken: str | None = None
    actorsession: str | None = None
    causationid: UUID | None = None
    correlationid: str | None = None
    runid: UUID | None = None
    traceparent: str | None = None
    configrevision: int
    writerversion: str
    appendlast: str
    commitend: bool | None = None
    previoushash: str | None = None
    chainhash: str
    data: msgspec.Raw = _NO_DATA
    data_base64: str | None = None


_decode_event = msgspec.json.Decoder(_EventMembers).decode
_NO_FIELD = _LENGTH.pack(_ABSENT)


@lru_cache(maxsize=_CACHED_MAX)
def _microseconds_of(text: str) -> int:
    return microseconds(instant_of(text))


@lru_cache(maxsize=_CACHED_MAX)
def _fields(*texts: str | None) -> bytes:
    """Return the texts as the hash chain encodes them."""
    return b"".join(
        _NO_FIELD if text is None else _LENGTH.pack(len(data := text.encode())) + data
        for text in texts
    )


def _id_field(identity: UUID | None) -> bytes:
    return _NO_FIELD if identity is None else b"\0\0\0\x10" + identity.int.to_bytes(16, "big")


class EventLine(NamedTuple):
    """An event line: the event's columns and stored bytes, and whether a commit ended with it. In
    the file of a tree, also the hash of the previous event of the log.

    `revision_at` is the offset of the configuration revision in the bytes that the chain covers.
    """

    row: StoredEventRow
    ends_commit: bool
    previous_hash: bytes | None
    revision_at: int

    @classmethod
    def read(cls, line: bytes, source: str) -> Self:
        """Parse a line.

        Raises:
            ValueError: Writing the event would not give the same line.
        """
        members = _decode_event(line)
        if members.data_base64 is None:
            state = bytes(members.data)
        else:
            state = b64decode(members.data_base64, validate=True)
        position, append_last = _count(members.position), _count(members.appendlast)
        version = _within(members.streamversion)
        type_version = _within(members.typeversion, _SHORT_MAX)
        revision = _within(members.configrevision)
        recorded_at, occurred_at = (
            _microseconds_of(members.time),
            _microseconds_of(members.occurredat),
        )
        chain_hash = unhexlify(members.chainhash)
        previous = unhexlify(members.previoushash) if members.previoushash is not None else None
        if len(chain_hash) != 32:
            raise LineFormatError("its hash is invalid")
        # Normalize the members that msgspec accepts in several forms; it writes the others in one
        # form.
        members.position, members.appendlast = str(position), str(append_last)
        members.chainhash, members.commitend = chain_hash.hex(), members.commitend or None
        members.previoushash = previous.hex() if previous is not None else None
        if members.data_base64 is not None or not state or b"\r" in state or not _is_plain(line):
            members.data, members.data_base64 = _data_members(state)
        if members.source != source or not members.type.startswith(_EVENT):
            raise ValueError
        _require_same(members.line(), line)
        event_id, command_id = (
            members.id.int.to_bytes(16, "big"),
            members.commandid.int.to_bytes(16, "big"),
        )
        name = members.type[len(_EVENT) :]
        writer = _fields(members.writerversion)
        encoded = bytearray().join(
            (
                _NUMBER(8, position),
                _fields(members.subject),
                _NUMBER(8, version),
                _fields(name),
                _FIXED(
                    *(8, type_version, 8, recorded_at, 8, occurred_at),
                    *(16, event_id, 16, command_id),
                ),
                _fields(members.actorkind, members.actortoken, members.actorsession),
                _id_field(members.causationid),
                _fields(members.correlationid),
                _id_field(members.runid),
                _fields(members.traceparent),
                _NUMBER(8, revision),
                writer,
                _END(8, append_last, len(state)),
                state,
            )
        )
        row = made_row(
            (
                *(position, members.subject, version, name, type_version, recorded_at),
                *(event_id, command_id, append_last, state, chain_hash, encoded),
            )
        )
        revision_at = len(encoded) - len(state) - _BEHIND_REVISION - len(writer)
        return cls(row, members.commitend is True, previous, revision_at)


_BEHIND_REVISION = 8 + 12 + 4
"""The bytes of the revision itself, the append's last position, and the length of the state."""


def event_line(
    source: str, row: StoredEventRow, *, ends_commit: bool, previous_hash: bytes | None = None
) -> bytes:
    """Return the line of a row. `source` is the source of the file."""
    occurred, _, _, *provenance = _last_fields(row)
    actor, token, session, causation, correlation, run_id, trace, revision, writer = provenance
    data, data_base64 = _data_members(row.state)
    return _EventMembers(
        specversion="1.0",
        id=UUID(bytes=row.event_id),
        source=source,
        type=_EVENT + row.type,
        subject=row.stream,
        time=_instant_since_1970(row.recorded_at),
        datacontenttype="application/json",
        position=str(row.position),
        streamversion=row.version,
        typeversion=row.type_version,
        occurredat=_instant_since_1970(_integer(occurred)),
        commandid=UUID(bytes=row.command_id),
        actorkind=_text(actor) or "",
        actortoken=_text(token),
        actorsession=_text(session),
        causationid=_uuid(causation),
        correlationid=_text(correlation),
        runid=_uuid(run_id),
        traceparent=_text(trace),
        configrevision=_integer(revision),
        writerversion=_text(writer) or "",
        appendlast=str(row.append_last),
        commitend=ends_commit or None,
        previoushash=previous_hash.hex() if previous_hash is not None else None,
        chainhash=row.chain_hash.hex(),
        data=data,
        data_base64=data_base64,
    ).line()


def _last_fields(row: StoredEventRow) -> list[bytes | None]:
    """Return the fields that the chain covers from `occurred_at` to `writer_version`; an absent one
    is None."""
    fields: list[bytes | None] = []
    encoded = row.encoded
    # After four eight-byte numbers and two texts, each preceded by its length.
    at = 4 * 12 + 4 + len(row.stream.encode()) + 4 + len(row.type.encode())
    for _ in range(12):
        (length,) = _LENGTH.unpack_from(encoded, at)
        at += 4
        if length == _ABSENT:
            fields.append(None)
        else:
            fields.append(bytes(encoded[at : at + length]))
            at += length
    return fields


def _text(field: bytes | None) -> str | None:
    return field.decode() if field is not None else None


def _uuid(field: bytes | None) -> UUID | None:
    return UUID(bytes=field) if field is not None else None


def _integer(field: bytes | None) -> int:
    return int.from_bytes(field or b"", "big", signed=True)


def _require_same(written: bytes, line: bytes) -> None:
    if written != line:
        raise ValueError


class _KeyMembers(_Members, kw_only=True):
    id: UUID
    source: str
    type: Literal["spawnlog.export.content-key"]
    datacontenttype: Literal["application/json"]
    data: str


_decode_key = msgspec.json.Decoder(_KeyMembers).decode


class KeyLine(NamedTuple):
    """The key that hashes the texts of a session. A secret."""

    session_id: UUID
    key: bytes

    def line(self, source: str) -> bytes:
        return _KeyMembers(
            specversion="1.0",
            id=self.session_id,
            source=source,
            type="spawnlog.export.content-key",
            datacontenttype="application/json",
            data=self.key.hex(),
        ).line()

    @classmethod
    def read(cls, line: bytes, source: str) -> Self:
        """Parse a line.

        Raises:
            ValueError: Writing the key would not give the same line.
        """
        members = _decode_key(line)
        key = unhexlify(members.data)
        if not 1 <= len(key) <= 1_024:
            raise LineFormatError("its key is invalid")
        found = cls(members.id, key)
        _require_same(found.line(source), line)
        return found


class _ContentMembers(_Members, kw_only=True):
    id: UUID
    source: str
    type: Literal["spawnlog.export.content"]
    datacontenttype: Literal["application/json"]
    sessionid: UUID
    kind: str
    hmac: str
    data: str


_decode_content = msgspec.json.Decoder(_ContentMembers).decode


class ContentLine(NamedTuple):
    """A text stored beside the log."""

    content_id: UUID
    session_id: UUID
    kind: str
    hmac: str
    body: str

    def line(self, source: str) -> bytes:
        return _ContentMembers(
            specversion="1.0",
            id=self.content_id,
            source=source,
            type="spawnlog.export.content",
            datacontenttype="application/json",
            sessionid=self.session_id,
            kind=self.kind,
            hmac=self.hmac,
            data=self.body,
        ).line()

    @classmethod
    def read(cls, line: bytes, source: str) -> Self:
        """Parse a line.

        Raises:
            ValueError: Writing the text would not give the same line.
        """
        members = _decode_content(line)
        if members.source != source:
            raise ValueError
        _require_same(members.line(), line)
        return cls(members.id, members.sessionid, members.kind, members.hmac, members.data)


class _EntryMembers(_Members, kw_only=True):
    id: str
    source: str
    type: Literal["spawnlog.export.transcript-entry"]
    time: str
    datacontenttype: Literal["application/json"]
    runid: UUID
    entrynumber: int
    kind: str
    data: msgspec.Raw = _NO_DATA
    data_base64: str | None = None


_decode_entry = msgspec.json.Decoder(_EntryMembers).decode


class EntryLine(NamedTuple):
    """An entry of a transcript; `body` is JSON as stored."""

    run_id: UUID
    sequence: int
    recorded_at: datetime
    kind: str
    body: str

    def line(self, source: str) -> bytes:
        data, data_base64 = _data_members(self.body.encode())
        return _EntryMembers(
            specversion="1.0",
            id=f"{self.run_id}/{self.sequence}",
            source=source,
            type="spawnlog.export.transcript-entry",
            time=instant_text(self.recorded_at),
            datacontenttype="application/json",
            runid=self.run_id,
            entrynumber=self.sequence,
            kind=self.kind,
            data=data,
            data_base64=data_base64,
        ).line()

    @classmethod
    def read(cls, line: bytes, source: str) -> Self:
        """Parse a line.

        Raises:
            ValueError: Writing the entry would not give the same line.
        """
        members = _decode_entry(line)
        if members.data_base64 is None:
            body = bytes(members.data).decode()
        else:
            body = b64decode(members.data_base64, validate=True).decode()
        if "\0" in body:
            raise LineFormatError("its body is not text")
        sequence = _within(members.entrynumber)
        found = cls(members.runid, sequence, instant_of(members.time), members.kind, body)
        _require_same(found.line(source), line)
        return found


ExportScope = Literal["log", "range", "tree"]


def _number_of(value: Any) -> Any:
    return _count(value) if isinstance(value, str) else value


def _bytes_of(value: Any) -> Any:
    return unhexlify(value) if isinstance(value, str) else value


_Count = Annotated[int, BeforeValidator(_number_of), PlainSerializer(str)]
_OptionalCount = Annotated[
    int | None,
    BeforeValidator(_number_of),
    PlainSerializer(lambda value: None if value is None else str(value)),
]
_Hash = Annotated[bytes, BeforeValidator(_bytes_of), PlainSerializer(bytes.hex)]


class _Facts(BaseModel):
    """Content of the first or the last line; its members are in the order of the fields."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True)

    def encoded_line(self, name: str, source: str) -> bytes:
        """Return the line of this name."""
        data = self.model_dump(mode="json", by_alias=True)
        return _encode_line(_frame(name, name, source, data=data))


class ExportHeader(_Facts):
    """The header of a file: the log that it is of, the exported part, and whether texts and
    transcripts are included.

    `after` is the position before the first event, and `after_hash` its chain hash, empty at the
    beginning of the log. `until` is the last requested position, None for no limit. `tree` is the
    key of the tree's root session.
    """

    format: int = FILE_FORMAT
    log_format: int = Field(ge=0)
    log_id: UUID
    scope: ExportScope
    after: _Count
    after_hash: _Hash = Field(alias="afterChainHash")
    until: _OptionalCount
    tree: str | None
    has_contents: bool = Field(alias="contents")
    has_transcripts: bool = Field(alias="transcripts")

    @property
    def source(self) -> str:
        """Return the log's name in the lines."""
        return f"urn:spawnlog:log:{self.log_id}"

    def line(self) -> bytes:
        """Return the first line."""
        return self.encoded_line("begin", self.source)


class ExportSeal(_Facts):
    """The last line: the number of lines before it, by kind, and their hash."""

    events: _Count
    last_position: _Count
    chain_hash: _Hash
    keys: _Count
    contents: _Count
    entries: _Count = Field(alias="transcriptEntries")
    sha256: _Hash

    def line(self, source: str) -> bytes:
        """Return the last line of a file with this source."""
        return self.encoded_line("end", source)

    @classmethod
    def read(cls, line: bytes, source: str) -> Self:
        """Parse a line.

        Raises:
            ValueError: Writing the seal would not give the same line.
        """
        found = cls.model_validate(_members(line)["data"])
        _require_same(found.line(source), line)
        return found


def parse_header(line: bytes) -> ExportHeader:
    """Parse the first line of a file.

    Raises:
        UnknownFileFormatError: The file has another format.
        LineFormatError: `ExportHeader.line` would not write this line.
    """
    members = _members(line)
    if members.get("type") != f"{_EXPORT}begin" or not isinstance(members.get("data"), dict):
        raise LineFormatError(f"it is not a line of the type {_EXPORT}begin")
    facts = members["data"]
    found = facts.get("format")
    if isinstance(found, int) and found < FILE_FORMAT:
        raise UnknownFileFormatError(
            f"the file has format {found}, an earlier one that this program does not read (it reads"
            f" {FILE_FORMAT}); use the release that wrote it"
        )
    if isinstance(found, int) and found > FILE_FORMAT:
        raise UnknownFileFormatError(
            f"the file has format {found} and this program reads {FILE_FORMAT}; install a newer"
            " spawnlog"
        )
    try:
        header = ExportHeader.model_validate(facts)
        right = header.line() == line
    except ValueError:
        right = False
    if not right or len(header.after_hash) not in (0, 32):
        raise LineFormatError("it is not the first line of a spawnlog export")
    if (header.scope == "tree") != (header.tree is not None):
        raise LineFormatError("its tree does not match its scope")
    if header.scope == "log" and (header.after or header.after_hash or header.until is not None):
        raise LineFormatError("it claims to be both a whole log and a part of one")
    if header.scope == "range" and (header.after == 0) != (header.after_hash == b""):
        raise LineFormatError("it lacks the chain hash before its range")
    return header


AnyLine = EventLine | KeyLine | ContentLine | EntryLine | ExportSeal
_Reader = Callable[[bytes, str], AnyLine]
_READERS: Mapping[bytes, tuple[_Reader, str]] = {
    b"spawnlog.export.content-key": (KeyLine.read, "a key"),
    b"spawnlog.export.content": (ContentLine.read, "a text"),
    b"spawnlog.export.transcript-entry": (EntryLine.read, "an entry"),
    b"spawnlog.export.end": (ExportSeal.read, "a seal"),
}


_TYPE = b',"type":"'
_TYPE_FROM = len('{"specversion":"1.0","id":"","source":""')
_MISREAD = (
    *(KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError),
    msgspec.MsgspecError,
)


def parse_line(line: bytes, source: str) -> AnyLine:
    """Parse a line after the first one. `source` is the source of the first line.

    Raises:
        LineFormatError: This module would not have written the line.
    """
    # Nearly all lines pass here. A wrong line is parsed again for the reason.
    if b"\\" not in line or b"\\u0000" not in line:
        try:
            if is_event_line(line, source):
                return EventLine.read(line, source)
            at = line.index(_TYPE, _TYPE_FROM) + len(_TYPE)
            return _READERS[line[at : line.index(b'"', at)]][0](line, source)
        except _MISREAD:
            pass
    return _read_with_reason(line, source)


def _read_with_reason(line: bytes, source: str) -> AnyLine:
    members = _members(line)
    kind = members.get("type")
    if not isinstance(kind, str):
        raise LineFormatError("it is not a line of this file")
    read: _Reader
    read, noun = (
        (EventLine.read, "an event")
        if kind.startswith(_EVENT)
        else _READERS.get(kind.encode(), (_refuse, ""))
    )
    if members.get("source") != source:
        raise LineFormatError("its source is not the log of the first line")
    if b"\\u0000" in line and any(
        "\0" in text for text in members.values() if isinstance(text, str)
    ):
        raise LineFormatError("a text contains NUL, which a log does not allow")
    try:
        return read(line, source)
    except LineFormatError:
        raise
    except _MISREAD:
        raise LineFormatError(f"it is not a valid line of {noun}") from None


def _refuse(_: bytes, __: str) -> AnyLine:
    raise LineFormatError("it is not a line of this file")


def _members(line: bytes) -> dict[str, Any]:
    try:
        members = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise LineFormatError(f"it is not JSON: {error}") from None
    if not isinstance(members, dict):
        raise LineFormatError("it is not a line of this file")
    return members


_EVENT_TYPE_AT = len('{"specversion":"1.0","id":"","source":""') + 36


def is_event_line(line: bytes, source: str) -> bool:
    """Return True if the line begins like an event line of this source."""
    return line.startswith(b',"type":"spawnlog.event.', _EVENT_TYPE_AT + len(source))
