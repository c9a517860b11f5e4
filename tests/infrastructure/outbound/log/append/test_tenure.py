"""A writer holds the append lock across batches, and its cache equals the record."""

import asyncio
import time
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from application.log.event_log import Appended, Decision, StagedFile, Submission
from domain.values.record import session_stream
from infrastructure.outbound.log.append import tenure, writer
from infrastructure.outbound.log.append.ledger import UNSEEN_MIN
from infrastructure.outbound.log.schema.connections import LogConnection
from tests.support.builders.submissions import (
    SeenBefore,
    at_once,
    key,
    observe,
    observing,
    seen,
    submission,
)
from tests.support.faults.held_commits import held_commits
from tests.support.servers.running_log import RunningLog
from tests.support.waiting import until

FOR_EVER_SECONDS = 3_600.0
READ_LATE = timedelta(milliseconds=50)


@pytest.fixture(autouse=True)
def _for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenure, "TENURE_SECONDS_MAX", FOR_EVER_SECONDS)
    monkeypatch.setattr(writer, "IDLE_SECONDS_MAX", FOR_EVER_SECONDS)


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Count the waits for each backend, by process id."""
    counts: Counter[int] = Counter()
    wait = LogConnection.wait

    async def counted(self: LogConnection, *values: Any, **more: Any) -> Any:
        counts[self.info.backend_pid] += 1
        return await wait(self, *values, **more)

    monkeypatch.setattr(LogConnection, "wait", counted)
    return counts


def observing_unseen(number: int | str) -> Submission[tuple[str, ...]]:
    """Return a submission about a session that the process has not cached."""
    return observing(key(number), unseen=[key(number)])


async def observe_unseen(running: RunningLog) -> None:
    """Record a session and evict it, then record `UNSEEN_MIN` new ones, so that the next one is
    assumed new."""
    await observe(running.log, ["forgotten"])
    running.log.remembered.sessions.forget()
    for number in range(UNSEEN_MIN):
        await running.log.submit(observing_unseen(number))


async def known(running: RunningLog, number: int | str, **more: Any) -> int:
    """Return the number of sessions of this key, as a decision sees it."""
    stream = session_stream(key(number))
    request = submission(lambda world: Decision(len(world.sessions)), stream, **more)
    result: Appended[int] = await running.log.submit(request)
    return result.result


async def test_batch_of_a_holder_is_one_statement(
    running: RunningLog, round_trips: Counter[int]
) -> None:
    assert [await known(running, number) for number in range(10)] == [0] * 10
    (holder,) = await running.writers()
    before = round_trips[holder]
    await observe(running.log, range(10))
    assert round_trips[holder] == before + 10
    assert [await known(running, number) for number in range(10)] == [1] * 10
    # A decision without events takes one round trip, which checks that the lock was never lost.
    assert round_trips[holder] == before + 20


async def test_lock_taken_back_alone_needs_no_reading(
    running: RunningLog, round_trips: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenure, "ASKED_SECONDS", 0.0)
    await observe(running.log, ["known"])
    (holder,) = await running.writers()
    running.tail.on_give_up()

    async def is_free() -> bool:
        return await running.writers() == []

    await until(is_free, "the lock is free")
    before = round_trips[holder]
    with pytest.raises(SeenBefore):
        await observe(running.log, ["known"])
    assert round_trips[holder] == before + 2


async def database_time(running: RunningLog) -> datetime:
    ((clock_time,),) = await running.ask("SELECT clock_timestamp()")
    assert isinstance(clock_time, datetime)
    return clock_time


async def time_passes(running: RunningLog, by: timedelta) -> None:
    end = await database_time(running) + by

    async def has_passed() -> bool:
        return await database_time(running) >= end

    await until(has_passed, "time passes")


async def test_event_is_not_recorded_before_an_earlier_one(running: RunningLog) -> None:
    await observe(running.log, ["first"])
    asked_at = time.monotonic()
    result = await database_time(running)
    # The answer is read late.
    await time_passes(running, READ_LATE)
    stored_at = await database_time(running)
    running.tail.clock.note(result, asked_at=asked_at)
    await observe(running.log, ["second"])
    assert (await running.events())[-1].envelope.recorded_at >= stored_at


async def test_clock_is_not_ahead_by_the_wait_for_the_lock(running: RunningLog) -> None:
    give_up, running.tail.on_give_up = running.tail.on_give_up, lambda: None
    await observe(running.log, ["holder"])
    async with running.other() as second_log:
        result = await database_time(running)
        # Its estimate of the database's clock is an hour late, as after a failover.
        second_log.tail.clock.note(result - timedelta(hours=1), asked_at=time.monotonic())
        task = asyncio.create_task(observe(second_log.log, ["asker"]))
        await time_passes(running, 10 * READ_LATE)
        give_up()
        await task
        ahead = second_log.tail.clock.reckoned() - await database_time(running)
    assert ahead < 5 * READ_LATE


async def test_lock_goes_to_another_process_that_asks_for_it(running: RunningLog) -> None:
    async with running.other() as second_log:
        for number in range(6):
            await observe((running, second_log)[number % 2].log, [number])
        for item in (running, second_log):
            assert [await known(item, number) for number in range(7)] == [1] * 6 + [0]


async def test_asked_holder_gives_lock_up_until_asker_waits(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenure, "ASKED_SECONDS", FOR_EVER_SECONDS)
    given_up, may_wait = 0, asyncio.Event()
    execute = LogConnection.execute

    async def executed(self: LogConnection, query: Any, *values: Any, **more: Any) -> Any:
        nonlocal given_up
        if str(query).startswith("SELECT pg_advisory_lock("):
            await may_wait.wait()
        given_up += str(query).startswith("SELECT pg_advisory_unlock(")
        return await execute(self, query, *values, **more)

    monkeypatch.setattr(LogConnection, "execute", executed)
    await observe(running.log, ["holder"])
    async with running.other() as second_log:
        task = asyncio.create_task(observe(second_log.log, ["asker"]))
        number = 0
        async with asyncio.timeout(30):
            while not task.done():
                number += 1
                await observe(running.log, [number])
                if given_up:
                    may_wait.set()
        await task


async def test_holder_gives_lock_up_in_time_unasked(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenure, "TENURE_SECONDS_MAX", 0.05)
    running.tail.on_give_up = lambda: None
    async with running.other() as second_log:
        task = asyncio.create_task(observe(second_log.log, ["another"]))
        number = 0
        while not task.done():
            number += 1
            await observe(running.log, [number])
        await task


async def test_database_ends_session_of_silent_holder(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenure, "FROZEN_MILLISECONDS_MAX", 50)
    running.tail.on_give_up = lambda: None
    await observe(running.log, ["before"])
    async with running.other() as second_log:
        await observe(second_log.log, ["another"])
    assert await known(running, "another") == 1


@pytest.mark.parametrize("is_transaction", [False, True], ids=["a statement", "a transaction"])
async def test_session_is_not_ended_while_its_commit_waits(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch, is_transaction: bool
) -> None:
    monkeypatch.setattr(tenure, "FROZEN_MILLISECONDS_MAX", 50)
    staged = [StagedFile(uuid7(), 0, b"a file")] if is_transaction else []
    slow = submission(lambda _: Decision(None, [seen(key("slow"))], staged=staged))
    async with running.other() as second_log, held_commits(running.url) as commits:
        slowly = asyncio.create_task(running.log.submit(slow))
        holder = await commits.held()
        waiting = asyncio.create_task(observe(second_log.log, ["behind"]))

        async def is_late() -> bool:
            (row,) = await running.ask(
                "SELECT clock_timestamp() - state_change > interval '500 ms'"
                " FROM pg_stat_activity WHERE pid = %s",
                holder,
            )
            return bool(row[0])

        await until(is_late, "the commit is late")
        assert await commits.waiting() == [holder]
        await commits.release()
        assert (await slowly).position == 1
        assert (await waiting)[0].position == 2


async def test_events_of_another_process_are_read(running: RunningLog) -> None:
    assert await known(running, "new") == 0
    async with running.other() as second_log:
        await observe(second_log.log, ["new"])
    assert await known(running, "new") == 1


async def test_holder_without_session_answers_nothing(running: RunningLog) -> None:
    assert await known(running, "new") == 0
    async with running.other() as second_log:
        (holder,) = await running.writers()
        assert await running.end(holder)
        await observe(second_log.log, ["new"])
        assert await known(running, "new") == 1


async def test_wrong_guess_is_decided_again(running: RunningLog) -> None:
    async with running.other() as second_log:
        await observe(second_log.log, ["there"])
    minted = (session_stream(key("there")),)
    wrong = observing(key("there"), minted=minted)
    first, second = await at_once(running.log, wrong, observing(key("beside")))
    assert isinstance(first, SeenBefore)
    assert second.position == 2


async def test_unseen_session_is_not_read_after_many(
    running: RunningLog, round_trips: Counter[int]
) -> None:
    await observe_unseen(running)
    (holder,) = await running.writers()
    before = round_trips[holder]
    await running.log.submit(observing_unseen("new"))
    assert round_trips[holder] == before + 1
    forgotten, beside = observing_unseen("forgotten"), observing_unseen("beside")
    first, second = await at_once(running.log, forgotten, beside)
    assert isinstance(first, SeenBefore)
    assert second.position == UNSEEN_MIN + 3
    # The lock was kept. After one session that was on record, the next ones are read.
    assert await running.writers() == [holder]
    before = round_trips[holder]
    await running.log.submit(observing_unseen("next"))
    assert round_trips[holder] == before + 2


async def test_unseen_session_not_begun_is_read(running: RunningLog) -> None:
    await observe_unseen(running)
    assert await known(running, "forgotten", unseen=[key("forgotten")]) == 1


async def test_others_are_notified_only_if_there_are_any(
    running: RunningLog, round_trips: Counter[int]
) -> None:
    async with running.other() as second_log:

        async def both_listen() -> bool:
            return len(await running.backends("LISTEN%")) == 2

        await until(both_listen, "both processes listen")
        await observe(second_log.log, ["first"])
        (holder,) = await second_log.writers()
        before = round_trips[holder]
        appended = (await observe(second_log.log, ["second"]))[0]
        assert await running.tail.changed((), after=appended.position - 1, timeout_seconds=5)

        async def is_said() -> bool:
            # One read, one write, and one notification of the other process.
            return round_trips[holder] == before + 3

        await until(is_said, "the other process is told")
