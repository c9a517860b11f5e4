"""The rows of the projections are made anew from the events, and come out as they were."""

from typing import Any

import pytest

from application.projections import fold
from application.projections.fold import FOREVER
from domain.event_types import EVENT_TYPES, LOG_FORMAT
from domain.values.refusals import CorruptHistory
from infrastructure.outbound.log.rebuild import build, fold_part
from infrastructure.outbound.log.rebuild.rebuild import rebuild
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.format import UnknownFormat
from infrastructure.outbound.log.schema.projection_versions import stale_projections
from tests.support.builders.submissions import observe
from tests.support.servers.running_log import RunningLog

COMPARED = {
    "runs": "SELECT t::text FROM runs t ORDER BY run_id, from_position",
    "sessions": "SELECT t::text FROM sessions t ORDER BY session_key, from_position",
}
FIRST_RUN = "from_position = (SELECT min(from_position) FROM runs)"
DAMAGES = {
    "a changed column": (f"UPDATE runs SET label = 'x' WHERE {FIRST_RUN}", 2),
    "a changed state": ("UPDATE sessions SET state = replace(state::text, 'agent', 'tnega')", None),
    "a missing state": (f"UPDATE runs SET state = NULL WHERE to_position = {FOREVER}", None),
    "a state that has passed": (f"UPDATE runs SET state = '{{}}' WHERE {FIRST_RUN}", 2),
    "a moved end": (f"UPDATE runs SET to_position = to_position + 1 WHERE {FIRST_RUN}", 2),
    "a lost row": (f"DELETE FROM runs WHERE {FIRST_RUN}", 1),
    "a row too many": (
        "INSERT INTO sessions SELECT 'invented', version, created_position, created_at,"
        " from_position, to_position, session_id, root, run_id, state FROM sessions"
        " WHERE from_position = (SELECT min(from_position) FROM sessions)",
        1,
    ),
    "no rows at all": ("TRUNCATE runs", None),
}


async def _rows(running: RunningLog) -> dict[str, list[Any]]:
    return {table: await running.ask(query) for table, query in COMPARED.items()}


@pytest.mark.server
@pytest.mark.parametrize("processes_from", [0, 10**9], ids=["in processes", "in this one"])
@pytest.mark.told("everything")
async def test_a_log_in_which_everything_has_happened_is_folded_to_the_same_rows(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch, processes_from: int
) -> None:
    monkeypatch.setattr(build, "PROCESSES_FROM_EVENTS", processes_from)
    assert set(await running.types()) == {name for name, _ in EVENT_TYPES}
    before = await _rows(running)
    rebuilt = await rebuild(running.url)
    assert await _rows(running) == before
    assert rebuilt.differing == 0
    assert rebuilt.events == await running.log.head()
    open_rows = "SELECT (SELECT count(DISTINCT run_id) FROM runs), count(DISTINCT session_key)"
    assert await running.ask(f"{open_rows} FROM sessions") == [(rebuilt.runs, rebuilt.sessions)]
    assert 0 < rebuilt.seconds < 60


@pytest.mark.server
@pytest.mark.parametrize(("page", "states"), [(1, 0), (10, 3)])
@pytest.mark.told("everything")
async def test_neither_the_size_of_pages_nor_that_of_the_memory_matters(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch, page: int, states: int
) -> None:
    monkeypatch.setattr(fold_part, "PAGE_EVENTS", page)
    monkeypatch.setattr(fold_part, "STATES_MAX", states)
    before = await _rows(running)
    assert (await rebuild(running.url)).differing == 0
    assert await _rows(running) == before


@pytest.mark.server
@pytest.mark.told("everything")
async def test_a_row_changed_by_hand_is_told_and_mended(
    running: RunningLog,
) -> None:
    before = await _rows(running)
    for damage, (statement, differing) in DAMAGES.items():
        await running.ask(statement)
        assert await _rows(running) != before, damage
        rebuilt = await rebuild(running.url)
        told = rebuilt.differing
        assert told is not None, damage
        assert told == differing or (differing is None and told > 2), f"{damage}: {told}"
        assert await _rows(running) == before, damage
    assert (await rebuild(running.url)).differing == 0


@pytest.mark.server
@pytest.mark.told("everything")
async def test_past_states_of_an_earlier_release_are_no_difference(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = await _rows(running)
    with monkeypatch.context() as patch:
        patch.setattr(fold, "STATE_VERSIONS_MAX", 1)
        await rebuild(running.url)
    assert await _rows(running) != rows
    assert (await rebuild(running.url)).differing == 0
    assert await _rows(running) == rows


async def test_an_empty_log_has_no_rows(running: RunningLog) -> None:
    rebuilt = await rebuild(running.url)
    assert (rebuilt.events, rebuilt.runs, rebuilt.sessions, rebuilt.differing) == (0, 0, 0, 0)


@pytest.mark.told("everything")
async def test_a_rebuild_that_fails_leaves_everything_as_it_was(
    running: RunningLog,
) -> None:
    before = await _rows(running)
    await running.ask("UPDATE events SET state = '{}'::bytea WHERE position = 40")
    with pytest.raises(CorruptHistory):
        await rebuild(running.url)
    assert await _rows(running) == before
    await observe(running.log, ["next"])


async def test_a_log_of_a_newer_format_is_not_folded(
    running: RunningLog,
) -> None:
    await observe(running.log, range(3))
    await running.ask("UPDATE log_head SET format = %s", LOG_FORMAT + 1)
    await running.ask("DELETE FROM sessions")
    with pytest.raises(UnknownFormat, match="install a newer spawnlog"):
        await rebuild(running.url)
    assert await running.ask("SELECT count(*) FROM sessions") == [(0,)]


async def test_a_rebuild_notes_of_which_version_the_rows_are(
    connection: LogConnection, database_url: str
) -> None:
    assert await stale_projections(connection) == ()
    await connection.execute("UPDATE projections SET version = 99 WHERE name = 'runs'")
    assert await stale_projections(connection) == ("runs",)
    await connection.execute("DELETE FROM projections WHERE name = 'sessions'")
    assert await stale_projections(connection) == ("runs", "sessions")
    await rebuild(database_url)
    assert await stale_projections(connection) == ()


@pytest.mark.told("everything")
async def test_files_that_wait_for_being_written_are_left_alone(running: RunningLog) -> None:
    await running.ask("INSERT INTO staged_files VALUES (gen_random_uuid(), 0, 'waiting')")
    before = await running.ask("SELECT * FROM staged_files")
    assert (await rebuild(running.url)).differing == 0
    assert await running.ask("SELECT * FROM staged_files") == before
