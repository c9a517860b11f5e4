"""A rebuild while others read and write, without long waits."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from application.projections.fold import FOREVER
from infrastructure.outbound.log.rebuild import build, fold_part, swap
from infrastructure.outbound.log.rebuild.rebuild import (
    RebuildCounts,
    RebuildInProgressError,
    rebuild,
)
from infrastructure.outbound.log.rebuild.swap import TableSwapError
from infrastructure.outbound.log.schema.connections import LogConnection, open_connection
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.submissions import key, observe, observing
from tests.support.servers.rebuilds import catalog, held_table
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import nightly_but
from tests.support.waiting import until

WAIT_SECONDS_MAX = 3.0
"""Generous, because two cores are shared with all other tests."""
WRITERS = 4
STATE_OF = f"SELECT version, stage FROM runs WHERE run_id = %s AND to_position = {FOREVER}"


class Witness:
    """Caller that lives one life after the other and reads each promised state, until it is
    stopped.
    """

    def __init__(self, running: RunningLog, number: int) -> None:
        self._family = LoggedFamily(
            running.log, root=f"agent:main:witness{number}", first=1_000 * (number + 1)
        )
        self._url = running.url
        self.stop = asyncio.Event()
        self.lives = 0
        self.slowest = 0.0

    async def live_on(self) -> None:
        async with await open_connection(self._url, application="test") as reading:
            while not self.stop.is_set():
                name = f"life {self.lives}"
                for step in (self._family.begin, self._family.end, self._family.announce):
                    began = time.monotonic()
                    await step(name)
                    await self._reads(reading, name)
                    self.slowest = max(self.slowest, time.monotonic() - began)
                self.lives += 1

    async def _reads(self, reading: LogConnection, name: str) -> None:
        run = self._family.run(name)
        found = await reading.execute(STATE_OF, [run.run_id], prepare=True)
        assert await found.fetchall() == [(run.version, run.stage)]


@pytest.mark.server
@pytest.mark.parametrize(
    "processes_from", nightly_but([0, 10**9], [10**9]), ids=["processes", "one process"]
)
@pytest.mark.told("everything")
async def test_readers_and_writers_notice_nothing(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch, processes_from: int
) -> None:
    monkeypatch.setattr(fold_part, "PAGE_EVENTS", 200)
    witnesses = [Witness(running, number) for number in range(WRITERS)]
    async with asyncio.TaskGroup() as group:
        for witness in witnesses:
            group.create_task(witness.live_on())

        async def all_have_lived() -> bool:
            return all(witness.lives > 1 for witness in witnesses)

        await until(all_have_lived, "everybody is at work")
        monkeypatch.setattr(build, "PROCESSES_FROM_EVENTS", processes_from)
        before = min(witness.lives for witness in witnesses)
        assert (await rebuild(running.url)).differing == 0
        assert min(witness.lives for witness in witnesses) > before
        for witness in witnesses:
            witness.stop.set()
    assert max(witness.slowest for witness in witnesses) < WAIT_SECONDS_MAX
    assert len(await running.events()) == await running.log.head()
    assert (await rebuild(running.url)).differing == 0


WAITING = "SELECT 1 FROM pg_locks WHERE mode = %s AND NOT granted AND relation = 'runs'::regclass"


async def waits_for_runs(running: RunningLog, mode: str = "AccessExclusiveLock") -> None:
    async def waits() -> bool:
        return bool(await running.ask(WAITING, mode))

    await until(waits, "the exchange waits")


@asynccontextmanager
async def held_back(running: RunningLog) -> AsyncIterator["asyncio.Task[RebuildCounts]"]:
    """Yield a rebuild that has done everything except the swap, because of a reader."""
    async with held_table(running.url, "runs"):
        rebuilding = asyncio.create_task(rebuild(running.url))
        await waits_for_runs(running)
        yield rebuilding


@pytest.mark.server
async def test_long_reader_stops_neither_writers_nor_rebuild(running: RunningLog) -> None:
    await observe(running.log, range(5))
    async with held_back(running) as rebuilding:
        slowest = 0.0
        for number in range(200):
            began = time.monotonic()
            await running.log.submit(observing(key(f"later {number}")))
            slowest = max(slowest, time.monotonic() - began)
        assert not rebuilding.done()
    assert slowest < WAIT_SECONDS_MAX
    rebuilt = await rebuilding
    assert (rebuilt.events, rebuilt.differing) == (205, 0)
    assert await running.ask("SELECT count(*) FROM sessions") == [(205,)]
    assert (await rebuild(running.url)).differing == 0


@pytest.mark.server
async def test_writers_do_not_wait_for_vacuum(running: RunningLog) -> None:
    async def nobody_holds_the_lock() -> bool:
        return await running.writers() == []

    await observe(running.log, range(5))
    async with held_table(running.url, "runs", "SHARE UPDATE EXCLUSIVE"):
        rebuilding = asyncio.create_task(rebuild(running.url))
        await waits_for_runs(running, "ShareUpdateExclusiveLock")
        await observe(running.log, ["meanwhile"])
        await waits_for_runs(running, "ShareUpdateExclusiveLock")
        await until(nobody_holds_the_lock, "the writer has given the lock up")
    assert (await rebuilding).events == 6


@pytest.mark.server
async def test_many_events_are_folded_before_the_lock(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swap, "NEAR_EVENTS", 2)
    monkeypatch.setattr(swap, "BEHIND_EVENTS_MAX", 2)
    async with held_back(running) as rebuilding:
        await observe(running.log, range(50))
    rebuilt = await rebuilding
    assert (rebuilt.events, rebuilt.differing) == (50, 0)


async def test_second_rebuild_at_once_is_refused(running: RunningLog) -> None:
    await observe(running.log, range(5))
    async with held_back(running) as rebuilding:
        with pytest.raises(
            RebuildInProgressError, match="another process is already rebuilding this log"
        ):
            await rebuild(running.url)
    assert (await rebuilding).differing == 0


async def test_log_that_grows_too_fast_is_told(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swap, "NEAR_EVENTS", -1)
    monkeypatch.setattr(swap, "BEHIND_EVENTS_MAX", -1)
    await observe(running.log, range(5))
    before = await catalog(running)
    with pytest.raises(TableSwapError, match="grows faster than its rows can be rebuilt"):
        await rebuild(running.url)
    monkeypatch.undo()
    assert (await rebuild(running.url)).differing == 0
    assert await catalog(running) == before


async def test_reader_that_never_ends_is_told(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swap, "ATTEMPTS_MAX", 2)
    monkeypatch.setattr(swap, "PAUSE_SECONDS", 0.01)
    await observe(running.log, range(5))
    async with held_table(running.url, "sessions"):
        with pytest.raises(TableSwapError, match="end the long queries"):
            await rebuild(running.url)
        await observe(running.log, ["next"])
    assert (await rebuild(running.url)).events == 6


@pytest.mark.server
async def test_row_written_wrongly_meanwhile_is_mended(running: RunningLog) -> None:
    family = LoggedFamily(running.log)
    await family.begin("scout")
    async with held_back(running) as rebuilding:
        await running.ask(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN NEW.label = 'spoilt'; RETURN NEW; END $$;"
            " CREATE TRIGGER spoil BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION spoil()"
        )
        await family.end("scout")
    assert (await rebuilding).differing == 2
    assert await running.ask("SELECT 1 FROM runs WHERE label = 'spoilt'") == []
    assert (await rebuild(running.url)).differing == 0
