"""Whoever waits for an event of the log is woken by it, and by nothing else."""

import asyncio
from functools import partial

import pytest

from application.log.event_log import LogUnavailable
from domain.values.refusals import CorruptHistory
from infrastructure.outbound.log.read.tail import LogHasGap, LogWentBack
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import run_id
from tests.support.builders.submissions import observe
from tests.support.faults.followers import following
from tests.support.faults.held_commits import until
from tests.support.servers.running_log import RunningLog, running_on

NOT_TODAY_SECONDS = 60.0
FEW = 10
BACKENDS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND backend_type = 'client backend'"
)


async def _is_at(running: RunningLog, position: int) -> bool:
    return running.tail.position == position


async def test_those_who_wait_for_a_run_are_woken_by_its_own_events_alone(
    running: RunningLog, family: LoggedFamily
) -> None:
    await family.spawn("mine")
    await family.spawn("other")
    await until(lambda: _is_at(running, 5), "the tail has come to the end")
    waiting = [
        asyncio.create_task(
            running.tail.changed((family.id("mine"),), after=5, timeout_seconds=NOT_TODAY_SECONDS)
        )
        for _ in range(3)
    ]
    await family.resolve("other")
    assert await running.tail.changed((family.id("other"),), after=5, timeout_seconds=10)
    assert not any(task.done() for task in waiting)
    await family.resolve("mine")
    assert await asyncio.gather(*waiting) == [True, True, True]
    assert running.tail._recent.waited_for == frozenset()


async def test_those_who_wait_for_several_runs_are_woken_by_each_of_them_and_no_other(
    running: RunningLog, family: LoggedFamily
) -> None:
    for name in ("one", "two", "other"):
        await family.spawn(name)
    await until(lambda: _is_at(running, 7), "the tail has come to the end")
    ours = (family.id("one"), family.id("two"))
    waiting = [
        asyncio.create_task(running.tail.changed(ours, after=7, timeout_seconds=NOT_TODAY_SECONDS))
        for _ in range(2)
    ]
    await family.resolve("other")
    assert await running.tail.changed((family.id("other"),), after=7, timeout_seconds=10)
    assert not any(task.done() for task in waiting)
    await family.resolve("two")
    assert await asyncio.gather(*waiting) == [True, True]
    assert running.tail._recent.waited_for == frozenset()


async def test_who_waits_for_what_has_happened_does_not_wait(
    running: RunningLog, family: LoggedFamily
) -> None:
    await family.spawn("mine")
    await until(lambda: _is_at(running, 3), "the tail has come to the end")
    changed = running.tail.changed
    assert await changed((family.id("mine"),), after=0, timeout_seconds=NOT_TODAY_SECONDS)
    assert await changed((family.id("mine"),), after=2, timeout_seconds=NOT_TODAY_SECONDS)
    assert not await changed((family.id("mine"),), after=3, timeout_seconds=0.02)
    assert not await changed((run_id(99),), after=0, timeout_seconds=0.02)
    assert await changed((), after=2, timeout_seconds=NOT_TODAY_SECONDS)
    assert not await changed((), after=3, timeout_seconds=0.02)
    async with running_on(running.url) as later:
        assert await later.tail.changed((family.id("mine"),), after=0, timeout_seconds=10)
        assert not await later.tail.changed((run_id(99),), after=0, timeout_seconds=0.1)
        assert not await later.tail.changed((family.id("mine"),), after=3, timeout_seconds=0.1)


async def test_those_who_wait_for_anything_are_woken_by_anything(running: RunningLog) -> None:
    waiting = asyncio.create_task(
        running.tail.changed((), after=1, timeout_seconds=NOT_TODAY_SECONDS)
    )
    await observe(running.log, ["one"])
    assert not waiting.done()
    await observe(running.log, ["two"])
    assert await waiting


