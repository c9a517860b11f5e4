"""A run that a process has followed is as recorded, at the position that it has seen."""

from application.log.event_log import Tail
from domain.run.facts import RespawnFacts
from infrastructure.outbound.read_model.registry import PostgresRegistry
from infrastructure.outbound.read_model.run_bars import PostgresRunBars
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.whole_story import tell_everything
from tests.support.memory.served_log import ServedLog
from tests.support.servers.running_log import RunningLog, open_pool

SECONDS_MAX = 20.0


async def seen(tail: Tail, position: int) -> None:
    """Wait until the tail has come so far."""
    while tail.position < position:
        assert await tail.changed((), after=tail.position, timeout_seconds=SECONDS_MAX)


async def test_run_is_followed_to_its_archive(running: ServedLog, family: LoggedFamily) -> None:
    await family.queue("scout")
    assert running.tail.newest(family.id("scout")) == family.run("scout")
    await family.live("other")
    for name in ("scout", "other"):
        run_id = family.id(name)
        assert running.tail.newest(run_id) == await running.registry().run(run_id)


async def test_run_of_another_process_is_followed(running: ServedLog, family: LoggedFamily) -> None:
    async with running.other() as second_log:
        await family.begin("scout")
        apart = LoggedFamily(second_log.log, root="agent:main:apart", first=50)
        await apart.live("stranger")
        await family.end("scout")
        head = await running.log.head()
        for item in (running, second_log):
            await seen(item.tail, head)
            for run_id in (family.id("scout"), apart.id("stranger")):
                assert item.tail.newest(run_id) == await running.registry().run(run_id)


async def test_run_with_unseen_beginning_is_unknown(
    running: ServedLog, family: LoggedFamily
) -> None:
    await family.begin("scout")
    async with running.other() as second_log:
        await family.end("scout")
        await seen(second_log.tail, await running.log.head())
        assert second_log.tail.newest(family.id("scout")) is None


async def test_followed_stages_are_those_on_record(
    postgres: RunningLog,
) -> None:
    family = await tell_everything(postgres)
    bars = PostgresRunBars(postgres.pool)
    runs = family.runs.values()
    assert len(runs) > 10
    for run in runs:
        for until in range(1, run.version + 1):
            recorded = await bars.stages({run.run_id: until})
            assert postgres.tail.stages(run.run_id, until) == list(recorded[run.run_id])
        assert postgres.tail.stages(run.run_id, run.version + 1) is None


async def test_followed_run_needs_no_database(postgres: RunningLog) -> None:
    family = LoggedFamily(postgres.log, max_children=4)
    await family.live("scout")
    run = family.run("scout")
    head = await postgres.log.head()
    async with open_pool(postgres.url) as pool:
        await pool.close()
        bars = PostgresRunBars(pool, None, postgres.tail.stages)
        registry = PostgresRegistry(pool, None, postgres.tail.is_respawned)
        (stages,) = (await bars.stages({run.run_id: run.version})).values()
        assert [stage.stage for stage in stages][-1] == "archived"
        assert await registry.respawns(run.run_id, at=head) == ()


async def test_respawns_are_read_if_not_followed(
    postgres: RunningLog,
) -> None:
    family = LoggedFamily(postgres.log, max_children=4)
    await family.begin("first")
    first = family.id("first")
    registry = PostgresRegistry(postgres.pool, None, postgres.tail.is_respawned)
    before = await postgres.log.head()
    assert postgres.tail.is_respawned(first, before) is False
    # Events that other servers recorded meanwhile are unknown until they are read.
    assert postgres.tail.is_respawned(first, before + 1) is None
    async with postgres.other() as second_log:
        await family.spawn("again", respawn=RespawnFacts(run_id=first))
        await seen(second_log.tail, await postgres.log.head())
        assert second_log.tail.is_respawned(first, before) is None
        assert second_log.tail.stages(first, 1) is None
        assert second_log.tail.is_respawned(family.id("again"), before) is False
        (stage,) = second_log.tail.stages(family.id("again"), 1) or ()
        assert stage.stage == "requested"
    assert postgres.tail.is_respawned(first, before)
    assert await registry.respawns(first, at=before) == ()
    (respawn,) = await registry.respawns(first, at=await postgres.log.head())
    assert respawn.run_id == family.id("again")
