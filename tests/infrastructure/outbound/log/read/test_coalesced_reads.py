"""Concurrent reads of many callers: each is answered, and none waits for a stuck one."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from application.log.event_log import LogUnavailableError
from infrastructure.outbound.log.read import coalesced_reads
from infrastructure.outbound.log.read.coalesced_reads import CoalescedReads
from infrastructure.outbound.log.schema.connections import LogConnection
from tests.support.servers.running_log import RunningLog


class Asked:
    """Source that answers every key with itself, `stuck…` never, and `bad` with an error."""

    def __init__(self) -> None:
        self.questions: list[list[str]] = []

    async def __call__(self, connection: LogConnection, keys: Sequence[str]) -> Mapping[str, str]:
        self.questions.append(list(keys))
        if any(key.startswith("stuck") for key in keys):
            await asyncio.Event().wait()
        if "bad" in keys:
            raise ValueError("no such key can be asked for")
        await connection.execute("SELECT 1")
        return {key: key for key in keys if key != "absent"}


async def test_reads_at_once_share_a_question(running: RunningLog) -> None:
    request = Asked()
    reads = CoalescedReads(running.pool, request)
    keys = [f"key {number % 10}" for number in range(40)]
    answers = await asyncio.gather(*(reads.get(key) for key in keys))
    assert answers == keys
    assert len(request.questions) <= 2
    assert await reads.get_all(["a", "absent", "b"]) == {"a": "a", "b": "b"}


async def test_bad_key_hurts_its_asker_alone(running: RunningLog) -> None:
    reads = CoalescedReads(running.pool, Asked())
    good, bad = await asyncio.gather(reads.get("good"), reads.get("bad"), return_exceptions=True)
    assert good == "good"
    assert isinstance(bad, ValueError)


async def test_stuck_question_holds_up_no_other(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coalesced_reads, "LONG_SECONDS", 0.05)
    monkeypatch.setattr(coalesced_reads, "ANSWER_SECONDS_MAX", 1.0)
    reads = CoalescedReads(running.pool, Asked(), keys_max=1)
    stuck = [asyncio.create_task(reads.get(f"stuck {number}")) for number in range(2)]
    async with asyncio.timeout(10):
        while reads._under_way < 2 or not reads._all_take_long():
            await asyncio.sleep(0.01)
        assert await reads.get("free") == "free"
        assert not any(task.done() for task in stuck)
        for task in stuck:
            with pytest.raises(LogUnavailableError, match="does not answer"):
                await task
    assert reads._under_way == 0


async def test_cancelled_read_leaves_the_others(running: RunningLog) -> None:
    reads = CoalescedReads(running.pool, Asked())
    leaving, staying = (asyncio.create_task(reads.get("one")) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == "one"
