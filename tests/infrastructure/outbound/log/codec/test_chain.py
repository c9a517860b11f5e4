"""The chain: one fixed encoding, in which every change shows."""

import hashlib
import struct
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from application.log.envelope import Actor, Envelope, Provenance
from infrastructure.outbound.log.codec.chain import chain_hash, microseconds

PREVIOUS = bytes(range(32))
STATE = b'{"runId":"1"}'
GOLDEN = "c177ec93a885df2724fe6c072a08f355a2007ac356c603530fd531afdc71d42b"
ACTOR = Actor(kind="token", token="orchestrator", session="agent:main:main")
SOURCE = Provenance(
    actor=ACTOR,
    causation=UUID(int=3),
    correlation="agent:main:main",
    run_id=UUID(int=4),
    traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    config_revision=7,
)
ENVELOPE = Envelope(
    position=18_342,
    stream="session:agent:main:main",
    version=3,
    type="ChildAdmitted",
    type_version=1,
    recorded_at=datetime(2026, 3, 1, 12, 0, 0, 123_457, UTC),
    occurred_at=datetime(2026, 3, 1, 11, 59, 59, 999_999, UTC),
    event_id=UUID(int=1),
    command_id=UUID(int=2),
    provenance=SOURCE,
    writer_version="0.1.0",
    append_last=18_344,
    chain_hash=b"",
)
OTHER_VALUES: dict[str, Any] = {
    "position": 18_343,
    "stream": "session:agent:main:mainx",
    "version": 4,
    "type": "ChildReleased",
    "type_version": 2,
    "recorded_at": ENVELOPE.recorded_at + timedelta(microseconds=1),
    "occurred_at": ENVELOPE.occurred_at + timedelta(microseconds=1),
    "event_id": UUID(int=9),
    "command_id": UUID(int=9),
    "writer_version": "0.1.1",
    "append_last": 18_345,
}
OTHER_SOURCES: dict[str, Any] = {
    "actor": ACTOR._replace(kind="child"),
    "causation": None,
    "correlation": "",
    "run_id": UUID(int=9),
    "traceparent": None,
    "config_revision": 8,
}


def _by_hand() -> bytes:
    """Return the encoding as it is documented, written a second time."""

    def sized(data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + data

    def number(value: int) -> bytes:
        return sized(struct.pack(">q", value))

    def text(value: str | None) -> bytes:
        assert value is not None
        return sized(value.encode())

    def micros(at: datetime) -> bytes:
        return number((at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))

    parts = [
        b"\x00\x01",
        sized(PREVIOUS),
        number(18_342),
        text("session:agent:main:main"),
        number(3),
        text("ChildAdmitted"),
        number(1),
        micros(ENVELOPE.recorded_at),
        micros(ENVELOPE.occurred_at),
        *(sized(UUID(int=number).bytes) for number in (1, 2)),
        *(text(item) for item in ("token", "orchestrator", "agent:main:main")),
        sized(UUID(int=3).bytes),
        text("agent:main:main"),
        sized(UUID(int=4).bytes),
        text(SOURCE.traceparent),
        number(7),
        text("0.1.0"),
        number(18_344),
        sized(STATE),
    ]
    return hashlib.sha256(b"".join(parts)).digest()


def test_the_hash_of_a_fixed_event_never_changes() -> None:
    assert chain_hash(PREVIOUS, ENVELOPE, STATE).hex() == GOLDEN
    assert _by_hand().hex() == GOLDEN


CHANGED = {
    **{name: ENVELOPE._replace(**{name: value}) for name, value in OTHER_VALUES.items()},
    **{
        f"source {name}": ENVELOPE._replace(provenance=SOURCE._replace(**{name: value}))
        for name, value in OTHER_SOURCES.items()
    },
    **{
        f"actor {name}": ENVELOPE._replace(
            provenance=SOURCE._replace(actor=ACTOR._replace(**{name: "other"}))
        )
        for name in Actor._fields
    },
}


@pytest.mark.parametrize("name", CHANGED)
def test_every_field_is_in_the_hash(name: str) -> None:
    assert chain_hash(PREVIOUS, CHANGED[name], STATE).hex() != GOLDEN


def test_no_field_of_an_envelope_was_forgotten_here() -> None:
    beside = {"provenance", "chain_hash"}
    assert {*OTHER_VALUES} == {*Envelope._fields} - beside
    assert {*OTHER_SOURCES} == {*Provenance._fields}


def test_state_and_hash_before_are_in_the_hash() -> None:
    assert chain_hash(PREVIOUS, ENVELOPE, STATE + b" ").hex() != GOLDEN
    assert chain_hash(PREVIOUS[:-1], ENVELOPE, STATE).hex() != GOLDEN
    assert chain_hash(b"", ENVELOPE, STATE).hex() != GOLDEN
    assert chain_hash(PREVIOUS, ENVELOPE._replace(chain_hash=b"x"), STATE).hex() == GOLDEN


def test_an_absent_value_is_not_an_empty_one() -> None:
    empty = ENVELOPE._replace(provenance=SOURCE._replace(correlation=""))
    absent = ENVELOPE._replace(provenance=SOURCE._replace(correlation=None))
    assert chain_hash(PREVIOUS, empty, STATE) != chain_hash(PREVIOUS, absent, STATE)


def test_an_instant_is_the_same_in_every_time_zone() -> None:
    elsewhere = ENVELOPE.recorded_at.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert chain_hash(PREVIOUS, ENVELOPE._replace(recorded_at=elsewhere), STATE).hex() == GOLDEN
    assert microseconds(datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)) == 253402300799999999
    assert microseconds(datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)) == -1
