"""The line of an event in an exported file: a CloudEvent that gives back the very bytes of its row.

A line has one form only: whatever is printed otherwise, with other spaces, names or escapes, is not
read. So a file that was read and is exported again is the same file.
"""

import re
import struct
from base64 import b64decode, b64encode
from binascii import hexlify, unhexlify
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import orjson

from infrastructure.outbound.log.codec.chain import link_hash, microseconds
from infrastructure.outbound.log.verify.rows import StoredEventRow

POSITION_MAX = 2**62
_INT_MAX = 2**31 - 1
_SHORT_MAX = 2**15 - 1
CACHED_MAX = 8_192
_INSTANT_FORM = re.compile(
    rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}\.[0-9]{6}Z"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR_2000_MICROSECONDS = 946_684_800_000_000
_ABSENT = b"\xff\xff\xff\xff"
_FIELD_LENGTH = struct.Struct(">I")
_NUMBER_FIELD = struct.Struct(">Iq").pack
_INT_FIELD = struct.Struct(">Ii").pack
_SHORT_FIELD = struct.Struct(">Ih").pack
_COLUMN_COUNT = struct.pack(">h", 21)


class LineFault(ValueError):
    """What is wrong with one line, in words."""


class EventLine(NamedTuple):
    """An event as its line has it: its row, whether a commit ended with it, in the file of a tree
    the hash of the event before it in the log, and its row as COPY takes it."""

    row: StoredEventRow
    ends_commit: bool
    previous_hash: bytes | None
    copied: bytes


@lru_cache(maxsize=CACHED_MAX)
def instant_text(instant: int) -> bytes:
    """Microseconds since 1970 as RFC 3339 prints them, always with six digits.

    `LineFault` for one outside the years 1 to 9999."""
    try:
        text = (_EPOCH + timedelta(microseconds=instant)).isoformat(timespec="microseconds")
    except OverflowError:
        raise LineFault("an instant is outside the years 1 to 9999") from None
    return text.removesuffix("+00:00").encode() + b"Z"


@lru_cache(maxsize=CACHED_MAX)
def instant_of(text: bytes) -> int:
    """The microseconds of an instant in this form. `LineFault` for any other text."""
    # Of this form a date has one text only, so it need not be printed again to be compared.
    if _INSTANT_FORM.fullmatch(text):
        try:
            return microseconds(datetime.fromisoformat(text.decode("ascii")))
        except ValueError:
            pass
    raise LineFault(f"{_shown(text)} is no instant of the form 2026-01-31T12:00:00.000000Z")


@lru_cache(maxsize=CACHED_MAX)
def instant_datetime(text: bytes) -> datetime:
    """The same instant, as a fold takes it."""
    return _EPOCH + timedelta(microseconds=instant_of(text))


def json_text(text: str) -> bytes:
    """A text as a JSON string. `LineFault` for what JSON cannot hold."""
    try:
        return orjson.dumps(text)
    except orjson.JSONEncodeError as error:
        raise LineFault(f"a text cannot be written as JSON: {error}") from None


def text_of(printed: bytes) -> str:
    """The text of a JSON string, without its quotation marks, in the only form that is read."""
    quoted = b'"%b"' % printed
    try:
        text = orjson.loads(quoted)
    except orjson.JSONDecodeError as error:
        raise LineFault(f"a text is no JSON string: {error}") from None
    if not isinstance(text, str) or orjson.dumps(text) != quoted:
        raise LineFault("a text is printed in another form than spawnlog's")
    if "\0" in text:
        raise LineFault("a text holds the character NUL, which no text of a log can")
    return text


def data_member(data: bytes) -> bytes:
    """The last member of a line: JSON as the very bytes it is, anything else as base64."""
    if b"\n" not in data and b"\r" not in data:
        try:
            orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
        else:
            return b'"data":%b}\n' % data
    return b'"data_base64":"%b"}\n' % b64encode(data)


def data_of(name: bytes, member: bytes) -> bytes:
    """The bytes that the last member of a line holds."""
    try:
        data = member if name == b"data" else b64decode(member[1:-1], validate=True)
    except ValueError:
        raise LineFault("data_base64 is not base64") from None
    if data_member(data) != b'"%b":%b}\n' % (name, member):
        raise LineFault("what it holds is not JSON, or not in the form that spawnlog writes")
    return data


