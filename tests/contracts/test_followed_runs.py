"""A run that a process has followed is what the record says of it, at the position it has seen."""

from application.log.event_log import Tail
from tests.support.builders.logged_family import LoggedFamily
from tests.support.memory.served_log import ServedLog

SECONDS_MAX = 20.0


async def seen(tail: Tail, position: int) -> None:
    """Wait until the tail has come so far."""
    while tail.position < position:
        assert await tail.changed(None, after=tail.position, timeout_seconds=SECONDS_MAX)


async def test_a_run_is_followed_from_its_request_to_its_archive(
    running: ServedLog, family: LoggedFamily
) -> None:
    await family.queue("scout")
    assert running.tail.newest(family.id("scout")) == family.run("scout")
    await family.live("other")
    for name in ("scout", "other"):
        run_id = family.id(name)
        assert running.tail.newest(run_id) == await running.registry().run(run_id)


async def test_a_run_of_another_process_is_followed_as_well(
    running: ServedLog, family: LoggedFamily
) -> None:
    async with running.other() as other:
        await family.begin("scout")
        apart = LoggedFamily(other.log, root="agent:main:apart", first=50)
        await apart.live("stranger")
        await family.end("scout")
        head = await running.log.head()
        for one in (running, other):
            await seen(one.tail, head)
            for run_id in (family.id("scout"), apart.id("stranger")):
                assert one.tail.newest(run_id) == await running.registry().run(run_id)


async def test_a_run_whose_beginning_was_not_seen_is_not_known(
    running: ServedLog, family: LoggedFamily
) -> None:
    await family.begin("scout")
    async with running.other() as other:
        await family.end("scout")
        await seen(other.tail, await running.log.head())
        assert other.tail.newest(family.id("scout")) is None
