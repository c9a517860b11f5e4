"""Free texts and files beside the log: found by their reference, gone after an erasure."""

import asyncio
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from application.log.event_log import ContentKey, Decision, StagedFile, Submission
from application.log.texts import Contents, TextStore, keyed_hash
from application.ports.files import StagedFiles
from domain.values.record import ContentRef
from infrastructure.outbound.log.append.writer import BATCH_TEXT_BYTES_MAX
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily, content_key_of
from tests.support.builders.storytelling import ref, run_id
from tests.support.builders.submissions import at_once, key, observing, seen, submission
from tests.support.memory.served_log import ServedLog
from tests.support.servers.running_log import RunningLog

SESSION = run_id(1001)


@pytest.fixture
def contents(running: ServedLog) -> Contents:
    return running.contents()


async def kept(running: ServedLog, *texts: str) -> list[ContentRef]:
    text_store = TextStore(SESSION, content_key_of(SESSION), uuid7)
    refs = [text_store.store("task", text) for text in texts]
    keys = (ContentKey(SESSION, content_key_of(SESSION)),)
    name = key(str(uuid7()))
    await running.log.submit(
        submission(lambda _: Decision(None, [seen(name)], text_store.contents, keys))
    )
    return refs


@pytest.mark.parametrize(
    "text", ["", "plain", "ä\n\t€ 👩‍👩‍👧", "x" * 1_000_000, "\x01\x1b", "'\"\\;--"]
)
async def test_a_text_is_found_by_its_reference(
    postgres: RunningLog, contents: Contents, text: str
) -> None:
    (found,) = await kept(postgres, text)
    assert await contents.text(found) == text
    assert found.bytes == len(text.encode())
    assert found.hmac == keyed_hash(content_key_of(SESSION), text.encode())
    row = await postgres.ask("SELECT session_id, kind, bytes, body FROM contents")
    assert row == [(SESSION, "task", found.bytes, text)]


async def test_unknown_text_is_absent(running: ServedLog, contents: Contents) -> None:
    first, two = await kept(running, "one", "two")
    found = await contents.texts([first, two, first, ref("never kept")])
    assert found == {first.id: "one", two.id: "two"}
    assert await contents.texts([]) == {}
    assert await contents.text(ref("never kept")) is None


async def test_a_preview_is_the_first_two_hundred_characters(
    running: ServedLog, contents: Contents
) -> None:
    short, long, wide = await kept(running, "short", "x" * 201, "é" * 300)
    assert await contents.previews([short, long, wide]) == {
        short.id: "short",
        long.id: "x" * 200,
        wide.id: "é" * 200,
    }


async def test_first_key_of_a_session_stays(
    running: ServedLog, contents: Contents, family: LoggedFamily
) -> None:
    await family.spawn("scout")
    session = family.session_id("scout")
    assert await contents.key(session) == content_key_of(session)
    assert await contents.key(run_id(77)) is None
    again = (ContentKey(session, b"another"),)
    await running.log.submit(submission(lambda _: Decision(None, [seen(key(1))], keys=again)))
    assert await contents.key(session) == content_key_of(session)
    assert await contents.text(family.run("scout").task) == "look around"


async def test_erasure_removes_one_session_alone(
    postgres: RunningLog, contents: Contents, family: LoggedFamily
) -> None:
    (mine,) = await kept(postgres, "mine")
    await family.spawn("scout")
    session = family.session_id("scout")
    await postgres.erase(session)
    assert await contents.text(family.run("scout").task) is None
    assert await contents.previews([family.run("scout").task]) == {}
    assert await contents.key(session) is None
    assert await contents.text(mine) == "mine"
    assert len(await postgres.events()) == 4


async def test_free_text_is_in_no_event_or_row(postgres: RunningLog, family: LoggedFamily) -> None:
    secret = "tell nobody 4711"
    await family.spawn("scout", task=secret, preamble=secret, origin=secret)
    await family.spawn("refused", task=secret, target_agent_id=None, agent_id_argument=secret)
    assert await postgres.ask(
        "SELECT count(*) FROM contents WHERE body LIKE %s", f"%{secret}%"
    ) == [(6,)]
    for table in ("events", "runs", "sessions"):
        column = "encode(state, 'escape')" if table == "events" else "state::text"
        rows = await postgres.ask(f"SELECT {column} FROM {table}")
        assert rows
        assert not [row for row in rows if "nobody 4711" in row[0]]


