"""Mapping of events to stored bytes: a closed list of names, JSON numbers, and no other way in."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.compressor import ZlibCompressor
from eventsourcing.persistence import Cipher, StoredEvent

from domain.event_types import EVENT_TYPES
from domain.values.record import Event, FactType
from domain.values.refusals import CorruptHistoryError
from infrastructure.outbound.log.codec.mapper import EventMapper, payload_object
from infrastructure.outbound.log.codec.numbers import Fields, number_fields
from tests.support.builders.run_histories import archived

HISTORIES = Path(__file__).parents[4] / "histories"


class Reversed(Cipher):
    """Stand-in for a cipher: stored bytes differ from the given ones."""

    def __init__(self) -> None:
        """Accept no key."""

    def encrypt(self, plaintext: bytes) -> bytes:
        return b"sealed" + plaintext[::-1]

    def decrypt(self, ciphertext: bytes) -> bytes:
        if not ciphertext.startswith(b"sealed"):
            raise OSError("not sealed here")
        return ciphertext.removeprefix(b"sealed")[::-1]


MAPPERS = {
    "plain": EventMapper(),
    "compressed": EventMapper(ZlibCompressor()),
    "sealed": EventMapper(cipher=Reversed()),
    "compressed and sealed": EventMapper(ZlibCompressor(), Reversed()),
}


def stored(topic: str, state: bytes) -> StoredEvent:
    """Return an event as a row of the log holds it."""
    return StoredEvent("run:1", 3, topic, state)


@pytest.mark.parametrize("how", MAPPERS)
@pytest.mark.parametrize("name", EVENT_TYPES, ids=lambda name: name[0])
def test_event_is_read_as_it_was_stored(name: tuple[str, int], how: str) -> None:
    text = (HISTORIES / f"{name[0]}.{name[1]}.json").read_bytes()
    event = MAPPERS["plain"].load(stored(f"{name[0]}:{name[1]}", text))
    kept = MAPPERS[how].store("run:1", 3, event)
    assert (kept.originator_id, kept.originator_version) == ("run:1", 3)
    assert kept.topic == f"{name[0]}:{name[1]}"
    assert MAPPERS[how].load(kept) == event
    readable = kept.state.startswith(b"{")
    assert readable == (how == "plain")


def test_the_payload_of_stored_bytes_is_their_json() -> None:
    for mapper in MAPPERS.values():
        kept = mapper.store("run:1", 3, archived())
        assert payload_object(mapper.payload(kept.state))["reason"] == "due"


@pytest.mark.parametrize(
    "topic",
    ["RunExploded:1", "RunEnded:3", "RunEnded:0", "os:system:1", "RunEnded:", ""],
)
def test_unknown_type_is_refused(topic: str) -> None:
    with pytest.raises(
        CorruptHistoryError, match="is unknown here; this log needs a newer spawnlog"
    ):
        MAPPERS["plain"].load(stored(topic, b"{}"))


@pytest.mark.parametrize(
    "state",
    [b"", b"[]", b"{}", b'{"reason": 1}', b'{"reason": "due", "more": 1}', b"\xff"],
)
def test_bytes_of_another_shape_are_corrupt(state: bytes) -> None:
    with pytest.raises(CorruptHistoryError, match="version 3 of run:1 is not a RunArchived:1"):
        MAPPERS["plain"].load(stored("RunArchived:1", state))


@pytest.mark.parametrize("how", ["compressed", "sealed", "compressed and sealed"])
def test_sealed_bytes_are_corrupt(how: str) -> None:
    plain = MAPPERS["plain"].store("run:1", 3, archived())
    with pytest.raises(CorruptHistoryError, match="version 3 of run:1 is not a RunArchived:1"):
        MAPPERS[how].load(plain)
    with pytest.raises(CorruptHistoryError):
        MAPPERS["plain"].load(MAPPERS[how].store("run:1", 3, archived()))


def _renamed(event: dict[str, object]) -> dict[str, object]:
    return {"reason": event["why"], "transcriptPath": event["path"]}


def _with_a_path(event: dict[str, object]) -> dict[str, object]:
    return {**event, "path": None}


LATER = EventMapper(
    event_types={("RunArchived", 3): EVENT_TYPES["RunArchived", 1]},
    upcasts={("RunArchived", 1): _with_a_path, ("RunArchived", 2): _renamed},
)


@pytest.mark.parametrize(
    ("topic", "state"),
    [
        ("RunArchived:1", b'{"why":"due"}'),
        ("RunArchived:2", b'{"why":"due","path":null}'),
        ("RunArchived:3", b'{"reason":"due","transcriptPath":null}'),
    ],
)
def test_older_version_is_brought_up(topic: str, state: bytes) -> None:
    assert LATER.load(stored(topic, state)) == archived(transcript_path=None)


@pytest.mark.parametrize(
    ("topic", "state", "message"),
    [
        ("RunArchived:4", b"{}", "needs a newer spawnlog"),
        ("RunArchived:0", b"{}", "needs a newer spawnlog"),
        ("RunArchived:2", b'{"why":"due"}', "is not a RunArchived:2"),
        ("RunArchived:1", b'{"why":7}', "is not a RunArchived:1"),
    ],
)
def test_version_without_upcast_is_told(topic: str, state: bytes, message: str) -> None:
    with pytest.raises(CorruptHistoryError, match=message):
        LATER.load(stored(topic, state))


def paths(fields: Fields) -> Iterator[tuple[str, ...]]:
    for name, inner in fields:
        yield from ((name, *rest) for rest in paths(inner)) if inner else [(name,)]


WITH_NUMBERS = [
    pytest.param(name, event_type, path, id=f"{name}-{'.'.join(path)}")
    for (name, _), event_type in EVENT_TYPES.items()
    for path in paths(number_fields(event_type))
]


def with_number(value: Any, path: tuple[str, ...], number: float) -> Any:
    """Return the same value with this number at a path, as far as there are facts on it."""
    if not path:
        return number
    if isinstance(value, tuple):
        return tuple(with_number(item, path, number) for item in value)
    inner = getattr(value, path[0])
    is_there = inner is not None or len(path) == 1
    return value.changed({path[0]: with_number(inner, path[1:], number)}) if is_there else value


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("name", "event_type", "path"), WITH_NUMBERS)
def test_number_that_json_lacks_is_refused(
    name: str, event_type: type[Event], path: tuple[str, ...], number: float
) -> None:
    event = event_type.from_json((HISTORIES / f"{name}.1.json").read_bytes())
    mapper, wrong = EventMapper(), with_number(event, path, number)
    assert wrong != event
    with pytest.raises(ValueError, match=f"{name} cannot be recorded: .* JSON cannot represent"):
        mapper.state(wrong)
    assert mapper.state(with_number(event, path, 0.5))


def test_events_with_numbers_are_found() -> None:
    assert {item.values[0] for item in WITH_NUMBERS} >= {
        "SpawnRequested",
        "SessionCreated",
        "ScriptsResolved",
        "StepBegun",
        "RunEnded",
    }


@pytest.mark.parametrize("kind", [dict[str, float], list[float], tuple[float, int], Any])
def test_number_where_nothing_looks_is_refused(kind: Any) -> None:
    fields = {"__annotations__": {"value": kind}, "__module__": __name__}
    with pytest.raises(TypeError, match="use a tuple"):
        number_fields(FactType("Unseen", (Event,), fields))
