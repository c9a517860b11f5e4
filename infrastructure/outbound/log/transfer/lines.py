"""The lines of an exported file: each is a CloudEvent and has one form only.

A line is read only if writing it again gives the same bytes. So no second spelling of a number, an
instant or a name needs a rule, and a file that was imported is exported as the same file.
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

from application.log.envelope import Actor, Envelope, Provenance
from infrastructure.outbound.log.codec.chain import encode_event, microseconds
from infrastructure.outbound.log.verify.rows import StoredEventRow

FILE_FORMAT = 2
"""Raised when a release writes lines that an older one cannot read."""

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


_NO_DATA = msgspec.Raw()


class LineFault(ValueError):
    """What is wrong with one line, in words."""


class UnknownFileFormat(ValueError):
    """The file is of an earlier or a newer format; the message says which release reads it."""


@lru_cache(maxsize=_CACHED_MAX)
def instant_text(instant: datetime) -> str:
    """Return an instant as RFC 3339 prints it, always with six digits."""
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


@lru_cache(maxsize=_CACHED_MAX)
def instant_of(text: str) -> datetime:
    """Return the instant of a text in this form. `LineFault` for any other text."""
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is not None and instant_text(instant) == text:
            return instant
    except (TypeError, ValueError, OverflowError):
        pass
    raise LineFault(f"{text[:60]!r} is no instant of the form 2026-01-31T12:00:00.000000Z")


@lru_cache(maxsize=_CACHED_MAX)
def _instant_since_1970(microseconds_: int) -> str:
    try:
        return instant_text(_EPOCH + timedelta(microseconds=microseconds_))
    except OverflowError:
        raise LineFault("an instant is outside the years 1 to 9999") from None


def _printed(members: Mapping[str, Any]) -> bytes:
    """A line of these members, without the absent ones."""
    present = {name: value for name, value in members.items() if value is not None}
    try:
        return orjson.dumps(present, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError as error:
        raise LineFault(f"a text cannot be written as JSON: {error}") from None


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
    """The last member of a line: JSON as the very bytes it is, anything else as base64."""
    if b"\n" not in data and b"\r" not in data:
        try:
            orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
        else:
            return msgspec.Raw(data), None
    return _NO_DATA, b64encode(data).decode()


def _data_of(members: Mapping[str, Any], line: bytes) -> bytes:
    """The bytes that the last member of a line holds."""
    if "data_base64" in members:
        return b64decode(members["data_base64"], validate=True)
    # No text in front of it can hold this: its quotation marks would be escaped.
    return line[line.index(b',"data":') + len(b',"data":') : -len(b"}\n")]


def _member(members: Mapping[str, Any], name: str, kind: type) -> Any:
    """A member that is there and of this type."""
    value = members[name]
    if type(value) is not kind:
        raise TypeError(name)
    return value


def _count(text: Any) -> int:
    if not isinstance(text, str) or len(text) > _DIGITS_MAX or not text.isdecimal():
        raise LineFault("a number is none")
    number = int(text)
    if number > POSITION_MAX:
        raise LineFault(f"the number {number} is too large")
    return number


def _number(members: Mapping[str, Any], name: str, most: int = _INT_MAX) -> int:
    return _within(_member(members, name, int), most)


def _within(number: int, most: int = _INT_MAX) -> int:
    if not 0 <= number <= most:
        raise LineFault(f"the number {number} is too large")
    return number


class _EventMembers(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """The members of the line of an event, in the order in which they stand there."""

    specversion: Literal["1.0"]
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

    def line(self) -> bytes:
        """Return the line."""
        return _encode_members(self) + b"\n"


_decode_members = msgspec.json.Decoder(_EventMembers).decode
_encode_members = msgspec.json.Encoder().encode


class EventLine(NamedTuple):
    """An event as its line has it: its columns and stored bytes, whether a commit ended with it,
    and in the file of a tree the hash of the event before it in the log."""

    envelope: Envelope
    row: StoredEventRow
    ends_commit: bool
    previous_hash: bytes | None

    @classmethod
    def read(cls, _: Mapping[str, Any], line: bytes) -> Self:
        """Return the event of a line. `ValueError` if writing it would not give the same line."""
        try:
            one = _decode_members(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError from error
        if one.data_base64 is None:
            state = bytes(one.data)
        else:
            state = b64decode(one.data_base64, validate=True)
        chain_hash = unhexlify(one.chainhash)
        previous = unhexlify(one.previoushash) if one.previoushash is not None else None
        envelope = Envelope(
            position=_count(one.position),
            stream=one.subject,
            version=_within(one.streamversion),
            type=one.type.removeprefix(_EVENT),
            type_version=_within(one.typeversion, _SHORT_MAX),
            recorded_at=instant_of(one.time),
            occurred_at=instant_of(one.occurredat),
            event_id=one.id,
            command_id=one.commandid,
            provenance=Provenance(
                Actor(one.actorkind, one.actortoken, one.actorsession),
                one.correlationid,
                one.causationid,
                one.runid,
                one.traceparent,
                _within(one.configrevision),
            ),
            writer_version=one.writerversion,
            append_last=_count(one.appendlast),
            chain_hash=chain_hash,
        )
        if len(chain_hash) != 32:
            raise LineFault("its hash is none")
        # What has one form only once it is read; the rest is as msgspec writes it.
        one.position, one.appendlast = str(envelope.position), str(envelope.append_last)
        one.chainhash, one.commitend = chain_hash.hex(), one.commitend or None
        one.previoushash = previous.hex() if previous is not None else None
        if one.data_base64 is not None or not state or b"\r" in state:
            one.data, one.data_base64 = _data_members(state)
        if one.line() != line:
            raise ValueError
        row = StoredEventRow(
            *envelope[:5],
            microseconds(envelope.recorded_at),
            envelope.event_id.bytes,
            envelope.command_id.bytes,
            envelope.append_last,
            state,
            chain_hash,
            bytearray(encode_event(envelope, state)),
        )
        return cls(envelope, row, one.commitend is True, previous)


def event_line(
    source: str, row: StoredEventRow, *, ends_commit: bool, previous_hash: bytes | None = None
) -> bytes:
    """Return the line of a row; `source` is the file's."""
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
    """The fields that the chain covers from `occurred_at` to `writer_version`; None for an absent
    one."""
    fields: list[bytes | None] = []
    encoded = row.encoded
    # Behind four numbers of eight bytes and two texts, each with its length in front.
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