HALF = "x" * (BATCH_TEXT_BYTES_MAX // 2 + 1)


def with_text(number: int, text: str) -> Submission[Any]:
    """Return an event of a new session, with a text."""
    session = uuid7()
    text_store = TextStore(session, content_key_of(session), uuid7)
    text_store.store("task", text)
    keys = (ContentKey(session, content_key_of(session)),)
    name = key(f"large-{number}")
    return submission(lambda _: Decision(number, [seen(name)], text_store.contents, keys))


async def test_texts_too_many_for_a_batch_go_into_several(postgres: RunningLog) -> None:
    large = [postgres.log.submit(with_text(number, HALF)) for number in range(5)]
    small = postgres.log.submit(observing(key("small")))
    *appended, last = await asyncio.gather(*large, small)
    assert [event.result for event in appended] == list(range(5))
    assert [event.position for event in (*appended, last)] == list(range(1, 7))
    # Two large texts fill a batch; the small one joins the last large one.
    assert await postgres.commits() == 3
    assert await postgres.ask("SELECT sum(bytes) FROM contents") == [(5 * len(HALF),)]
    alone = await postgres.log.submit(with_text(5, HALF * 3))
    assert alone.position == 7


FILES = (b"first", b"", bytes(range(256)) * 5_000)


@pytest.fixture
def staged(running: ServedLog) -> StagedFiles:
    return running.staged()


def keeping(number: int, *bodies: bytes) -> Submission[Any]:
    files = [StagedFile(run_id(number), ordinal, body) for ordinal, body in enumerate(bodies)]
    change = seen(key(f"keeping-{number}"))
    return submission(lambda _: Decision(None, [change], staged=files))


async def test_files_are_read_until_dropped(running: ServedLog, staged: StagedFiles) -> None:
    await at_once(running.log, keeping(1, *FILES), keeping(2, b"another"))
    assert await staged.read(run_id(1)) == FILES
    await staged.drop(run_id(1))
    await staged.drop(run_id(1))
    assert await staged.read(run_id(1)) == ()
    assert await staged.read(run_id(2)) == (b"another",)


async def test_files_need_events_of_their_append(running: ServedLog, staged: StagedFiles) -> None:
    files = [StagedFile(run_id(1), 0, b"alone")]
    with pytest.raises(ValueError, match="with events"):
        await running.log.submit(submission(lambda _: Decision(None, staged=files)))
    assert await staged.read(run_id(1)) == ()


async def test_files_of_a_batch_are_limited(postgres: RunningLog) -> None:
    large = bytes(BATCH_TEXT_BYTES_MAX // 2 + 1)
    await at_once(postgres.log, *(keeping(number, large) for number in range(1, 6)))
    # Two fill a batch.
    assert await postgres.commits() == 3
    kept = await postgres.ask("SELECT sum(length(body)) FROM staged_files")
    assert kept == [(5 * len(large),)]


async def test_files_are_swept_once_prepared(
    running: ServedLog, staged: StagedFiles, family: LoggedFamily
) -> None:
    names = ("requested", "furnished", "refused", "queued", "over")
    for name in names:
        await family.spawn(name)
    for name in names:
        await running.log.submit(keeping(family.id(name).int % 2**32, b"one", b"two"))
    assert {len(await staged.read(family.id(name))) for name in names} == {2}
    assert await staged.sweep(9) == 0
    await family.tell("refused", ask.refuse(family.run("refused").epoch))
    for name in ("queued", "over"):
        await family.create(name)
    await family.tell("over", ask.stop())
    assert await staged.sweep(2) == 2
    assert await staged.sweep(9) == 1
    assert await staged.sweep(9) == 0
    left = {name for name in names if await staged.read(family.id(name))}
    assert left == {"requested", "furnished"}


async def test_files_of_unrecorded_run_are_kept(running: ServedLog, staged: StagedFiles) -> None:
    await running.log.submit(keeping(77, b"whose"))
    assert await staged.sweep(9) == 0
    assert await staged.read(run_id(77)) == (b"whose",)
