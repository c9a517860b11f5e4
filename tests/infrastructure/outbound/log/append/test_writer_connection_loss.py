"""However a connection is lost, a submission is recorded once, and its caller gets the answer."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import count
from typing import Any

import psycopg
import pytest

from application.log.event_log import (
    Decision,
    DecisionContext,
    LogUnavailableError,
    Reservation,
    StoredAnswer,
)
from domain.values.refusals import Rejected
from infrastructure.outbound.log.append import tenure, writer
from infrastructure.outbound.log.schema.append_lock import LOCK, LOCK_KEY
from infrastructure.outbound.log.schema.connections import LogConnection
from tests.support.builders.submissions import (
    at_once,
    failing_with,
    key,
    observe,
    observing,
    seen,
    stalling,
    submission,
)
from tests.support.faults.held_commits import Lines, held_commits
from tests.support.servers.running_log import RunningLog, running_on
from tests.support.waiting import until, wait_for

COUNTED_MAX = 9


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "RECONNECT_PAUSE_SECONDS", 0.01)


class Counting:
    """A command that records one more session each time it is decided."""

    def __init__(self) -> None:
        self.asked = 0
        streams = [f"session:{key(number)}" for number in range(COUNTED_MAX)]
        self.submission = submission(self._decide, *streams)

    def _decide(self, world: DecisionContext) -> Decision[int]:
        self.asked += 1
        number = len(world.sessions)
        return Decision(number, [seen(key(number))])


async def comes_back(running: RunningLog, task: "asyncio.Task[Any]") -> None:
    async def waits_for_the_lock() -> bool:
        return task.done() or len(await running.writers()) == 2

    await until(waits_for_the_lock, "the writer has come back and waits for the lock")


async def test_transaction_ended_before_commit_is_decided_again(running: RunningLog) -> None:
    counting = Counting()
    async with held_commits(running.url) as commits:
        task = asyncio.create_task(running.log.submit(counting.submission))
        await commits.terminate(await commits.held())
        await commits.held()
        await commits.release()
        assert (await task).result == 0
    assert counting.asked == 2
    assert len(await running.events()) == 1


async def test_commit_of_lost_connection_is_not_repeated(database_url: str) -> None:
    lines, counting = Lines(database_url), Counting()
    async with running_on(database_url, connect=lines.connect) as running:
        async with held_commits(database_url) as commits:
            task = asyncio.create_task(running.log.submit(counting.submission))
            lines.cut(await commits.held())
            await comes_back(running, task)
            await commits.release()
            appended = await task
        assert (appended.result, appended.position, counting.asked) == (0, 1, 1)
        assert len(await running.events()) == 1
        await observe(running.log, ["next"])


@asynccontextmanager
async def after_a_long_outage(database_url: str) -> AsyncIterator[tuple[Lines, RunningLog]]:
    """Yield a log whose database is back after an outage longer than any wait."""
    lines = Lines(database_url)
    async with running_on(database_url, connect=lines.connect) as running:
        lines.good = 0
        for pid in await running.backends("%"):
            await running.end(pid)
        since = time.monotonic()
        with pytest.raises(LogUnavailableError):
            await observe(running.log, ["while it is away"])

        async def is_long_ago() -> bool:
            return time.monotonic() - since > 3 * writer.RECONNECT_SECONDS_MAX

        await until(is_long_ago, "the database was away")
        lines.good = None
        yield lines, running


async def test_commit_is_looked_for_after_long_outage(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RECONNECT_SECONDS_MAX", 0.2)
    counting = Counting()
    async with after_a_long_outage(database_url) as (lines, running):
        async with held_commits(database_url) as commits:
            task = asyncio.create_task(running.log.submit(counting.submission))
            lines.cut(await commits.held())
            await comes_back(running, task)
            await commits.release()
            assert (await task).position == 1
        assert counting.asked == 1


async def test_outage_is_over_after_any_answer(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RECONNECT_SECONDS_MAX", 0.2)
    async with after_a_long_outage(database_url) as (_, running):
        with pytest.raises(Rejected):
            await running.log.submit(failing_with(Rejected("no")))
        for pid in await running.backends("%"):
            await running.end(pid)
        await observe(running.log, ["by another connection"])
        assert len(await running.events()) == 1


@pytest.mark.parametrize("with_events", [True, False])
async def test_unconfirmed_commit_is_found_again(database_url: str, with_events: bool) -> None:
    lines, times = Lines(database_url), count(1)

    def decide(_: DecisionContext) -> Decision[int]:
        number = next(times)
        changes = [seen(key(number))] if with_events else []
        return Decision(number, changes, answer=StoredAnswer("accepted", {}))

    asking = submission(decide, reservation=Reservation("admin", "POST", "/", "key", b"body"))
    async with running_on(database_url, connect=lines.connect) as running:
        async with held_commits(database_url) as commits:
            task = asyncio.create_task(running.log.submit(asking))
            held = await commits.held()
            lines.free.clear()
            lines.cut(held)
            await commits.release()
            await until(lambda: commits.is_gone(held), "the commit is done")
            lines.free.set()
            assert (await task).result == 1
        assert next(times) == 2
        assert len(await running.events()) == with_events
        assert await running.ask("SELECT count(*) FROM idempotency") == [(1,)]


async def test_callers_are_told_of_absent_database(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RECONNECT_SECONDS_MAX", 0.3)
    lines = Lines(database_url)
    async with running_on(database_url, connect=lines.connect) as running:
        await observe(running.log, ["before"])
        lines.good = 0
        for pid in await running.backends("%"):
            await running.end(pid)
        answers = await at_once(running.log, *(observing(key(number)) for number in range(3)))
        assert [type(answer) for answer in answers] == [LogUnavailableError] * 3
        assert str(answers[0]) == "the database is unavailable; retry in a moment"
        lines.good = None
        await observe(running.log, ["after"])
        assert len(await running.events()) == 2


@pytest.mark.kill
async def test_slow_decision_is_made_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenure, "FROZEN_MILLISECONDS_MAX", 50)
    async with running_on(database_url) as running:
        appended = await running.log.submit(stalling(0.3, key("slow")))
        assert appended.result == 2
        assert len(await running.events()) == 1


SENDING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'ClientWrite'"


@pytest.mark.kill
async def test_holder_that_reads_no_answer_is_ended(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a server, the wait for the lock outlasts the time limit of a reconnection.
    monkeypatch.setattr(writer, "RECONNECT_SECONDS_MAX", 0.1)
    monkeypatch.setattr(tenure, "FROZEN_MILLISECONDS_MAX", 50)
    lines = Lines(database_url, "lock_timeout = '200ms'")
    with (
        closing(psycopg.connect(database_url, autocommit=True)) as frozen,
        closing(psycopg.connect(database_url, autocommit=True)) as looking,
    ):
        frozen.execute(f"SELECT pg_advisory_lock({LOCK_KEY})")
        frozen.pgconn.send_query(b"SELECT repeat('x', 100000000)")
        wait_for("the answer to be on its way", lambda: looking.execute(SENDING).fetchone())
        async with running_on(database_url, connect=lines.connect) as running:
            assert (await running.log.submit(observing(key("patient")))).position == 1


@pytest.mark.kill
async def test_foreign_lock_is_waited_for(database_url: str, connection: LogConnection) -> None:
    lines = Lines(database_url, "lock_timeout = '30ms'")
    async with running_on(database_url, connect=lines.connect) as running:
        async with connection.transaction():
            await connection.execute(LOCK)
            task = asyncio.create_task(running.log.submit(observing(key("patient"))))
            await asyncio.wait({task}, timeout=0.3)
            assert not task.done()
        assert (await task).position == 1