@pytest.mark.parametrize(
    ("damage", "failure"),
    [
        ("position = 4", LogHasGap),
        ("position = 3, type = 'Unheard'", CorruptHistory),
        ("position = 3, state = 'x'::bytea", CorruptHistory),
        ("position = 3, type = 'SpawnRequested'", CorruptHistory),
    ],
)
async def test_a_tail_that_cannot_go_on_says_so_and_tells_nothing_more(
    running: RunningLog, damage: str, failure: type[Exception]
) -> None:
    await observe(running.log, range(2))
    async with following(running.tail) as follower:
        await follower.has(2)
        await running.ask(
            "CREATE TEMPORARY TABLE damaged AS SELECT * FROM events WHERE position = 2;"
            f" UPDATE damaged SET stream = 'session:x', {damage};"
            " INSERT INTO events TABLE damaged; DROP TABLE damaged"
        )

        async def failed() -> bool:
            return running.tail.failure is not None

        await until(failed, "the damage is seen")
        assert isinstance(running.tail.failure, failure)
        assert "cannot be followed" in await follower.is_told()
        assert follower.positions == [1, 2]
        assert running.tail.position == 2


@pytest.mark.server
async def test_ten_thousand_who_wait_cost_one_listener(
    running: RunningLog, family: LoggedFamily
) -> None:
    await family.spawn("mine")
    await until(lambda: _is_at(running, 3), "the tail has come to the end")
    async with running_on(running.url) as other:

        async def each_listens() -> bool:
            return len(await running.backends("LISTEN%")) == 2

        await until(each_listens, "each process has its listener")
        before = await running.ask(BACKENDS)
        after = running.tail.position
        wait = partial(running.tail.changed, after=after, timeout_seconds=NOT_TODAY_SECONDS)
        waiting = [asyncio.create_task(wait((family.id("mine"),))) for _ in range(5_000)]
        waiting += [asyncio.create_task(wait(())) for _ in range(5_000)]
        await asyncio.sleep(0)
        # Pools open and close connections as they like, but a few; those who wait would be many.
        ((now,),), ((then,),) = await running.ask(BACKENDS), before
        assert abs(now - then) < FEW
        assert await each_listens()
        elsewhere = LoggedFamily(other.log, root="agent:main:elsewhere", first=900)
        await elsewhere.spawn("stranger")
        assert all(await asyncio.gather(*waiting[5_000:]))
        assert not any(task.done() for task in waiting[:5_000])
        await family.resolve("mine")
        assert all(await asyncio.gather(*waiting[:5_000]))


async def test_a_log_that_went_back_is_not_followed_and_nobody_waits_for_it(
    running: RunningLog,
) -> None:
    said: list[str] = []
    running.log.end_with(said.append)
    await observe(running.log, range(3))
    waiting = asyncio.create_task(
        running.tail.changed((), after=3, timeout_seconds=NOT_TODAY_SECONDS)
    )
    await running.ask("DELETE FROM events WHERE position = 3; UPDATE log_head SET position = 2")
    with pytest.raises(LogUnavailable, match="cannot be followed"):
        await waiting
    assert isinstance(running.tail.failure, LogWentBack)
    (why,) = said
    assert "ends at 2" in why
    with pytest.raises(LogUnavailable):
        await running.tail.changed((), after=0, timeout_seconds=NOT_TODAY_SECONDS)
    with pytest.raises(LogUnavailable):
        await anext(running.tail.follow(after=0))


async def test_stop_wakes_waiters_of_runs_and_of_anything(
    running: RunningLog, family: LoggedFamily
) -> None:
    await family.spawn("mine")
    await until(lambda: _is_at(running, 3), "the tail has come to the end")
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wait = partial(
        running.tail.changed, after=3, timeout_seconds=NOT_TODAY_SECONDS, stopped=stopped
    )
    waiting = [asyncio.create_task(wait(ours)) for ours in ((family.id("mine"),), ())]
    await until(lambda: _all_wait(running, 2), "both wait")
    stopped.set_result(None)
    assert await asyncio.gather(*waiting) == [False, False]
    assert running.tail._recent.waited_for == frozenset()


async def _all_wait(running: RunningLog, waiters: int) -> bool:
    return len(running.tail._recent.waited_for) == waiters
