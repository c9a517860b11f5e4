"""The rows of the projections are made anew from the events, and come out as they were."""

import asyncio
from typing import Any

import pytest

from domain.event_types import EVENT_TYPES, LOG_FORMAT
from domain.refusals import CorruptHistory
from infrastructure.outbound.log import rebuilding
from infrastructure.outbound.log.connections import Connection
from infrastructure.outbound.log.format import UnknownFormat
from infrastructure.outbound.log.rebuilding import rebuild, stale_projections
from tests.support.held_commits import until
from tests.support.running_log import RunningLog
from tests.support.submissions import key, observe, observing
from tests.support.whole_story import tell_everything

COMPARED = {
    "runs": "SELECT t::text FROM runs t ORDER BY run_id, from_position",
    "sessions": "SELECT t::text FROM sessions t ORDER BY session_key, from_position",
}
DAMAGES = {
    "a changed column": ("UPDATE runs SET label = 'x' WHERE from_position = 6", 2),
    "a changed state": ("UPDATE sessions SET state = state || '{\"admitted\": 99}'", None),
    "a moved end": ("UPDATE runs SET to_position = to_position + 1 WHERE from_position = 6", 2),
    "a lost row": ("DELETE FROM runs WHERE from_position = 6", 1),
    "a row too many": (
        "INSERT INTO sessions SELECT 'invented', version, created_position, created_at,"
        " from_position, to_position, session_id, root, run_id, state FROM sessions"
        " WHERE from_position = 2",
        1,
    ),
    "no rows at all": ("TRUNCATE runs", None),
}


async def _rows(running: RunningLog) -> dict[str, list[Any]]:
    return {table: await running.ask(query) for table, query in COMPARED.items()}


async def test_a_log_in_which_everything_has_happened_is_folded_to_the_same_rows(
    running: RunningLog, connection: Connection
) -> None:
    await tell_everything(running)
    assert set(await running.types()) == {name for name, _ in EVENT_TYPES}
    before = await _rows(running)
    rebuilt = await rebuild(connection)
    assert await _rows(running) == before
    assert rebuilt.differing == 0
    assert rebuilt.events == await running.log.head()
    open_rows = "SELECT (SELECT count(DISTINCT run_id) FROM runs), count(DISTINCT session_key)"
    assert await running.ask(f"{open_rows} FROM sessions") == [(rebuilt.runs, rebuilt.sessions)]
    assert 0 < rebuilt.seconds < 60


@pytest.mark.slow
@pytest.mark.parametrize("page", [1, 10])
async def test_the_size_of_the_pages_does_not_matter(
    running: RunningLog, connection: Connection, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(rebuilding, "PAGE_EVENTS", page)
    await tell_everything(running)
    before = await _rows(running)
    assert (await rebuild(connection)).differing == 0
    assert await _rows(running) == before


@pytest.mark.slow
async def test_a_row_changed_by_hand_is_told_and_mended(
    running: RunningLog, connection: Connection
) -> None:
    await tell_everything(running)
    before = await _rows(running)
    for damage, (statement, differing) in DAMAGES.items():
        await running.ask(statement)
        assert await _rows(running) != before, damage
        rebuilt = await rebuild(connection)
        told = rebuilt.differing
        assert told == differing or (differing is None and told > 2), f"{damage}: {told}"
        assert await _rows(running) == before, damage
    assert (await rebuild(connection)).differing == 0


async def test_an_empty_log_has_no_rows(connection: Connection) -> None:
    rebuilt = await rebuild(connection)
    assert (rebuilt.events, rebuilt.runs, rebuilt.sessions, rebuilt.differing) == (0, 0, 0, 0)


async def test_writers_wait_for_a_rebuild_and_readers_do_not(
    running: RunningLog, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await observe(running.log, range(5))
    fold_all, halfway, go_on = rebuilding._fold_all, asyncio.Event(), asyncio.Event()

    async def paused(told: Connection) -> int:
        events = await fold_all(told)
        halfway.set()
        await go_on.wait()
        return events

    monkeypatch.setattr(rebuilding, "_fold_all", paused)
    rebuilt = asyncio.create_task(rebuild(connection))
    await halfway.wait()
    asked = asyncio.create_task(running.log.submit(observing(key("late"))))

    async def the_writer_waits() -> bool:
        return len(await running.writers()) == 2

    await until(the_writer_waits, "the writer waits")
    assert await running.ask("SELECT count(*) FROM sessions") == [(5,)]
    assert not asked.done()
    go_on.set()
    assert (await rebuilt).events == 5
    assert (await asked).position == 6
    assert await running.ask("SELECT count(*) FROM sessions") == [(6,)]
    assert (await rebuild(connection)).differing == 0


async def test_a_rebuild_that_fails_leaves_everything_as_it_was(
    running: RunningLog, connection: Connection
) -> None:
    await tell_everything(running)
    before = await _rows(running)
    await running.ask("UPDATE events SET state = '{}'::bytea WHERE position = 40")
    with pytest.raises(CorruptHistory):
        await rebuild(connection)
    assert await _rows(running) == before
    await observe(running.log, ["next"])
    await connection.execute("SELECT 1")


async def test_a_log_of_a_newer_format_is_not_folded(
    running: RunningLog, connection: Connection
) -> None:
    await observe(running.log, range(3))
    await running.ask("UPDATE log_head SET format = %s", LOG_FORMAT + 1)
    await running.ask("DELETE FROM sessions")
    with pytest.raises(UnknownFormat, match="install a newer spawnlog"):
        await rebuild(connection)
    assert await running.ask("SELECT count(*) FROM sessions") == [(0,)]


async def test_a_rebuild_notes_of_which_version_the_rows_are(
    connection: Connection,
) -> None:
    assert await stale_projections(connection) == ()
    await connection.execute("UPDATE projections SET version = 99 WHERE name = 'runs'")
    assert await stale_projections(connection) == ("runs",)
    await connection.execute("DELETE FROM projections WHERE name = 'sessions'")
    assert await stale_projections(connection) == ("runs", "sessions")
    await rebuild(connection)
    assert await stale_projections(connection) == ()