def event_line(
    source: bytes, row: StoredEventRow, *, ends_commit: bool, previous_hash: bytes | None = None
) -> bytes:
    """The line of a row; `source` is the file's, as a JSON string."""
    fields = _fields(row.encoded)
    (_, stream, _, kind, _, _, occurred, event_id, command_id, *provenance) = fields
    actor, token, session, causation, correlation, run_id, trace, revision, writer, _, _ = (
        provenance
    )
    return b"".join(
        (
            b'{"specversion":"1.0","id":',
            _printed_uuid(event_id),
            b',"source":',
            source,
            b',"type":"spawnlog.event.',
            kind or b"",
            b'","subject":',
            _printed_text(stream),
            b',"time":"',
            instant_text(row.recorded_at),
            b'","datacontenttype":"application/json","position":"%d"' % row.position,
            b',"streamversion":%d,"typeversion":%d,"occurredat":"'
            % (row.version, row.type_version),
            instant_text(_number(occurred)),
            b'","commandid":',
            _printed_uuid(command_id),
            b',"actorkind":',
            _printed_text(actor),
            b"" if token is None else b',"actortoken":' + _printed_text(token),
            b"" if session is None else b',"actorsession":' + _printed_text(session),
            b"" if causation is None else b',"causationid":' + _printed_uuid(causation),
            b"" if correlation is None else b',"correlationid":' + _printed_text(correlation),
            b"" if run_id is None else b',"runid":' + _printed_uuid(run_id),
            b"" if trace is None else b',"traceparent":' + _printed_text(trace),
            b',"configrevision":%d,"writerversion":' % _number(revision),
            _printed_text(writer),
            b',"appendlast":"%d"' % row.append_last,
            b',"commitend":true' if ends_commit else b"",
            b""
            if previous_hash is None
            else b',"previoushash":"%b"' % previous_hash.hex().encode(),
            b',"chainhash":"%b",' % hexlify(row.chain_hash),
            data_member(row.state),
        )
    )


def _fields(encoded: bytes | bytearray) -> list[bytes | None]:
    """The fields that the chain covers; None for an absent one."""
    fields: list[bytes | None] = []
    at, end = 0, len(encoded)
    while at < end:
        (length,) = _FIELD_LENGTH.unpack_from(encoded, at)
        at += 4
        if length == 0xFFFFFFFF:
            fields.append(None)
        else:
            fields.append(bytes(encoded[at : at + length]))
            at += length
    return fields


@lru_cache(maxsize=CACHED_MAX)
def _printed_text(field: bytes | None) -> bytes:
    return json_text((field or b"").decode())


def _printed_uuid(field: bytes | None) -> bytes:
    digits = (field or b"").hex()
    return f'"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"'.encode()


def _number(field: bytes | None) -> int:
    return int.from_bytes(field or b"", "big", signed=True)


# Nothing in it can be matched in two ways, so a line that does not fit is found out at once.
_TEXT = rb'"([^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+)"'
_UUID = rb'"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"'
_NUMBER = rb"(0|[1-9][0-9]{0,18}+)"
_INSTANT = rb'"([0-9T:.-]{26}Z)"'
_HASH = rb'"([0-9a-f]{64})"'
_LINE = re.compile(
    rb'\{"specversion":"1\.0","id":%(uuid)b,"source":%(text)b'
    rb',"type":"spawnlog\.event\.([A-Za-z]{1,80})","subject":%(text)b,"time":%(instant)b'
    rb',"datacontenttype":"application/json","position":"%(number)b","streamversion":%(number)b'
    rb',"typeversion":%(number)b,"occurredat":%(instant)b,"commandid":%(uuid)b'
    rb',"actorkind":%(text)b(?:,"actortoken":%(text)b)?(?:,"actorsession":%(text)b)?'
    rb'(?:,"causationid":%(uuid)b)?(?:,"correlationid":%(text)b)?(?:,"runid":%(uuid)b)?'
    rb'(?:,"traceparent":%(text)b)?,"configrevision":%(number)b,"writerversion":%(text)b'
    rb',"appendlast":"%(number)b"(,"commitend":true)?(?:,"previoushash":%(hash)b)?'
    rb',"chainhash":%(hash)b,"(data|data_base64)":([^\r\n]*)\}\n'
    % {
        b"uuid": _UUID,
        b"text": _TEXT,
        b"number": _NUMBER,
        b"instant": _INSTANT,
        b"hash": _HASH,
    }
)
_ID_AT = len('{"specversion":"1.0","id":"')
EVENT_ID = slice(_ID_AT, _ID_AT + 36)
"""Where the id of an event stands in its line."""

_SOURCE_AT = EVENT_ID.stop + len('","source":')


def type_offset(source: bytes) -> int:
    """Where the type of an event of this source stands in its line, with the comma before it."""
    return _SOURCE_AT + len(source)


def is_event_line(line: bytes, source: bytes) -> bool:
    """Whether it begins as the line of an event of this source."""
    return line.startswith(b',"type":"spawnlog.event.', _SOURCE_AT + len(source))