class KeyLine(NamedTuple):
    """The key under which the texts of a session are hashed. A secret."""

    session_id: UUID
    key: bytes

    def line(self, source: str) -> bytes:
        """Return its line."""
        return _printed(_frame("content-key", self.session_id, source, data=self.key.hex()))

    @classmethod
    def read(cls, members: Mapping[str, Any], _: bytes) -> Self:
        """Return the key of a line with these members."""
        key = unhexlify(members["data"])
        if not 1 <= len(key) <= 1_024:
            raise LineFault("its key is none")
        return cls(UUID(members["id"]), key)


class ContentLine(NamedTuple):
    """A text beside the log."""

    content_id: UUID
    session_id: UUID
    kind: str
    hmac: str
    body: str

    def line(self, source: str) -> bytes:
        """Return its line."""
        members = _frame(
            "content",
            self.content_id,
            source,
            sessionid=str(self.session_id),
            kind=self.kind,
            hmac=self.hmac,
            data=self.body,
        )
        return _printed(members)

    @classmethod
    def read(cls, members: Mapping[str, Any], _: bytes) -> Self:
        """Return the text of a line with these members."""
        ids = UUID(members["id"]), UUID(members["sessionid"])
        kind, keyed_hash, body = (_member(members, one, str) for one in ("kind", "hmac", "data"))
        return cls(*ids, kind, keyed_hash, body)


class EntryLine(NamedTuple):
    """An entry of a transcript; `body` is JSON as stored."""

    run_id: UUID
    sequence: int
    recorded_at: datetime
    kind: str
    body: str

    def line(self, source: str) -> bytes:
        """Return its line."""
        data, data_base64 = _data_members(self.body.encode())
        members = _frame(
            "transcript-entry",
            f"{self.run_id}/{self.sequence}",
            source,
            time=instant_text(self.recorded_at),
            runid=str(self.run_id),
            entrynumber=self.sequence,
            kind=self.kind,
            data=orjson.Fragment(bytes(data)) if data_base64 is None else None,
            data_base64=data_base64,
        )
        return _printed(members)

    @classmethod
    def read(cls, members: Mapping[str, Any], line: bytes) -> Self:
        """Return the entry of a line with these members."""
        body = _data_of(members, line).decode()
        if "\0" in body:
            raise LineFault("its body is no text")
        return cls(
            UUID(members["runid"]),
            _number(members, "entrynumber"),
            instant_of(members["time"]),
            _member(members, "kind", str),
            body,
        )


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
    """What the first or the last line says; its members are in the order of the fields."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True)

    def printed(self, name: str, source: str) -> bytes:
        """Return the line of this name."""
        data = self.model_dump(mode="json", by_alias=True)
        return _printed(_frame(name, name, source, data=data))


class ExportHeader(_Facts):
    """What a file says of itself: of which log it is, what of it, and what is beside the events.

    `after` is the position in front of the first event and `after_hash` its chain hash, empty at
    the beginning of the log; `until` is the last position that was wanted, None for all there are;
    `tree` the key of the tree's root session.
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
        """The log as the lines name it."""
        return f"urn:spawnlog:log:{self.log_id}"

    def line(self) -> bytes:
        """Return the first line."""
        return self.printed("begin", self.source)


