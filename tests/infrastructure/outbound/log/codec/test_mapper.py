"""Between events and stored bytes: a closed list of names, and no other way in."""

from pathlib import Path

import pytest
from eventsourcing.compressor import ZlibCompressor
from eventsourcing.persistence import Cipher, StoredEvent

from domain.event_types import EVENT_TYPES
from domain.values.refusals import CorruptHistory
from infrastructure.outbound.log.codec.mapper import EventMapper, payload_object
from tests.support.builders.run_histories import announced, archived

HISTORIES = Path(__file__).parents[4] / "histories"


class Reversed(Cipher):
    """Stands for a cipher: what is stored is not what was given."""

    def __init__(self) -> None:
        """Needs no key."""

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
    """An event as a row of the log holds it."""
    return StoredEvent("run:1", 3, topic, state)


@pytest.mark.parametrize("how", MAPPERS)
@pytest.mark.parametrize("name", EVENT_TYPES, ids=lambda name: name[0])
def test_every_event_is_read_as_it_was_stored(name: tuple[str, int], how: str) -> None:
    text = (HISTORIES / f"{name[0]}.{name[1]}.json").read_bytes()
    event = MAPPERS["plain"].load(stored(f"{name[0]}:{name[1]}", text))
    kept = MAPPERS[how].store("run:1", 3, event)
    assert (kept.originator_id, kept.originator_version) == ("run:1", 3)
    assert kept.topic == f"{name[0]}:{name[1]}"
    assert MAPPERS[how].load(kept) == event
    readable = kept.state.startswith(b"{")
    assert readable == (how == "plain")


def test_names_in_stored_json_are_in_camel_case_and_plain_utf8() -> None:
    kept = MAPPERS["plain"].store("run:1", 3, archived(transcript_path="/ä"))
    assert payload_object(kept.state) == {"reason": "due", "transcriptPath": "/ä"}
    assert "ä".encode() in kept.state


def test_what_is_compressed_takes_less_room() -> None:
    event = announced(status="x" * 2_000)
    sizes = {how: len(one.store("run:1", 1, event).state) for how, one in MAPPERS.items()}
    assert sizes["compressed"] < sizes["plain"] / 5


def test_the_payload_of_stored_bytes_is_their_json() -> None:
    for mapper in MAPPERS.values():
        kept = mapper.store("run:1", 3, archived())
        assert payload_object(mapper.payload(kept.state))["reason"] == "due"


@pytest.mark.parametrize(
    "topic",
    [
        "RunExploded:1",
        "RunEnded:3",
        "RunEnded:0",
        "os:system:1",
        "subprocess:Popen",
        "RunEnded:",
        "",
    ],
)
def test_a_type_that_is_unknown_is_refused_and_nothing_is_imported_for_it(topic: str) -> None:
    with pytest.raises(CorruptHistory, match="is unknown here; this log needs a newer spawnlog"):
        MAPPERS["plain"].load(stored(topic, b"{}"))


@pytest.mark.parametrize(
    "state",
    [b"", b"{", b"[]", b"{}", b'{"reason": 1}', b'{"reason": "due", "more": 1}', b"\xff"],
)
def test_bytes_of_another_shape_are_a_corrupt_history(state: bytes) -> None:
    with pytest.raises(CorruptHistory, match="version 3 of run:1 is not a RunArchived:1"):
        MAPPERS["plain"].load(stored("RunArchived:1", state))


@pytest.mark.parametrize("how", ["compressed", "sealed", "compressed and sealed"])
def test_bytes_that_cannot_be_opened_are_a_corrupt_history(how: str) -> None:
    plain = MAPPERS["plain"].store("run:1", 3, archived())
    with pytest.raises(CorruptHistory, match="version 3 of run:1 is not a RunArchived:1"):
        MAPPERS[how].load(plain)
    with pytest.raises(CorruptHistory):
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
def test_an_older_version_is_brought_up_when_it_is_read(topic: str, state: bytes) -> None:
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
def test_what_no_upcast_can_bring_up_is_said(topic: str, state: bytes, message: str) -> None:
    with pytest.raises(CorruptHistory, match=message):
        LATER.load(stored(topic, state))
