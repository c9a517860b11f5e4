"""What is due is done side by side: whatever takes its time holds up nothing but itself."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest

from application import due_work
from application.claim_times import ClaimTimes
from application.due_work import DueWork
from application.ports.event_log import LogUnavailable
from domain.configuration.hooks import Hooks
from tests.support.held_commits import until

SLOW, QUICK, LATER, BROKEN, LOST = (UUID(int=number) for number in range(1, 6))


class Desk:
    """Has due work and gives claims of it; the slow one waits for `gate`."""

    def __init__(self, *due: UUID) -> None:
        self.due = list(due)
        self.claimed: set[UUID] = set()
        self.done: list[UUID] = []
        self.gate = asyncio.Event()
        self.at_once = self.most_at_once = 0
        self.work = DueWork(
            "test", claim=self.claim, do=self.do, release=self.release, seconds=0.01
        )

    async def claim(self, limit: int) -> Sequence[UUID]:
        taken = [one for one in self.due if one not in self.claimed][:limit]
        self.claimed.update(taken)
        return taken

    async def release(self, run_ids: Sequence[UUID]) -> None:
        self.claimed.difference_update(run_ids)

    async def do(self, run_id: UUID) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self._do(run_id)
        finally:
            self.at_once -= 1

    async def _do(self, run_id: UUID) -> None:
        if run_id == SLOW:
            await self.gate.wait()
        if run_id == BROKEN:
            raise ValueError("it cannot be done")
        if run_id == LOST:
            self.due.remove(run_id)
            raise LogUnavailable("away")
        await asyncio.sleep(0)
        self.due.remove(run_id)
        self.done.append(run_id)

    async def comes_to(self, *done: UUID) -> None:
        async def is_there() -> bool:
            return self.done == list(done)

        await until(is_there, f"{len(done)} to be done")


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    yield desk
    await desk.work.close()
    assert desk.at_once == 0


async def test_what_becomes_due_later_does_not_wait_for_what_hangs(desk: Desk) -> None:
    desk.due = [SLOW, QUICK]
    desk.work.start()
    await desk.comes_to(QUICK)
    desk.due.append(LATER)
    desk.work.wake()
    await desk.comes_to(QUICK, LATER)
    assert desk.claimed == {SLOW}
    desk.gate.set()
    await desk.comes_to(QUICK, LATER, SLOW)


async def test_no_more_are_under_way_than_there_is_room_for(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due_work, "DUE_BATCH", 2)
    many = [UUID(int=number) for number in range(10, 17)]
    desk.due = [SLOW, *many]
    desk.work.start()
    await desk.comes_to(*many)
    assert desk.most_at_once == 2
    desk.gate.set()
    await desk.work.work_off()
    assert desk.done == [*many, SLOW]


async def test_all_that_is_due_is_waited_for_also_what_was_under_way(desk: Desk) -> None:
    desk.due = [SLOW]
    desk.work.start()
    await until_claimed(desk, SLOW)
    desk.due.append(QUICK)
    finishing = asyncio.create_task(desk.work.work_off())
    await desk.comes_to(QUICK)
    assert not finishing.done()
    desk.gate.set()
    await finishing
    assert desk.done == [QUICK, SLOW]
    assert desk.claimed == set()


async def until_claimed(desk: Desk, run_id: UUID) -> None:
    async def is_claimed() -> bool:
        return run_id in desk.claimed

    await until(is_claimed, "it is claimed")


async def test_what_failed_keeps_its_claim_and_holds_up_no_other(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(due_work, "DUE_BATCH", 1)
    desk.due = [BROKEN, QUICK, LATER]
    await desk.work.work_off()
    assert desk.done == [QUICK, LATER]
    assert desk.claimed == {BROKEN}
    assert [one.getMessage() for one in caplog.records] == [f"test of run {BROKEN} failed"]


async def test_a_database_that_is_away_is_told_and_the_claim_given_up(desk: Desk) -> None:
    desk.due = [LOST, QUICK]
    with pytest.raises(LogUnavailable, match="away"):
        await desk.work.work_off()
    assert desk.done == [QUICK]
    assert desk.claimed == set()
    await desk.work.work_off()


async def test_what_hangs_is_broken_off_at_the_end_and_keeps_its_claim(desk: Desk) -> None:
    desk.due = [SLOW]
    desk.work.start()
    await until_claimed(desk, SLOW)
    await desk.work.close()
    assert (desk.at_once, desk.done, desk.claimed) == (0, [], {SLOW})


def _told_within(seconds: float) -> Hooks:
    hook = {"url": "http://hooks.test/", "timeoutSeconds": seconds}
    return Hooks.model_validate({"subagentEnded": hook})


async def test_a_run_that_was_claimed_for_too_short_is_claimed_again_for_long_enough() -> None:
    asked: list[float] = []
    needed = {SLOW: 60.0, LATER: 60.0, QUICK: 1.0}

    async def take(limit: int, seconds: float) -> Sequence[UUID]:
        asked.append(seconds)
        return list(needed)[:limit]

    async def of(run_id: UUID) -> Hooks:
        return _told_within(needed[run_id])

    times = ClaimTimes(
        take,
        lease_seconds=2.0,
        now=lambda: _told_within(5.0),
        of=of,
        measure=lambda hooks: hooks.seconds_max,
    )
    runs = await times.claim(9)
    # Those that were claimed together are judged by that, not by what was learnt since.
    assert [await times.suffices(one) for one in runs] == [False, False, True]
    runs = await times.claim(9)
    assert [await times.suffices(one) for one in runs] == [True, True, True]
    assert asked == [7.0, 62.0]
