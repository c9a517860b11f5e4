"""Rows and tables that are rebuilt from the events equal the previous ones."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

import pytest

from application.projections import fold
from application.projections.fold import FOREVER, Fold
from domain.event_types import EVENT_TYPES, LOG_FORMAT
from domain.states import MissingStates, State, States
from domain.values.refusals import CorruptHistoryError
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.codec.rows import EncodedRow, RowEncoder
from infrastructure.outbound.log.read.fold_input import (
    FoldPage,
    TableStates,
    end_of_transaction,
    fold_page,
    read_page,
)
from infrastructure.outbound.log.rebuild import build
from infrastructure.outbound.log.rebuild import rebuild as rebuild_at_start
from infrastructure.outbound.log.rebuild.fold_part import PagedFold
from infrastructure.outbound.log.rebuild.rebuild import (
    RebuildCounts,
    RebuildInProgressError,
    bring_rows_up_to_date,
    rebuild,
)
from infrastructure.outbound.log.rebuild.swap import TableSwapError
from infrastructure.outbound.log.schema import projection_versions
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.format import UnknownFormatError
from infrastructure.outbound.log.schema.identity import identify
from infrastructure.outbound.log.schema.projection_versions import (
    IncompatibleRowsError,
    note_versions,
    stale_projections,
)
from tests.support.builders.submissions import at_once, key, observe, observing
from tests.support.builders.whole_story import tell_everything
from tests.support.servers.rebuilds import catalog, rows
from tests.support.servers.running_log import RunningLog

OLDER = "UPDATE projections SET version = version - 1 WHERE name = 'runs'"
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
"""A statement, and the number of rows that differ then; None is more than two."""


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
@pytest.mark.told("everything")
async def test_row_changed_by_hand_is_counted_and_mended(running: RunningLog) -> None:
    before = await rows(running)
    for damage, (statement, differing) in DAMAGES.items():
        await running.ask(statement)
        assert await rows(running) != before, damage
        rebuilt = await rebuild(running.url)
        assert rebuilt.differing is not None, damage
        assert rebuilt.differing == differing or (differing is None and rebuilt.differing > 2), (
            f"{damage}: {rebuilt.differing}"
        )
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
    with pytest.raises(CorruptHistoryError):
        await rebuild(running.url)
    assert await rows(running) == before
    await observe(running.log, ["next"])


async def test_log_of_newer_format_is_not_folded(running: RunningLog) -> None:
    await observe(running.log, range(3))
    await running.ask("UPDATE log_head SET format = %s", LOG_FORMAT + 1)
    await running.ask("DELETE FROM sessions")
    with pytest.raises(UnknownFormatError, match="install a newer spawnlog"):
        await rebuild(running.url)
    assert await running.ask("SELECT count(*) FROM sessions") == [(0,)]


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
    with pytest.raises(TableSwapError, match=r"view mine.*drop it"):
        await rebuild(running.url)
    await observe(running.log, ["next"])
    assert await running.ask("SELECT count(*) FROM sessions") == [(4,)]
    await running.ask("DROP VIEW mine")
    assert (await rebuild(running.url)).differing == 0


class CountedStates:
    """The states of the tables, and how many were asked for."""

    def __init__(self, connection: LogConnection) -> None:
        self._states = TableStates(connection, "runs", "sessions")
        self.asked = 0

    async def load(self, missing: MissingStates, at: int) -> Iterable[State]:
        self.asked += len(missing.runs) + len(missing.sessions)
        return await self._states.load(missing, at)


async def page(connection: LogConnection, until: int, after: int = 0) -> FoldPage:
    return await read_page(connection, EventMapper(), after=after, until=until)


@pytest.mark.server
@pytest.mark.parametrize("states_max", [0, 2, 1000])
@pytest.mark.told("everything")
async def test_pages_fold_to_the_same_rows_in_bounded_memory(
    running: RunningLog, connection: LogConnection, states_max: int
) -> None:
    head = await running.log.head()
    source = CountedStates(connection)
    whole = Fold((), (), lambda table: RowEncoder(table).encode)
    await fold_page(whole, await page(connection, head), source)
    paged = PagedFold(source, states_max=states_max)
    found: dict[str, list[tuple[EncodedRow, int]]] = {table: [] for table in whole.rows}
    after = 0
    while after < head:
        until = await end_of_transaction(connection, min(after + 3, head))
        assert until is not None
        for table, changes in (await paged.fold(await page(connection, until, after))).items():
            found[table] += [(span.row, span.from_position) for span in changes.opened]
        assert paged.states_count <= 2 * states_max
        after = until
    assert found == {
        table: [(span.row, span.from_position) for span in changes.opened]
        for table, changes in whole.rows.items()
    }
    # States in memory are not read again, nor are streams that begin in the page.
    assert (source.asked == 0) == (states_max == 1000)


@pytest.mark.told("everything")
async def test_states_are_found_as_of_a_position(
    running: RunningLog, connection: LogConnection
) -> None:
    head = await running.log.head()
    states = TableStates(connection, "runs", "sessions")
    runs = [run for (run,) in await running.ask("SELECT DISTINCT run_id FROM runs")]
    sessions = [key for (key,) in await running.ask("SELECT DISTINCT session_key FROM sessions")]
    for near in (1, 2, head // 2, head):
        at = await end_of_transaction(connection, near)
        assert at is not None
        expected = Fold((), ())
        for event in (await page(connection, at)).events:
            expected.apply(event.stream, event.event, event.stamp)
        found = States(await states.load(MissingStates(runs, sessions), at))
        assert (found.runs, found.sessions) == (expected.runs, expected.sessions)
    await running.ask("TRUNCATE runs, sessions")
    paged = PagedFold(states, states_max=10)
    with pytest.raises(CorruptHistoryError):
        await paged.fold(await page(connection, head, after=10))


@pytest.mark.server
async def test_start_rebuilds_rows_of_older_version(
    running: RunningLog, connection: LogConnection, caplog: pytest.LogCaptureFixture
) -> None:
    await note_versions(connection)
    await tell_everything(running)
    before = await rows(running)
    await running.ask("UPDATE runs SET label = 'as it was called before'")
    await running.ask(OLDER)
    with caplog.at_level(logging.INFO):
        await bring_rows_up_to_date(running.url)
    assert await rows(running) == before
    assert await stale_projections(connection) == ()
    assert "the rows of runs are of an older version" in caplog.text
    assert "rebuild: events, 0 of" in caplog.text
    caplog.clear()
    await bring_rows_up_to_date(running.url)
    assert caplog.text == ""


@pytest.mark.server
async def test_one_of_several_starts_rebuilds(
    running: RunningLog, connection: LogConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await note_versions(connection)
    await observe(running.log, range(5))
    await running.ask(OLDER)
    done: list[RebuildCounts] = []

    async def counted(conninfo: str, **options: Any) -> RebuildCounts:
        done.append(await rebuild(conninfo, **options))
        return done[-1]

    monkeypatch.setattr(rebuild_at_start, "rebuild", counted)
    await asyncio.gather(*(bring_rows_up_to_date(running.url) for _ in range(4)))
    assert [item.events for item in done] == [5]
    assert await stale_projections(connection) == ()
    with pytest.raises(RebuildInProgressError, match="has just rebuilt"):
        await rebuild(running.url, if_stale=True)


async def test_rows_without_noted_version_are_stale(
    running: RunningLog, connection: LogConnection
) -> None:
    assert await stale_projections(connection) == ()
    await running.ask("DELETE FROM projections")
    await observe(running.log, range(3))
    assert await stale_projections(connection) == ("runs", "sessions")
    await bring_rows_up_to_date(running.url)
    assert await stale_projections(connection) == ()


async def test_log_that_cannot_be_folded_stops_the_start(
    running: RunningLog, connection: LogConnection
) -> None:
    await note_versions(connection)
    await observe(running.log, range(3))
    await running.ask(OLDER)
    await running.ask("UPDATE events SET state = '{}'::bytea WHERE position = 2")
    with pytest.raises(UserError, match=r"cannot be rebuilt from the log: version 1 of") as failure:
        await bring_rows_up_to_date(running.url)
    assert isinstance(failure.value.__cause__, CorruptHistoryError)
    assert await running.ask("SELECT to_regclass('rebuilding')") == [(None,)]


async def test_start_leaves_rows_of_newer_version(connection: LogConnection) -> None:
    await note_versions(connection)
    await connection.execute("UPDATE projections SET version = version + 1 WHERE name = 'runs'")
    assert await stale_projections(connection) == ("runs",)
    with pytest.raises(UserError, match=r"the rows of runs are of a newer.*spawnlog log rebuild"):
        await identify(connection, "home-1")


async def test_older_server_writes_no_more_after_exchange_of_rows(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await observe(running.log, ["before"])
    with monkeypatch.context() as newer:
        newer.setitem(projection_versions.VERSIONS, "sessions", 99)
        await rebuild(running.url)
    before = await rows(running)
    answers = await at_once(running.log, *(observing(key(number)) for number in range(3)))
    assert all(isinstance(answer, IncompatibleRowsError) for answer in answers)
    assert "sessions 99" in str(answers[0])
    assert "stop this server" in str(answers[0])
    assert await rows(running) == before
    assert len(await running.events()) == 1
    await rebuild(running.url)
    await observe(running.log, ["after"])
