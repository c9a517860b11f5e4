"""The tables after a rebuild are what they were before it, to whoever uses or has adorned them."""

import pytest
from psycopg import errors

from application.projections.fold import FOREVER
from infrastructure.outbound.log.rebuild.rebuild import rebuild
from infrastructure.outbound.log.rebuild.swap import SwapFailed
from infrastructure.outbound.log.schema.connections import LogConnection
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.submissions import observe
from tests.support.servers.rebuilds import catalog
from tests.support.servers.running_log import RunningLog

STATE_OF = f"SELECT version, stage FROM runs WHERE run_id = %s AND to_position = {FOREVER}"


async def test_everything_about_the_tables_is_as_it_was(running: RunningLog) -> None:
    await running.ask("ALTER TABLE runs SET (fillfactor = 90)")
    await running.ask("GRANT SELECT ON runs TO PUBLIC")
    await running.ask("CREATE INDEX \"An operator's\" ON sessions (root) WHERE root <> ' USING '")
    await observe(running.log, range(3))
    before = await catalog(running)
    for _ in range(2):
        await rebuild(running.url)
        assert await catalog(running) == before


async def test_what_an_operator_has_hung_on_the_tables_is_not_dropped(running: RunningLog) -> None:
    await observe(running.log, range(3))
    await running.ask("CREATE VIEW mine AS SELECT stage FROM runs")
    with pytest.raises(SwapFailed, match=r"view mine.*drop it"):
        await rebuild(running.url)
    await observe(running.log, ["next"])
    assert await running.ask("SELECT count(*) FROM sessions") == [(4,)]
    await running.ask("DROP VIEW mine")
    assert (await rebuild(running.url)).differing == 0


async def test_a_statement_that_was_prepared_before_finds_the_rows_after(
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
