"""Rows that are made anew from the events, and their tables, are what they were before."""

import pytest
from psycopg import errors

from application.projections import fold
from application.projections.fold import FOREVER
from domain.event_types import EVENT_TYPES, LOG_FORMAT
from domain.values.refusals import CorruptHistory
from infrastructure.outbound.log.rebuild import build, fold_part
from infrastructure.outbound.log.rebuild.rebuild import rebuild
from infrastructure.outbound.log.rebuild.swap import SwapFailed
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.format import UnknownFormat
from infrastructure.outbound.log.schema.projection_versions import stale_projections
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.submissions import observe
from tests.support.servers.rebuilds import catalog, rows
from tests.support.servers.running_log import RunningLog

STATE_OF = f"SELECT version, stage FROM runs WHERE run_id = %s AND to_position = {FOREVER}"
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


@pytest.mark.server
@pytest.mark.parametrize("processes_from", [0, 10**9], ids=["in processes", "in this one"])
@pytest.mark.told("everything")
async def test_rebuild_folds_to_the_same_rows(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch, processes_from: int
) -> None:
    monkeypatch.setattr(build, "PROCESSES_FROM_EVENTS", processes_from)
    assert set(await running.types()) == {name for name, _ in EVENT_TYPES}
    before = await rows(running)
    rebuilt = await rebuild(running.url)
    assert await rows(running) == before
    assert rebuilt.differing == 0
    assert rebuilt.events == await running.log.head()
    open_rows = "SELECT (SELECT count(DISTINCT run_id) FROM runs), count(DISTINCT session_key)"
    assert await running.ask(f"{open_rows} FROM sessions") == [(rebuilt.runs, rebuilt.sessions)]
    assert 0 < rebuilt.seconds < 60


@pytest.mark.server
@pytest.mark.parametrize(("page", "states"), [(1, 0), (10, 3)])
@pytest.mark.told("everything")
async def test_size_of_pages_and_memory_is_no_matter(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch, page: int, states: int
) -> None:
    monkeypatch.setattr(fold_part, "PAGE_EVENTS", page)
    monkeypatch.setattr(fold_part, "STATES_MAX", states)
    before = await rows(running)
    assert (await rebuild(running.url)).differing == 0
    assert await rows(running) == before


@pytest.mark.server
@pytest.mark.told("everything")
async def test_row_changed_by_hand_is_counted_and_mended(running: RunningLog) -> None:
    before = await rows(running)
    for damage, (statement, differing) in DAMAGES.items():
        await running.ask(statement)
        assert await rows(running) != before, damage
        rebuilt = await rebuild(running.url)
        told = rebuilt.differing
        assert told is not None, damage
        assert told == differing or (differing is None and told > 2), f"{damage}: {told}"
        assert await rows(running) == before, damage
    assert (await rebuild(running.url)).differing == 0


@pytest.mark.server
@pytest.mark.told("everything")
async def test_past_states_of_earlier_release_are_equal(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await rows(running)
    with monkeypatch.context() as patch:
        patch.setattr(fold, "STATE_VERSIONS_MAX", 1)
        await rebuild(running.url)
    assert await rows(running) != before
    assert (await rebuild(running.url)).differing == 0
    assert await rows(running) == before


async def test_empty_log_has_no_rows(running: RunningLog) -> None:
    rebuilt = await rebuild(running.url)
    assert (rebuilt.events, rebuilt.runs, rebuilt.sessions, rebuilt.differing) == (0, 0, 0, 0)


@pytest.mark.told("everything")
async def test_failed_rebuild_changes_no_row(running: RunningLog) -> None:
    before = await rows(running)
    await running.ask("UPDATE events SET state = '{}'::bytea WHERE position = 40")
    with pytest.raises(CorruptHistory):
        await rebuild(running.url)
    assert await rows(running) == before
    await observe(running.log, ["next"])


async def test_log_of_newer_format_is_not_folded(running: RunningLog) -> None:
    await observe(running.log, range(3))
    await running.ask("UPDATE log_head SET format = %s", LOG_FORMAT + 1)
    await running.ask("DELETE FROM sessions")
    with pytest.raises(UnknownFormat, match="install a newer spawnlog"):
        await rebuild(running.url)
    assert await running.ask("SELECT count(*) FROM sessions") == [(0,)]


async def test_rebuild_notes_the_version_of_rows(
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
async def test_staged_files_are_left_alone(running: RunningLog) -> None:
    await running.ask("INSERT INTO staged_files VALUES (gen_random_uuid(), 0, 'waiting')")
    before = await running.ask("SELECT * FROM staged_files")
    assert (await rebuild(running.url)).differing == 0
    assert await running.ask("SELECT * FROM staged_files") == before


async def test_tables_keep_indexes_rights_and_options(running: RunningLog) -> None:
    await running.ask("ALTER TABLE runs SET (fillfactor = 90)")
    await running.ask("GRANT SELECT ON runs TO PUBLIC")
    await running.ask("CREATE INDEX \"An operator's\" ON sessions (root) WHERE root <> ' USING '")
    await observe(running.log, range(3))
    before = await catalog(running)
    for _ in range(2):
        await rebuild(running.url)
        assert await catalog(running) == before


async def test_view_of_an_operator_is_not_dropped(running: RunningLog) -> None:
    await observe(running.log, range(3))
    await running.ask("CREATE VIEW mine AS SELECT stage FROM runs")
    with pytest.raises(SwapFailed, match=r"view mine.*drop it"):
        await rebuild(running.url)
    await observe(running.log, ["next"])
    assert await running.ask("SELECT count(*) FROM sessions") == [(4,)]
    await running.ask("DROP VIEW mine")
    assert (await rebuild(running.url)).differing == 0


async def test_prepared_statement_finds_rebuilt_rows(
    running: RunningLog, connection: LogConnection
) -> None:
    family = LoggedFamily(running.log)
    await family.begin("scout")
    run = family.run("scout")
    found = []
    for _ in range(3):
        for _ in range(6):
            asked = await connection.execute(STATE_OF, [run.run_id], prepare=True)
            found.append(await asked.fetchall())
        await rebuild(running.url)
    assert found == [[(run.version, "started")]] * 18
    with pytest.raises(errors.UndefinedTable):
        await connection.execute("TABLE rebuilding")
