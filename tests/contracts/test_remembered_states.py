"""States that are remembered never answer for a table that is another one now."""

from infrastructure.outbound.log.rebuild.rebuild import rebuild
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders.logged_family import LoggedFamily
from tests.support.servers.running_log import RunningLog, running_on


async def test_a_rebuild_mends_what_a_running_server_has_read(
    postgres: RunningLog, family: LoggedFamily
) -> None:
    await family.spawn("one")
    await postgres.ask("UPDATE runs SET state = replace(state, '\"depth\":1', '\"depth\":7')")
    async with running_on(postgres.url) as server:
        registry = PostgresRegistry(server.pool, server.log.remembered)
        read = await registry.run(family.id("one"))
        assert read is not None
        assert read.depth == 7
        assert (await rebuild(postgres.url)).differing
        mended = await registry.run(family.id("one"))
        assert mended is not None
        assert mended.depth == 1
        family.log = server.log
        await family.resolve("one")
        assert family.run("one").depth == 1
        assert (await rebuild(postgres.url)).differing == 0


async def test_what_is_read_again_is_what_was_read_before(
    postgres: RunningLog, family: LoggedFamily
) -> None:
    registry = PostgresRegistry(postgres.pool, postgres.log.remembered)
    forgetful = PostgresRegistry(postgres.pool)
    await family.begin("one")
    for _ in range(2):
        assert await registry.run(family.id("one")) == await forgetful.run(family.id("one"))
        at = family.run("one").created_position
        assert await registry.run(family.id("one"), at=at) == await forgetful.run(
            family.id("one"), at=at
        )
        key = family.run("one").requester.session_key
        assert await registry.session(key) == await forgetful.session(key)
