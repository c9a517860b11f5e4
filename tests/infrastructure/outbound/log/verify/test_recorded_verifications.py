"""Recorded verifications: their results, and one at a time."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from application.log.event_log import LogUnavailableError
from application.ports.verifications import VERIFICATIONS_MAX
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.process import WorkerProcess
from infrastructure.outbound.log.verify import record, service, verify
from infrastructure.outbound.log.verify.processes import VerificationStoppedError
from infrastructure.outbound.log.verify.record import (
    VerificationStopRequestedError,
    VerifyingProcess,
    run_recorded_verification,
)
from infrastructure.outbound.log.verify.service import NICENESS, ServedVerifications
from infrastructure.outbound.log.verify.verify import Verification, VerifyOrder
from tests.support.servers.running_log import RunningLog
from tests.support.waiting import until

pytestmark = pytest.mark.told("all")
COMMAND = VerifyingProcess.here("system", "command")
Verify = Callable[..., Awaitable[tuple[Verification, bool]]]


@pytest.fixture
async def served(running: RunningLog, tmp_path: Path) -> AsyncIterator[ServedVerifications]:
    made = ServedVerifications(running.pool, lambda: running.url, tmp_path / "state.json")
    yield made
    await made.close()


@pytest.fixture
def verified(running: RunningLog, tmp_path: Path) -> Verify:
    async def run(
        url: str = running.url, by: VerifyingProcess = COMMAND, **more: Any
    ) -> tuple[Verification, bool]:
        order = VerifyOrder(state_file=tmp_path / "state.json", **more)
        return await asyncio.to_thread(run_recorded_verification, url, order, by)

    return run


@pytest.fixture
def noted_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many ranges, and a note at each."""
    monkeypatch.setattr(verify, "RANGE_EVENTS_MAX", 30)
    monkeypatch.setattr(record, "NOTE_SECONDS", 0.0)


async def test_result_is_on_record(served: ServedVerifications, verified: Verify) -> None:
    assert await served.latest() == ()
    found, is_recorded = await verified()
    (latest,) = await served.latest()
    assert is_recorded
    assert (latest.state, latest.began, latest.checked) == ("right", 0, found.head.position)
    assert (latest.last, latest.head_hash) == (found.head.position, found.head.chain_hash)
    assert latest.head_hash == await served.chain_hash_at(found.head.position)
    for name in ("run_rows", "session_rows", "contents", "transcripts", "erased"):
        assert getattr(latest, name) == getattr(found.checked.counts, name), name
    assert (latest.started_by, latest.origin, latest.difference) == ("system", "command", None)
    assert latest.ended_at is not None
    assert latest.started_at < latest.noted_at <= latest.ended_at


async def test_first_difference_is_on_record(
    running: RunningLog, served: ServedVerifications, verified: Verify
) -> None:
    await running.ask("UPDATE events SET state = state || 'x' WHERE position = 9")
    found, _ = await verified()
    assert found.difference is not None
    (latest,) = await served.latest()
    assert latest.difference is not None
    assert (latest.state, latest.difference.position) == ("different", 9)
    assert latest.difference.kind == found.difference.kind
    assert latest.difference.text == found.difference.text


async def test_verification_without_its_connection_was_broken_off(
    running: RunningLog, served: ServedVerifications, verified: Verify, noted_always: None
) -> None:
    def lose(_began: int, position: int, _last: int) -> None:
        if position > 0:
            with psycopg.connect(running.url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND application_name LIKE '%verify record'"
                )

    with pytest.raises(VerificationStoppedError):
        await verified(on_progress=lose)
    (latest,) = await served.latest()
    assert (latest.state, latest.ended_at) == ("broken-off", None)
    assert await verified()
    assert [item.state for item in await served.latest()] == ["right", "broken-off"]


async def test_verification_asked_to_stop_says_by_whom(
    running: RunningLog, served: ServedVerifications, verified: Verify, noted_always: None
) -> None:
    assert not await served.request_stop("admin")
    loop = asyncio.get_running_loop()
    request: list[bool] = []

    def ask(_began: int, position: int, _last: int) -> None:
        if position > 0 and not request:
            stopping = asyncio.run_coroutine_threadsafe(served.request_stop("admin"), loop)
            request.append(stopping.result(30))

    with pytest.raises(
        VerificationStopRequestedError, match="stopped by admin; continue with --resume"
    ):
        await verified(on_progress=ask)
    (latest,) = await served.latest()
    assert request == [True]
    assert (latest.state, latest.stop_requested_by) == ("stopped", "admin")
    assert latest.last == await running.log.head()
    assert 0 < latest.checked < latest.last
    await verified(resume=True)
    resumed, *_ = await served.latest()
    assert (resumed.state, resumed.began) == ("right", latest.checked)


