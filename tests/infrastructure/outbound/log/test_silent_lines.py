"""A database that acknowledges and never answers costs one deadline, and no submission is lost."""

import asyncio
import time
from collections.abc import AsyncIterator

import psycopg
import pytest

from application.log.event_log import Decision, DecisionContext, LogUnavailableError
from infrastructure.outbound.log.append import writer
from infrastructure.outbound.log.append.writer import BATCH_SUBMISSIONS_MAX
from infrastructure.outbound.log.read import tail
from infrastructure.outbound.log.schema.connections import (
    LIMITS,
    LogConnection,
    Silences,
    borrow_connection,
    open_connection,
    open_pool,
    open_sync_connection,
)
from infrastructure.server.database import check_alive
from tests.support.builders.submissions import key, observe, observing, submission
from tests.support.faults.silent_line import SilentLine, silent_line
from tests.support.servers.running_log import RunningLog, running_on

ANSWER_SECONDS_MAX = 0.5
POOL_ANSWER_SECONDS_MAX = 2.0
"""More than the time to open three connections."""
ENDED_SECONDS_MAX = 10.0


@pytest.fixture
async def line(database_url: str) -> AsyncIterator[SilentLine]:
    async with silent_line(database_url) as line:
        yield line


@pytest.fixture
async def running(line: SilentLine, database_url: str) -> AsyncIterator[RunningLog]:
    """Yield a log that writes and follows over the line, with reads past it."""
    silences = Silences()

    async def connect() -> LogConnection:
        return await open_connection(
            line.url, application="test", answer_seconds_max=ANSWER_SECONDS_MAX, silences=silences
        )

    async with running_on(database_url, connect=connect) as running:
        yield running


@pytest.mark.parametrize("loses_answers_only", [False, True])
async def test_append_on_dead_line_is_recorded_once(
    line: SilentLine, running: RunningLog, loses_answers_only: bool
) -> None:
    await observe(running.log, [key(1)])
    line.fall_silent(loses_answers_only=loses_answers_only)
    async with asyncio.timeout(ENDED_SECONDS_MAX):
        appended = await running.log.submit(observing(key(2)))
    assert appended.position == 2
    assert len(await running.events()) == 2


async def test_append_is_refused_while_nobody_answers(
    line: SilentLine, running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RECONNECT_SECONDS_MAX", 0.2)
    monkeypatch.setattr("infrastructure.outbound.log.schema.connections.CONNECT_SECONDS_MAX", 0.5)
    line.fall_silent(takes_new=False)
    async with asyncio.timeout(ENDED_SECONDS_MAX):
        with pytest.raises(LogUnavailableError, match="retry in a moment"):
            await running.log.submit(observing(key(1)))
        with pytest.raises(LogUnavailableError):
            await running.log.require_answering_writer()
    line.takes_new = True
    async with asyncio.timeout(ENDED_SECONDS_MAX):
        await running.log.require_answering_writer()
        assert (await running.log.submit(observing(key(1)))).position == 1


async def test_commit_of_other_batch_answers_for_writer(running: RunningLog) -> None:
    probes: list[asyncio.Task[None]] = []
    ended: list[bool] = []

    def decide(_: DecisionContext) -> Decision[None]:
        ended.append(probes[0].done())
        return Decision(None)

    earlier = [running.log.submit(submission(decide)) for _ in range(3 * BATCH_SUBMISSIONS_MAX)]
    queued = [asyncio.create_task(item) for item in earlier]
    probes.append(asyncio.create_task(running.log.require_answering_writer()))
    await asyncio.gather(*queued, *probes)
    assert not ended[0]
    assert ended[-1]


async def test_tail_and_listener_leave_dead_line(
    line: SilentLine, running: RunningLog, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "LISTEN_SECONDS", 0.2)
    line.fall_silent()
    async with running_on(database_url) as second_log:
        await observe(second_log.log, [key(1)])
        async with asyncio.timeout(ENDED_SECONDS_MAX):
            assert await running.tail.changed((), after=0, timeout_seconds=ENDED_SECONDS_MAX)


async def test_pool_replaces_connections_after_one_was_silent(line: SilentLine) -> None:
    pool = await open_pool(
        line.url,
        application="test",
        least=3,
        most=3,
        wait_seconds=ENDED_SECONDS_MAX,
        settings=LIMITS,
        answer_seconds_max=POOL_ANSWER_SECONDS_MAX,
        check=check_alive,
    )
    try:
        line.fall_silent()
        with pytest.raises(LogUnavailableError):
            async with borrow_connection(pool) as connection:
                await connection.execute("SELECT 1")
        began = time.monotonic()
        for _ in range(3):
            async with borrow_connection(pool) as connection:
                await connection.execute("SELECT 1")
        assert time.monotonic() - began < POOL_ANSWER_SECONDS_MAX
    finally:
        await pool.close()


async def test_blocking_connection_has_deadline(line: SilentLine) -> None:
    connection = await asyncio.to_thread(
        lambda: open_sync_connection(
            line.url, application="test", answer_seconds_max=ANSWER_SECONDS_MAX
        )
    )
    line.fall_silent()
    with pytest.raises(psycopg.OperationalError, match="did not answer within"):
        await asyncio.to_thread(connection.execute, "SELECT 1")
    assert connection.closed
