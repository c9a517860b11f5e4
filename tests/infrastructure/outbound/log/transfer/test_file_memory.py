"""Memory of a file verification, for any length of the file."""

import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from typing import cast
from uuid import UUID

import pytest

from domain.run.facts import TranscriptSeal
from domain.session.state import Session
from domain.states import MissingStates, StreamEvent, states
from domain.values.record import ContentRef, run_stream, session_stream
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.transfer import file_memory
from infrastructure.outbound.log.transfer.file_memory import FileMemory
from infrastructure.outbound.log.verify.contents import ContentMention
from infrastructure.outbound.log.verify.transcripts import RecordedTranscript
from tests.support.builders.storytelling import ROOT, observed, requested, run_id, stamp

BYTES_KEPT_MAX = 512 * 1024
FIRST, SECOND = states(
    [
        StreamEvent(run_stream(run_id(1)), requested(run_id=run_id(1)), stamp(1)),
        StreamEvent(session_stream(ROOT), observed(), stamp(1)),
    ]
)
RUN, SESSION = FIRST.run, cast("Session", SECOND.after)


@pytest.fixture
def memory() -> Iterator[FileMemory]:
    with closing(FileMemory()) as file_memory:
        yield file_memory


def mention(number: int, text: int) -> ContentMention:
    """Return an event's reference to a text."""
    ref = ContentRef(id=run_id(text), bytes=2**63 + text, hmac="ab" * 32)
    owner = run_id(7) if number % 2 else None
    return ContentMention(number, run_stream(run_id(1)), "task", owner, ref)


def sealed(number: int, count: int) -> RecordedTranscript:
    """Return the recorded transcript of a run with this number of entries."""
    seal = TranscriptSeal(count=count, bytes=9, hmac="cd" * 32)
    return RecordedTranscript(number, run_id(number), None, seal)


def test_states_and_keys_are_found_again(memory: FileMemory) -> None:
    new = RUN.changed({"version": 2})
    memory.put([RUN, SESSION])
    memory.put([new])
    missing = MissingStates([run_id(1), run_id(2)], [ROOT, "agent:other:main"])
    assert list(memory.load(missing, 0)) == [new, SESSION]
    memory.add_keys([(run_id(1), b"one"), (run_id(2), b"two")])
    assert [memory.key_of(item) for item in (run_id(2), run_id(3), None)] == [b"two", None, None]


def test_references_come_in_order_of_texts_and_runs(memory: FileMemory) -> None:
    memory.add_mentions([mention(1, 3), mention(2, 1)])
    memory.add_mentions([mention(3, 3), mention(4, 2)])
    assert list(memory.mentions()) == [mention(2, 1), mention(4, 2), mention(1, 3), mention(3, 3)]
    memory.add_transcripts([sealed(9, 1), sealed(2, 1)])
    memory.add_transcripts([sealed(9, 2)])
    assert list(memory.transcripts()) == [sealed(2, 1), sealed(9, 2)]


def test_memory_is_bounded(memory: FileMemory) -> None:
    tracemalloc.start()
    try:
        for page in range(4):
            numbers = range(page * 1_000, page * 1_000 + 1_000)
            memory.add_mentions(mention(number, number) for number in numbers)
            memory.add_transcripts(sealed(number, 1) for number in numbers)
            memory.add_keys((UUID(int=number), bytes(32)) for number in numbers)
            memory.put([RUN.changed({"run_id": UUID(int=number)}) for number in numbers])
        assert tracemalloc.get_traced_memory()[0] < BYTES_KEPT_MAX
    finally:
        tracemalloc.stop()


def test_no_room_for_temporary_file_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_memory, "_BEGIN", f"PRAGMA max_page_count = 8;{file_memory._BEGIN}")
    with closing(FileMemory()) as memory, pytest.raises(UserError, match="TMPDIR"):
        memory.add_mentions(mention(number, number) for number in range(1_000))
