"""Due work is done concurrently: slow work delays only itself."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest

from application.concurrency.bulkhead import BulkheadFullError
from application.coordination.claims import Claims
from application.coordination.coordination import ClaimKey, ClaimKind
from application.coordination.lease_owner import LeaseOwner
from application.log.event_log import LogUnavailableError
from application.workers import due as due_work
from application.workers.due import DueWork
from tests.support.waiting import until

SLOW, QUICK, LATER, BROKEN, LOST, CROWDED = (UUID(int=number) for number in range(1, 7))
LEASE_SECONDS = 60.0


class Desk:
    """Due work and claims of it; the slow one waits for `gate`."""

    def __init__(self, *due: UUID) -> None:
        self.due = list(due)
        self.claimed: set[UUID] = set()
        self.done: list[UUID] = []
        self.gate = asyncio.Event()
        self.at_once = self.most_at_once = 0
        self.limits: set[int] = set()
        self.prolonged: list[UUID] = []
        self.claims = Claims(
            self, LeaseOwner(lambda: "me"), lease_seconds=LEASE_SECONDS, now=time.monotonic
        )
        self.work = DueWork("announce", self.claims, self.do, seconds=0.01)

    async def claim(
        self, kind: ClaimKind, holder: str, *, limit: int, lease_seconds: float
    ) -> Sequence[UUID]:
        self.limits.add(limit)
        taken = [item for item in self.due if item not in self.claimed][:limit]
        self.claimed.update(taken)
        return taken

    async def prolong(
        self, claims: Sequence[ClaimKey], *, lease_seconds: float
    ) -> frozenset[ClaimKey]:
        self.prolonged = [claim.run_id for claim in claims]
        return frozenset(claim for claim in claims if claim.run_id in self.claimed)

    async def release(self, claims: Sequence[ClaimKey]) -> None:
        self.claimed.difference_update(claim.run_id for claim in claims)

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
        if run_id == CROWDED:
            raise BulkheadFullError("too many wait already")
        if run_id == LOST:
            self.due.remove(run_id)
            raise LogUnavailableError("away")
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


async def test_later_work_does_not_wait_for_hanging(desk: Desk) -> None:
    desk.due = [SLOW, QUICK]
    desk.work.start()
    await desk.comes_to(QUICK)
    desk.due.append(LATER)
    desk.work.notify()
    await desk.comes_to(QUICK, LATER)
    assert desk.claimed == {SLOW}
    desk.gate.set()
    await desk.comes_to(QUICK, LATER, SLOW)


async def test_work_at_once_is_limited(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_work, "DUE_BATCH", 2)
    many = [UUID(int=number) for number in range(10, 17)]
    desk.due = [SLOW, *many]
    desk.work.start()
    await desk.comes_to(*many)
    assert desk.most_at_once == 2
    assert max(desk.limits) == 2
    desk.gate.set()
    await desk.work.run_all_due()
    assert desk.done == [*many, SLOW]


async def test_due_and_running_work_is_waited_for(desk: Desk) -> None:
    desk.due = [SLOW]
    desk.work.start()
    await until_claimed(desk, SLOW)
    desk.due.append(QUICK)
    finishing = asyncio.create_task(desk.work.run_all_due())
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


async def test_failed_work_keeps_its_claim(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(due_work, "DUE_BATCH", 1)
    desk.due = [BROKEN, QUICK, LATER]
    await desk.work.run_all_due()
    assert desk.done == [QUICK, LATER]
    assert desk.claimed == {BROKEN}
    assert [record.getMessage() for record in caplog.records] == [
        f"announce of run {BROKEN} failed"
    ]


async def test_absent_database_gives_up_the_claim(desk: Desk) -> None:
    desk.due = [LOST, QUICK]
    with pytest.raises(LogUnavailableError, match="away"):
        await desk.work.run_all_due()
    assert desk.done == [QUICK]
    assert desk.claimed == set()
    await desk.work.run_all_due()


async def test_hanging_work_is_broken_off_at_close(desk: Desk) -> None:
    desk.due = [SLOW]
    desk.work.start()
    await until_claimed(desk, SLOW)
    await desk.work.close()
    assert (desk.at_once, desk.done, desk.claimed) == (0, [], {SLOW})


async def test_more_are_claimed_beyond_a_batch(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_work, "DUE_BATCH", 1)
    work = DueWork("effects", desk.claims, desk.do, seconds=0.01, at_once_max=2)
    desk.due = [SLOW, QUICK, LATER]
    work.start()
    await desk.comes_to(QUICK, LATER)
    assert (desk.most_at_once, desk.limits) == (2, {1})
    await work.close()


async def test_crowded_work_leaves_its_turn(desk: Desk) -> None:
    desk.due = [CROWDED, QUICK]
    await desk.work.run_all_due()
    assert desk.done == [QUICK]
    assert desk.claimed == {CROWDED}
    await desk.claims.prolong()
    assert desk.prolonged == []
