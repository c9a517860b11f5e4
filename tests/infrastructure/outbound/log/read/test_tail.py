"""A follower of the log sees every event once, in order; a waiter is woken by its event."""

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from itertools import count

import pytest

from application.log.envelope import RecordedEvent
from application.log.event_log import LogUnavailableError
from domain.values.refusals import CorruptHistoryError
from infrastructure.outbound.log.read import recent_events, tail
from infrastructure.outbound.log.read.tail import LogGapError, LogRewoundError
from infrastructure.outbound.log.schema.followers import channel_of
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import run_id
from tests.support.builders.submissions import key, observe, observing
from tests.support.faults.followers import following
from tests.support.faults.held_commits import Lines
from tests.support.servers.running_log import RunningLog, running_on
from tests.support.waiting import until

QUICKLY_SECONDS = 3.0
NOT_TODAY_SECONDS = 60.0


@pytest.fixture
def never_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "POLL_SECONDS", NOT_TODAY_SECONDS)


@pytest.mark.usefixtures("never_polls")
async def test_events_of_another_process_come_at_once(database_url: str) -> None:
    async with running_on(database_url) as first_log, running_on(database_url) as second_log:
        await until(lambda: _listens(first_log, 2), "both listen")
        async with following(first_log.tail) as follower:
            for number in range(5):
                began = time.monotonic()
                await observe(second_log.log, [number])
                await follower.has(number + 1)
                assert time.monotonic() - began < QUICKLY_SECONDS


@pytest.mark.usefixtures("never_polls")
async def test_time_is_not_before_newest_known_event(database_url: str) -> None:
    async with running_on(database_url) as first_log, running_on(database_url) as second_log:
        await until(lambda: _listens(first_log, 2), "both listen")
        async with following(second_log.tail) as follower:
            await observe(first_log.log, [1])
            await follower.has(1)
            (newest,) = await first_log.events()
            for log in (first_log, second_log):
                an_hour_ago = newest.envelope.recorded_at - timedelta(hours=1)
                log.tail.clock.note(an_hour_ago, asked_at=time.monotonic())
                assert log.log.now() == newest.envelope.recorded_at


@pytest.mark.usefixtures("never_polls")
async def test_cut_tail_listens_and_reads_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "RECONNECT_PAUSE_SECONDS", 0.01)
    async with running_on(database_url) as first_log, running_on(database_url) as second_log:
        await until(lambda: _listens(first_log, 2), "both listen")
        async with following(first_log.tail) as follower:
            for number in range(3):
                await observe(second_log.log, [number])
                await follower.has(number + 1)
                readers = await first_log.backends("%FROM events WHERE position%")
                for pid in [*await first_log.backends("LISTEN%"), *readers]:
                    await first_log.end(pid)
        assert follower.positions == [1, 2, 3]


@pytest.mark.usefixtures("never_polls")
async def test_own_events_need_no_notification(database_url: str) -> None:
    async with running_on(database_url) as running, following(running.tail) as follower:
        await until(lambda: _listens(running, 1), "it listens")
        for pid in await running.backends("LISTEN%"):
            await running.end(pid)
        await observe(running.log, range(3))
        await follower.has(3)


async def test_follower_may_begin_anywhere(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "PAGE_EVENTS", 7)
    await observe(running.log, range(30))
    async with running_on(running.url) as later:
        async with (
            following(later.tail) as everything,
            following(later.tail, after=25) as the_end,
            following(later.tail, after=30) as what_comes,
            following(later.tail, after=32) as far_ahead,
        ):
            await observe(running.log, range(30, 35))
            for follower, after in ((everything, 0), (the_end, 25), (what_comes, 30)):
                await follower.has(35 - after)
                assert follower.positions == list(range(after + 1, 36))
            await far_ahead.has(3)
            assert far_ahead.positions == [33, 34, 35]


async def test_slow_follower_goes_on_from_the_log(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_events, "RECENT_EVENTS_MAX", 5)
    monkeypatch.setattr(tail, "PAGE_EVENTS", 8)
    async with running_on(database_url) as running:
        slow = running.tail.follow(after=0)
        await observe(running.log, range(3))
        seen = _positions(await anext(slow))
        await observe(running.log, range(3, 40))
        await until(lambda: _is_at(running, 40), "the tail has come to the end")
        while len(seen) < 40:
            seen += _positions(await anext(slow))
        assert seen == list(range(1, 41))
        await slow.aclose()  # type: ignore[attr-defined]


async def test_follower_waits_for_absent_database(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "RECONNECT_PAUSE_SECONDS", 0.01)
    lines = Lines(database_url)
    async with running_on(database_url) as before:
        await observe(before.log, range(5))
    async with running_on(database_url, connect=lines.connect) as running:
        lines.good = 0
        async with following(running.tail) as follower:

            async def asked_in_vain() -> bool:
                return lines.good is not None and lines.good < -3

            await until(asked_in_vain, "it tries again and again")
            assert follower.seen == []
            lines.good = None
            await follower.has(5)


