"""The line of an event gives its row back, byte by byte, whatever its content."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.log.envelope import Actor, Envelope, Provenance
from infrastructure.outbound.log.codec.chain import encode_event, link_hash, microseconds
from infrastructure.outbound.log.transfer.lines import (
    EventLine,
    LineFormatError,
    event_line,
    instant_of,
    instant_text,
    parse_line,
)
from infrastructure.outbound.log.verify.rows import StoredEventRow

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SOURCE = "urn:spawnlog:log:00000000-0000-0000-0000-000000000001"
# PostgreSQL holds neither NUL nor halves of characters.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
names = st.text("abcXYZ", min_size=1, max_size=20)
instants = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
states = st.one_of(
    st.binary(max_size=60),
    st.recursive(
        st.none() | st.integers() | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    ).map(lambda value: json.dumps(value).encode()),
)
sources = st.builds(
    Provenance,
    st.builds(Actor, texts, st.none() | texts, st.none() | texts),
    correlation=st.none() | texts,
    causation=st.none() | st.uuids(),
    run_id=st.none() | st.uuids(),
    traceparent=st.none() | texts,
    config_revision=st.integers(0, 2**31 - 1),
)


@st.composite
def rows(draw: st.DrawFn) -> StoredEventRow:
    position = draw(st.integers(1, 2**62))
    envelope = Envelope(
        position,
        draw(texts.filter(bool)),
        draw(st.integers(1, 2**31 - 1)),
        draw(names),
        draw(st.integers(0, 2**15 - 1)),
        draw(instants),
        draw(instants),
        draw(st.uuids()),
        draw(st.uuids()),
        draw(sources),
        draw(texts),
        draw(st.integers(position, 2**62)),
        b"",
    )
    return row_of(envelope, draw(states))


def row_of(envelope: Envelope, state: bytes) -> StoredEventRow:
    encoded = encode_event(envelope, state)
    return StoredEventRow(
        envelope.position,
        envelope.stream,
        envelope.version,
        envelope.type,
        envelope.type_version,
        microseconds(envelope.recorded_at),
        envelope.event_id.bytes,
        envelope.command_id.bytes,
        envelope.append_last,
        state,
        link_hash(b"", encoded),
        bytearray(encoded),
    )


@given(rows(), st.booleans(), st.none() | st.binary(min_size=32, max_size=32))
def test_line_gives_its_row_back(
    row: StoredEventRow, ends_commit: bool, previous: bytes | None
) -> None:
    line = event_line(SOURCE, row, ends_commit=ends_commit, previous_hash=previous)
    assert line.count(b"\n") == 1
    read = parse_line(line, SOURCE)
    assert isinstance(read, EventLine)
    assert read.row == row
    assert (read.ends_commit, read.previous_hash) == (ends_commit, previous)
    assert read.row.hash_after(b"") == row.chain_hash


@given(rows())
def test_line_is_a_cloud_event(row: StoredEventRow) -> None:
    event: dict[str, Any] = json.loads(event_line(SOURCE, row, ends_commit=True))
    assert event["specversion"] == "1.0"
    assert event["id"] == str(UUID(bytes=row.event_id))
    assert event["subject"] == row.stream
    assert event["type"] == f"spawnlog.event.{row.type}"
    assert event["position"] == str(row.position)
    attributes = set(event) - {"data_base64"}
    assert all(
        attribute.isalnum() and attribute.islower() and len(attribute) <= 20
        for attribute in attributes
    )
    # An Integer of CloudEvents has 32 bits; a position has more.
    numbers = [value for name, value in event.items() if isinstance(value, int) and name != "data"]
    assert all(-(2**31) <= number < 2**31 for number in numbers)
    assert ("data" in event) != ("data_base64" in event)


@given(rows(), st.data())
def test_line_in_another_form_is_not_read(row: StoredEventRow, data: st.DataObject) -> None:
    line = event_line(SOURCE, row, ends_commit=False)
    others = [
        json.dumps(json.loads(line)).encode() + b"\n",
        line.replace(b'"position":"', b'"position":"0', 1),
        line[:-1] + b"\r\n",
        line[:-1],
        line.replace(b'{"specversion"', b'{"extra":1,"specversion"', 1),
        line.replace(b'"appendlast":"', b'"appendlast":"9999999999999999999', 1),
        line.replace(b'"streamversion":', b'"streamversion":-', 1),
        line.replace(b'Z","datacontenttype"', b'+00:00","datacontenttype"', 1),
    ]
    with pytest.raises(LineFormatError):
        parse_line(data.draw(st.sampled_from(others)), SOURCE)


NUMBERS = [b'"position":"', b'"streamversion":', b'"typeversion":', b'"configrevision":']


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (b"000000000001", b"000000000002", "its source is not the log of the first line"),
        (b'"subject":"run:x"', rb'"subject":"run:\u0000"', "NUL"),
        (b'"time":"1970-01-01', b'"time":"1970-02-31', "is not a time"),
        *((number, number + b"700000000000000000", "is too large") for number in NUMBERS),
    ],
)
def test_impossible_line_is_not_read(old: bytes, new: bytes, fault: str) -> None:
    nobody = UUID(int=0)
    envelope = Envelope(
        1, "run:x", 1, "RunStarted", 1, EPOCH, EPOCH, nobody, nobody, Provenance(), "0", 1, b""
    )
    line = event_line(SOURCE, row_of(envelope, b"{}"), ends_commit=False)
    assert old in line
    with pytest.raises(LineFormatError, match=fault):
        parse_line(line.replace(old, new), SOURCE)


@given(
    st.from_regex(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-2][0-9]:[0-6][0-9]:[0-6][0-9][.,][0-9]{5,7}Z?",
        fullmatch=True,
    )
    | instants.map(lambda instant: instant.isoformat(timespec="microseconds")[:26] + "Z")
)
def test_instant_is_read_as_it_is_written(text: str) -> None:
    try:
        instant = instant_of(text)
    except LineFormatError:
        return
    assert instant_text(instant) == text


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T24:00:00.000000Z",
        "2026-W05-6T12:00:00.0000000",
        "2026-01-31T12:00:00,000000Z",
        "0000-01-31T12:00:00.000000Z",
        "2026-01-31T12:00:00.000000Z\n",
    ],
)
def test_instant_in_another_form_is_not_read(text: str) -> None:
    with pytest.raises(LineFormatError, match="is not a time"):
        instant_of(text)