class ExportSeal(_Facts):
    """The last line: how much there is in front of it, and the hash of all of that."""

    events: _Count
    last_position: _Count
    chain_hash: _Hash
    keys: _Count
    contents: _Count
    entries: _Count = Field(alias="transcriptEntries")
    sha256: _Hash

    def line(self, source: str) -> bytes:
        """Return the last line of a file with this source."""
        return self.printed("end", source)

    @classmethod
    def read(cls, members: Mapping[str, Any], _: bytes) -> Self:
        """Return the seal of a line with these members."""
        return cls.model_validate(members["data"])


def parse_header(line: bytes) -> ExportHeader:
    """Return what the first line of a file says.

    Raises:
        UnknownFileFormat: The file is of another format.
        LineFault: It is no line that `ExportHeader.line` gives.
    """
    members = _members(line)
    if members.get("type") != f"{_EXPORT}begin" or not isinstance(members.get("data"), dict):
        raise LineFault(f"it is no line of the type {_EXPORT}begin")
    facts = members["data"]
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
        header = ExportHeader.model_validate(facts)
        right = header.line() == line
    except ValueError:
        right = False
    if not right or len(header.after_hash) not in (0, 32):
        raise LineFault("it is not the first line of a file that spawnlog exported")
    if (header.scope == "tree") != (header.tree is not None):
        raise LineFault("it names no tree, or one that it is not of")
    if header.scope == "log" and (header.after or header.after_hash or header.until is not None):
        raise LineFault("it says that it is a whole log, and that it is a part of one")
    if header.scope == "range" and (header.after == 0) != (header.after_hash == b""):
        raise LineFault("it does not say the chain hash in front of its range")
    return header


AnyLine = EventLine | KeyLine | ContentLine | EntryLine | ExportSeal
_Read = Callable[[Mapping[str, Any], bytes], AnyLine]
_READERS: Mapping[str, tuple[_Read, str]] = {
    f"{_EXPORT}content-key": (KeyLine.read, "a key"),
    f"{_EXPORT}content": (ContentLine.read, "a text"),
    f"{_EXPORT}transcript-entry": (EntryLine.read, "an entry"),
    f"{_EXPORT}end": (ExportSeal.read, "a seal"),
}


_MISREAD = KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error
_SOURCE_AT = len('{"specversion":"1.0","id":"') + 36


@lru_cache(maxsize=1)
def _event_prefix(source: str) -> bytes:
    return f'","source":"{source}","type":"{_EVENT}'.encode()


def parse_line(line: bytes, source: str) -> AnyLine:
    """Return what a line behind the first one holds; `source` is that of the first line.

    `LineFault` for a line that this module would not have written.
    """
    if line.startswith(_event_prefix(source), _SOURCE_AT) and line.isascii() and b"\\u" not in line:
        # By far the most lines are so. One that is wrong is read once more, to say what is wrong.
        try:
            return EventLine.read({}, line)
        except _MISREAD:
            pass
    members = _members(line)
    kind = members.get("type")
    if not isinstance(kind, str):
        raise LineFault("it is no line of this file")
    read: _Read
    read, noun = (
        (EventLine.read, "an event")
        if kind.startswith(_EVENT)
        else _READERS.get(kind, (_refuse, ""))
    )
    if members.get("source") != source:
        raise LineFault("its source is not the log of the first line")
    if b"\\u0000" in line and any("\0" in one for one in members.values() if isinstance(one, str)):
        raise LineFault("a text holds the character NUL, which no text of a log can")
    try:
        one = read(members, line)
        right = isinstance(one, EventLine) or one.line(source) == line
    except LineFault:
        raise
    except _MISREAD:
        right = False
    if not right:
        raise LineFault(f"it is not the line of {noun} in the form of this file")
    return one


def _refuse(_: Mapping[str, Any], __: bytes) -> AnyLine:
    raise LineFault("it is no line of this file")


def _members(line: bytes) -> dict[str, Any]:
    try:
        members = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise LineFault(f"it is no JSON: {error}") from None
    if not isinstance(members, dict):
        raise LineFault("it is no line of this file")
    return members


_EVENT_TYPE_AT = len('{"specversion":"1.0","id":"","source":""') + 36


def is_event_line(line: bytes, source: str) -> bool:
    """Return True if a line begins as that of an event of this source."""
    return line.startswith(b',"type":"spawnlog.event.', _EVENT_TYPE_AT + len(source))
