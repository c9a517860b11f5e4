"""A log of any length is folded page by page, with few states in memory."""

from collections.abc import AsyncIterator, Iterable
from uuid import UUID

import pytest

from application.projections.fold import Fold
from domain.states import MissingStates, State, States
from domain.values.refusals import CorruptHistory
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.codec.rows import EncodedRow, RowEncoder
from infrastructure.outbound.log.read.fold_input import (
    FoldPage,
    StreamPart,
    TableStates,
    end_of_transaction,
    fold_page,
    read_page,
)
from infrastructure.outbound.log.rebuild.fold_part import PagedFold
from infrastructure.outbound.log.schema.connections import LogConnection
from tests.support.servers.running_log import RunningLog

PAGE = 3


class Noting:
    """The states of the tables, and how many were asked for."""

    def __init__(self, connection: LogConnection) -> None:
        self._states = TableStates(connection, "runs", "sessions")
        self.asked = 0

    async def load(self, missing: MissingStates, at: int) -> Iterable[State]:
        self.asked += len(missing.runs) + len(missing.sessions)
        return await self._states.load(missing, at)


async def _whole(connection: LogConnection, head: int) -> FoldPage:
    return await read_page(connection, EventMapper(), after=0, until=head)


async def _pages(connection: LogConnection, head: int) -> AsyncIterator[FoldPage]:
    after = 0
    while after < head:
        until = await end_of_transaction(connection, min(after + PAGE, head))
        assert until is not None
        yield await read_page(connection, EventMapper(), after=after, until=until)
        after = until


@pytest.mark.server
@pytest.mark.parametrize("states_max", [0, 2, 1000])
@pytest.mark.told("everything")
async def test_pages_make_the_rows_that_the_whole_makes_with_few_states_in_memory(
    running: RunningLog, connection: LogConnection, states_max: int
) -> None:
    head = await running.log.head()
    source = Noting(connection)
    whole = Fold((), (), lambda one: RowEncoder(one).encode)
    await fold_page(whole, await _whole(connection, head), source)
    paged = PagedFold(source, states_max=states_max)
    rows: dict[str, list[tuple[EncodedRow, int]]] = {table: [] for table in whole.rows}
    async for page in _pages(connection, head):
        for table, changes in (await paged.fold(page)).items():
            rows[table] += [(span.row, span.from_position) for span in changes.opened]
        assert paged.states_count <= 2 * states_max
    assert rows == {
        table: [(span.row, span.from_position) for span in changes.opened]
        for table, changes in whole.rows.items()
    }
    # What is in memory is not asked for, and what begins in a page neither.
    assert (source.asked == 0) == (states_max == 1000)


async def _every_key(running: RunningLog) -> tuple[list[UUID], list[str]]:
    runs = await running.ask("SELECT DISTINCT run_id FROM runs")
    sessions = await running.ask("SELECT DISTINCT session_key FROM sessions")
    return [row[0] for row in runs], [row[0] for row in sessions]


@pytest.mark.told("everything")
async def test_states_are_found_as_of_a_position(
    running: RunningLog, connection: LogConnection
) -> None:
    head = await running.log.head()
    states = TableStates(connection, "runs", "sessions")
    for near in (1, 2, head // 2, head):
        at = await end_of_transaction(connection, near)
        assert at is not None
        fold = Fold((), ())
        for one in (await _whole(connection, at)).events:
            fold.apply(one.stream, one.event, one.stamp)
        every_run = [row[0] for row in await running.ask("SELECT DISTINCT run_id FROM runs")]
        every_key = [
            row[0] for row in await running.ask("SELECT DISTINCT session_key FROM sessions")
        ]
        found = States(await states.load(MissingStates(every_run, every_key), at))
        assert found.runs == fold.runs
        assert found.sessions == fold.sessions


@pytest.mark.told("everything")
async def test_each_event_is_in_one_part(running: RunningLog, connection: LogConnection) -> None:
    head = await running.log.head()
    parts = [
        (
            await read_page(
                connection, EventMapper(), after=0, until=head, part=StreamPart(number, 3)
            )
        ).events
        for number in range(3)
    ]
    assert all(parts)
    assert sorted(one.stamp.position for part in parts for one in part) == list(range(1, head + 1))
    streams = [{one.stream for one in part} for part in parts]
    assert sum(map(len, streams)) == len(set().union(*streams))


@pytest.mark.told("everything")
async def test_a_state_that_is_nowhere_is_told(
    running: RunningLog, connection: LogConnection
) -> None:
    page = await _whole(connection, await running.log.head())
    await running.ask("TRUNCATE runs, sessions")
    paged = PagedFold(TableStates(connection, "runs", "sessions"), states_max=10)
    with pytest.raises(CorruptHistory):
        await paged.fold(page._replace(events=page.events[10:]))