def test_channel_has_a_name_for_every_database() -> None:
    names = ["public", "x" * 63, "x" * 62 + "y", 'a"b', "ä" * 31, "日" * 21]
    channels = [channel_of(name) for name in names]
    assert len(set(channels)) == len(names)
    assert all(channel.isascii() and len(channel) < 64 for channel in channels)
    assert all(channel.replace("_", "").isalnum() for channel in channels)


async def _is_at(running: RunningLog, position: int) -> bool:
    return running.tail.position == position


async def _listens(running: RunningLog, listeners: int) -> bool:
    return len(await running.backends("LISTEN%")) == listeners


def _positions(events: Sequence[RecordedEvent]) -> list[int]:
    return [event.envelope.position for event in events]


@pytest.mark.usefixtures("never_polls")
async def test_end_of_log_is_known_since_own_append(running: RunningLog) -> None:
    assert running.tail.end_since(time.monotonic()) is None
    numbers = count()

    async def one_is_known() -> bool:
        asked_at = time.monotonic()
        appended = await running.log.submit(observing(key(next(numbers))))
        # Its caller may get the answer before the tail is notified.
        await until(lambda: _is_at(running, appended.position), "the tail to know of it")
        return running.tail.end_since(asked_at) == appended.position

    # The tail's own read as it begins to listen may be newer than the lock of the first.
    await until(one_is_known, "the end to be known")
    assert running.tail.end_since(time.monotonic()) is None


@pytest.mark.usefixtures("never_polls")
async def test_known_end_of_log_is_not_behind_another_process(running: RunningLog) -> None:
    async with running_on(running.url) as second_log:
        for number in range(0, 60, 2):
            result = await second_log.log.submit(observing(key(number)))
            asked_at = time.monotonic()
            await running.log.submit(observing(key(number + 1)))
            while (end := running.tail.end_since(asked_at)) is None:
                await asyncio.sleep(0)
            assert end >= result.position


FEW = 10

BACKENDS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND backend_type = 'client backend'"
)


async def test_waiters_are_woken_by_their_runs_alone(
    running: RunningLog, family: LoggedFamily
) -> None:
    for name in ("one", "two", "other"):
        await family.spawn(name)
    await until(lambda: _is_at(running, 7), "the tail has come to the end")
    wait = partial(running.tail.changed, after=7, timeout_seconds=NOT_TODAY_SECONDS)
    first, second, third = (family.id(name) for name in ("one", "two", "other"))
    waiting = [
        asyncio.create_task(wait(ours))
        for ours in ((first,), (first,), (first, second), (second, first))
    ]
    await family.resolve("other")
    assert await wait((third,))
    assert not any(task.done() for task in waiting)
    await family.resolve("two")
    assert await asyncio.gather(*waiting[2:]) == [True, True]
    assert not any(task.done() for task in waiting[:2])
    await family.resolve("one")
    assert await asyncio.gather(*waiting) == [True] * 4
    assert running.tail._recent.waited_for == frozenset()


async def test_past_event_is_not_waited_for(running: RunningLog, family: LoggedFamily) -> None:
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


async def test_waiter_for_anything_is_woken_by_anything(running: RunningLog) -> None:
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
        ("position = 4", LogGapError),
        ("position = 3, type = 'Unheard'", CorruptHistoryError),
        ("position = 3, state = 'x'::bytea", CorruptHistoryError),
        ("position = 3, type = 'SpawnRequested'", CorruptHistoryError),
    ],
)
async def test_tail_that_cannot_go_on_says_so(
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
        assert "can no longer be followed" in await follower.is_told()
        assert follower.positions == [1, 2]
        assert running.tail.position == 2


@pytest.mark.server
async def test_ten_thousand_waiters_cost_one_listener(
    running: RunningLog, family: LoggedFamily
) -> None:
    await family.spawn("mine")
    await until(lambda: _is_at(running, 3), "the tail has come to the end")
    async with running_on(running.url) as second_log:

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
        elsewhere = LoggedFamily(second_log.log, root="agent:main:elsewhere", first=900)
        await elsewhere.spawn("stranger")
        assert all(await asyncio.gather(*waiting[5_000:]))
        assert not any(task.done() for task in waiting[:5_000])
        await family.resolve("mine")
        assert all(await asyncio.gather(*waiting[:5_000]))


async def test_log_that_went_back_is_not_followed(running: RunningLog) -> None:
    output: list[str] = []
    running.log.end_with(output.append)
    await observe(running.log, range(3))
    waiting = asyncio.create_task(
        running.tail.changed((), after=3, timeout_seconds=NOT_TODAY_SECONDS)
    )
    await running.ask("DELETE FROM events WHERE position = 3; UPDATE log_head SET position = 2")
    with pytest.raises(LogUnavailableError, match="can no longer be followed"):
        await waiting
    assert isinstance(running.tail.failure, LogRewoundError)
    (why,) = output
    assert "ends at 2" in why
    with pytest.raises(LogUnavailableError):
        await running.tail.changed((), after=0, timeout_seconds=NOT_TODAY_SECONDS)
    with pytest.raises(LogUnavailableError):
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

    async def both_wait() -> bool:
        return len(running.tail._recent.waited_for) == 2

    await until(both_wait, "both wait")
    stopped.set_result(None)
    assert await asyncio.gather(*waiting) == [False, False]
    assert running.tail._recent.waited_for == frozenset()
