"""A killed rebuild resumes where it was, and does not change live rows before its end."""

import asyncio
import sys
from itertools import product

import pytest

from infrastructure.contract.operations import RebuildProgress
from infrastructure.outbound.log.read.fold_input import StreamPart
from infrastructure.outbound.log.rebuild import fold_part, tables
from infrastructure.outbound.log.rebuild.fold_part import PartFold, PartTakenOverError
from infrastructure.outbound.log.rebuild.rebuild import rebuild
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.projection_versions import VERSIONS
from tests.support.builders.submissions import observe
from tests.support.servers.embedded_servers import PROJECT
from tests.support.servers.process_table import children, is_alive
from tests.support.servers.rebuilds import killed_rebuild, rows
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import nightly_but
from tests.support.waiting import until

PAGE = 4

HOLDER = """
import asyncio, sys
from infrastructure.outbound.log.read.fold_input import StreamPart
from infrastructure.outbound.log.rebuild.worker import fold_in_process
part = StreamPart(0, 1)
asyncio.run(
    fold_in_process(sys.argv[1], part, 0, 3, page_events=5, on_position=lambda position: None)
)
"""

OTHER_TABLES = ["", "CREATE INDEX more ON runs (agent_id)", "ALTER TABLE runs ADD more integer"]
"""Statements; the empty one is another version of the rows."""
MOMENTS = {
    "after the first page": ("events", 1),
    "in the middle of the events": ("events", 30),
    "with some of the indexes": ("indexes", 12),
    "before the comparison": ("comparison", 0),
    "before the exchange": ("exchange", 0),
}


@pytest.mark.kill
@pytest.mark.parametrize(
    ("moment", "in_processes"),
    nightly_but(
        product(MOMENTS, [True, False]),
        [("in the middle of the events", True), ("with some of the indexes", False)],
    ),
)
@pytest.mark.told("everything")
async def test_killed_rebuild_goes_on_where_it_was(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch, moment: str, in_processes: bool
) -> None:
    before = await rows(running)
    await killed_rebuild(running, *MOMENTS[moment], in_processes=in_processes, page=PAGE)
    assert await rows(running) == before
    folded = (await running.ask("SELECT sum(position)::int / 2 FROM rebuilding"))[0][0]
    assert folded > 0
    heard: list[RebuildProgress] = []
    monkeypatch.setattr(fold_part, "PAGE_EVENTS", PAGE)
    rebuilt = await rebuild(running.url, on_progress=heard.append)
    assert (heard[0].began, heard[0].done) == (folded, folded)
    assert rebuilt.differing == 0
    assert await rows(running) == before
    left = "SELECT to_regclass('rebuilding'), to_regclass('runs_next')"
    assert await running.ask(left) == [(None, None)]


@pytest.mark.kill
@pytest.mark.told("everything")
async def test_events_after_the_kill_are_folded_too(running: RunningLog) -> None:
    await killed_rebuild(running, "exchange", 0, in_processes=False, page=PAGE)
    await observe(running.log, range(20))
    before = await rows(running)
    rebuilt = await rebuild(running.url)
    assert (rebuilt.events, rebuilt.differing) == (await running.log.head(), 0)
    assert await rows(running) == before


@pytest.mark.kill
@pytest.mark.parametrize("change", nightly_but(OTHER_TABLES, [""]))
@pytest.mark.told("everything")
async def test_rebuild_for_other_tables_begins_anew(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    await killed_rebuild(running, "comparison", 0, in_processes=False, page=PAGE)
    if change:
        await running.ask(change)
    else:
        monkeypatch.setitem(VERSIONS, "runs", 99)
    heard: list[RebuildProgress] = []
    assert (await rebuild(running.url, on_progress=heard.append)).differing == 0
    assert heard[0].began == 0


async def test_rebuild_of_longer_log_begins_anew(
    running: RunningLog, connection: LogConnection
) -> None:
    await observe(running.log, range(3))
    shape = await tables.shape(connection)
    await tables.create(connection, shape, 2)
    await connection.execute("UPDATE rebuilding SET position = 3")
    assert await tables.positions(connection, shape) == {StreamPart(n, 2): 3 for n in range(2)}
    await connection.execute("UPDATE rebuilding SET position = 4 WHERE part = 1")
    assert await tables.positions(connection, shape) is None


@pytest.mark.kill
async def test_waiting_process_ends_with_its_holder(
    running: RunningLog, connection: LogConnection
) -> None:
    await observe(running.log, range(3))
    await tables.create(connection, "any", 1)
    await connection.execute("SET idle_in_transaction_session_timeout = 0")
    await connection.execute("BEGIN")
    await connection.execute("LOCK TABLE rebuilding IN ACCESS EXCLUSIVE MODE")
    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDER, running.url), cwd=PROJECT
    )
    workers = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'UPDATE rebuilding%'"

    async def one_waits() -> bool:
        return len(await running.ask(workers)) == 1

    await until(one_waits, "the process waits", seconds=30)
    (worker,) = children(holder.pid)
    holder.kill()
    await holder.wait()

    async def is_gone() -> bool:
        return not is_alive(worker)

    await until(is_gone, "the process has ended", seconds=3)
    await connection.execute("COMMIT")


async def test_second_fold_of_the_same_part_stops(
    running: RunningLog, connection: LogConnection
) -> None:
    await observe(running.log, range(3))
    await tables.create(connection, "any", 1)
    first, second = (PartFold(connection, StreamPart(0, 1), 0, page_events=2) for _ in range(2))
    assert [page.upto async for page in first.pages(3)] == [2, 3]
    with pytest.raises(PartTakenOverError, match="another process has taken over this rebuild"):
        await anext(second.pages(3))
    found = await connection.execute("SELECT count(*) FROM sessions_next")
    assert await found.fetchone() == (3,)