async def test_failed_verification_says_why(
    running: RunningLog, served: ServedVerifications, verified: Verify
) -> None:
    await running.ask("INSERT INTO projections (name, version) VALUES ('runs', 900)")
    with pytest.raises(UserError, match=r"rows of runs are of another version.*log rebuild"):
        await verified()
    (latest,) = await served.latest()
    assert latest.state == "failed"
    assert latest.failure is not None
    assert "spawnlog log rebuild" in latest.failure


@pytest.mark.nightly
async def test_newest_verifications_are_kept(
    running: RunningLog, served: ServedVerifications, verified: Verify
) -> None:
    await running.ask(
        "INSERT INTO verifications (started_by, origin, process, outcome)"
        " SELECT 'old', 'command', 'here', 'right' FROM generate_series(1, %s)",
        VERIFICATIONS_MAX + 5,
    )
    await verified()
    kept = [item.started_by for item in await served.latest()]
    assert kept == ["system"] + ["old"] * (VERIFICATIONS_MAX - 1)
    assert await running.ask("SELECT count(*) FROM verifications") == [(VERIFICATIONS_MAX,)]


def processes() -> list[int]:
    """Return the processes that verify for this one."""
    lists = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    children = [int(pid) for listing in lists for pid in listing.read_text("ascii").split()]
    return [
        pid
        for pid in children
        if b"log.verify.service" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


async def test_database_that_only_reads_takes_no_record(
    running: RunningLog, served: ServedVerifications, verified: Verify, tmp_path: Path
) -> None:
    url = psycopg.conninfo.make_conninfo(running.url, options="-c default_transaction_read_only=on")
    found, is_recorded = await verified(url)
    assert (found.difference, is_recorded) == (None, False)
    with pytest.raises(UserError, match="accepts no writes"):
        await verified(url, VerifyingProcess.here("admin", "server"))
    reading = ServedVerifications(running.pool, lambda: url, tmp_path / "state.json")
    with pytest.raises(LogUnavailableError, match="the verification cannot be recorded"):
        await reading.start("admin")
    assert await served.latest() == ()
    assert processes() == []


async def test_process_of_server_ends_with_it_and_gives_way(
    running: RunningLog, served: ServedVerifications
) -> None:
    async with running.pool.connection() as holder, holder.transaction():
        # The verification waits for this lock.
        await holder.execute("LOCK TABLE contents IN ACCESS EXCLUSIVE MODE")
        assert await served.start("admin")
        (latest,) = await served.latest()
        assert (latest.state, latest.started_by, latest.origin) == ("running", "admin", "server")
        assert (latest.began, latest.ended_at, latest.head_hash) == (0, None, None)
        (process,) = processes()
        own = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, process) == min(19, own + NICENESS)
        await served.close()
        assert processes() == []

        async def is_over() -> bool:
            return (await served.latest())[0].state != "running"

        await until(is_over, "its connection to be gone")
        assert (await served.latest())[0].state == "broken-off"


@pytest.mark.nightly
async def test_verification_begins_although_its_asker_is_gone(
    running: RunningLog, served: ServedVerifications
) -> None:
    asking = asyncio.create_task(served.start("admin"))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    async def is_over() -> bool:
        return [item.state for item in await served.latest()] == ["right"] and not processes()

    await until(is_over, "the verification and its process to end", seconds=30)


async def test_process_ends_with_server_that_closes_at_once(
    running: RunningLog, served: ServedVerifications, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[WorkerProcess] = []

    class Worker(WorkerProcess):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            started.append(self)

    monkeypatch.setattr(service, "WorkerProcess", Worker)
    for turns in (0, 1, 2, 3, 5, 8, 13):
        starting = asyncio.create_task(served.start("admin"))
        while not started:
            await asyncio.sleep(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        await served.close()
        await asyncio.gather(starting, return_exceptions=True)
        process = started.pop()
        assert process._process.returncode is not None, turns
        assert process._process.stdout is not None
        assert process._process.stdout.closed, turns
