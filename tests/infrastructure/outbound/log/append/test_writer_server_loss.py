"""The database server itself is killed while the log is written."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest

from application.log.envelope import RecordedEvent
from application.log.event_log import LogUnavailable
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.log.append import writer
from infrastructure.outbound.log.read import tail
from infrastructure.outbound.log.schema.migrate import migrate
from infrastructure.server.database import Database, DatabaseConnector
from tests.support.builders.submissions import key, observing
from tests.support.faults.held_commits import until
from tests.support.servers.databases import temporary_home
from tests.support.servers.embedded_servers import kill, postmaster_of, server_is_gone, wait_until
from tests.support.servers.running_log import RunningLog, running_on

KILLS = 3
WORKERS = 12
ANSWERS_MIN = 20

pytestmark = pytest.mark.kill


@asynccontextmanager
async def a_log_of_its_own(home: Path) -> AsyncIterator[RunningLog]:
    """A log on a server that is started again when it is gone, as a spawnlog server does it."""
    with closing(EmbeddedPostgres.start(home)) as server:
        migrate(server.conninfo)
        database = Database(server.conninfo, server.ensure_running, server.close)
        connecting = DatabaseConnector(database)
        async with running_on(server.conninfo, connect=connecting.connect) as running:
            yield running
    wait_until(lambda: server_is_gone(home), "the server has stopped")


class Workers:
    """Callers that ask for one record after the other until they are told to stop."""

    def __init__(self, running: RunningLog) -> None:
        self._running = running
        self._stop = asyncio.Event()
        self.told: dict[str, int] = {}
        self.untold: set[str] = set()
        self._tasks = [asyncio.create_task(self._work(number)) for number in range(WORKERS)]

    async def _work(self, worker: int) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            stream = f"session:{key(f'{worker}-{number}')}"
            try:
                appended = await self._running.log.submit(observing(key(f"{worker}-{number}")))
                self.told[stream] = appended.position
            except LogUnavailable:
                self.untold.add(stream)
                await asyncio.sleep(0)

    async def more_answers(self) -> None:
        """Wait until the log is at work again."""
        enough = len(self.told) + ANSWERS_MIN

        async def answered() -> bool:
            for task in self._tasks:
                if task.done():
                    task.result()
            return len(self.told) >= enough

        await until(answered, "callers are answered", seconds=30)

    async def stop(self) -> None:
        """Let everybody hear the answer to its last question."""
        self._stop.set()
        await asyncio.gather(*self._tasks)


async def test_a_server_that_is_killed_loses_nothing_it_has_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer, "RECONNECT_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(tail, "RECONNECT_PAUSE_SECONDS", 0.02)
    with temporary_home() as home:
        async with a_log_of_its_own(home) as running:
            workers = Workers(running)
            try:
                for _ in range(KILLS):
                    await workers.more_answers()
                    await _kill_the_server(home)
                await workers.more_answers()
            finally:
                await workers.stop()
            recorded = {
                one.envelope.stream: one.envelope.position for one in await _events(running)
            }
            for stream, position in workers.told.items():
                assert recorded[stream] == position
            assert set(recorded) <= workers.told.keys() | workers.untold
            head = max(recorded.values())
            assert len(recorded) == head

            async def tail_has_it_all() -> bool:
                return running.tail.position == head

            await until(tail_has_it_all, "the tail has come to the end")
            assert running.tail.failure is None


async def _kill_the_server(home: Path) -> None:
    """kill -9, and wait until another one has come in its place: a server process that is busy
    answers for a moment after its postmaster is gone."""
    killed = postmaster_of(home)
    kill(killed)

    async def another_one() -> bool:
        with suppress(FileNotFoundError, ValueError):
            return postmaster_of(home) != killed
        return False

    await until(another_one, "the server is started again", seconds=30)


async def _events(running: RunningLog) -> Sequence[RecordedEvent]:
    """Everything; connections of the pool that died with the server are found out one by one."""
    for _ in range(20):
        try:
            return await running.events()
        except LogUnavailable:
            continue
    return await running.events()