def parse_event_line(line: bytes, source: bytes) -> EventLine:
    """The row of a line. `LineFault` when it is not a line that `event_line` would have written."""
    found = _LINE.fullmatch(line)
    if found is None:
        raise LineFault("it is not the line of an event in the form of this file")
    members = found.groups()
    event_id, of_log, kind, subject, recorded = members[:5]
    occurred, command_id = members[8:10]
    writer, _, ends_commit, previous_hash, chain_hash, name, member = members[18:]
    if b'"%b"' % of_log != source:
        raise LineFault("its source is not the log of the first line")
    numbers = _numbers(members)
    instants = instant_of(recorded), instant_of(occurred)
    ids = _uuid(event_id), _uuid(command_id)
    texts = _text_field(subject), _text_field(kind)
    # Whether it is JSON at all is found out when it is decoded, which every reader does.
    state = member if name == b"data" else data_of(name, member)
    middle = b"".join((*ids, *_provenance(*members[10:17])))
    behind = b"".join(
        (_text_field(writer), _NUMBER_FIELD(8, numbers[4]), _FIELD_LENGTH.pack(len(state)), state)
    )
    digest = unhexlify(chain_hash)
    encoded, copied = _encoded_and_copied(numbers, texts, instants, middle, behind, digest)
    row = StoredEventRow(
        numbers[0],
        texts[0][4:].decode(),
        numbers[1],
        kind.decode(),
        numbers[2],
        instants[0],
        ids[0][4:],
        ids[1][4:],
        numbers[4],
        state,
        digest,
        encoded,
    )
    previous = unhexlify(previous_hash) if previous_hash else None
    return EventLine(row, ends_commit is not None, previous, copied)


EventNumbers = tuple[int, int, int, int, int]
"""Position, version, version of the type, revision of the configuration, end of the append."""


def _numbers(members: tuple[bytes, ...]) -> EventNumbers:
    """`LineFault` for one that no row could hold."""
    numbers = int(members[5]), int(members[6]), int(members[7]), int(members[17]), int(members[19])
    position, version, type_version, revision, append_last = numbers
    if (
        position > POSITION_MAX
        or append_last > POSITION_MAX
        or version > _INT_MAX
        or revision > _INT_MAX
        or type_version > _SHORT_MAX
    ):
        raise LineFault(f"one of the numbers {', '.join(map(str, numbers))} is too large")
    return numbers


def _provenance(
    actor: bytes,
    token: bytes | None,
    session: bytes | None,
    causation: bytes | None,
    correlation: bytes | None,
    run_id: bytes | None,
    trace: bytes | None,
) -> tuple[bytes, ...]:
    """Who acted and why, as fields."""
    return (
        _text_field(actor),
        _ABSENT if token is None else _text_field(token),
        _ABSENT if session is None else _text_field(session),
        _ABSENT if causation is None else _uuid(causation),
        _ABSENT if correlation is None else _text_field(correlation),
        _ABSENT if run_id is None else _uuid(run_id),
        _ABSENT if trace is None else _text_field(trace),
    )


def _encoded_and_copied(
    numbers: EventNumbers,
    texts: tuple[bytes, bytes],
    instants: tuple[int, int],
    middle: bytes,
    behind: bytes,
    digest: bytes,
) -> tuple[bytearray, bytes]:
    """The bytes that the hash of an event covers, and its row as COPY takes it."""
    position, version, type_version, revision, _ = numbers
    (stream, kind), (recorded, occurred) = texts, instants
    position_field = _NUMBER_FIELD(8, position)
    encoded = (
        position_field,
        stream,
        _NUMBER_FIELD(8, version),
        kind,
        _NUMBER_FIELD(8, type_version),
        _NUMBER_FIELD(8, recorded),
        _NUMBER_FIELD(8, occurred),
        middle,
        _NUMBER_FIELD(8, revision),
        behind,
    )
    copied = (
        _COLUMN_COUNT,
        position_field,
        stream,
        _INT_FIELD(4, version),
        kind,
        _SHORT_FIELD(2, type_version),
        _NUMBER_FIELD(8, recorded - _YEAR_2000_MICROSECONDS),
        _NUMBER_FIELD(8, occurred - _YEAR_2000_MICROSECONDS),
        middle,
        _INT_FIELD(4, revision),
        behind,
        b"\0\0\0\x20",
        digest,
    )
    return bytearray().join(encoded), b"".join(copied)


EVENT_COLUMNS = (
    *("position", "stream", "version", "type", "type_version", "recorded_at", "occurred_at"),
    *("event_id", "command_id", "actor_kind", "actor_token", "actor_session", "causation"),
    *("correlation", "run_id", "traceparent", "config_revision", "writer_version"),
    *("append_last", "state", "chain_hash"),
)
"""The columns of `EventLine.copied`."""


def own_hash(line: EventLine) -> bytes:
    """What the hash of an event of a tree must be behind the one that its line names."""
    return link_hash(line.previous_hash or b"", line.row.encoded)


@lru_cache(maxsize=CACHED_MAX)
def _text_field(printed: bytes) -> bytes:
    text = text_of(printed).encode()
    return _FIELD_LENGTH.pack(len(text)) + text


def _uuid(printed: bytes) -> bytes:
    return b"\0\0\0\x10" + unhexlify(printed.replace(b"-", b""))


def _shown(text: bytes) -> str:
    return repr(text[:60].decode("utf-8", "replace"))
