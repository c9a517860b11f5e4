"""A claim is renewed while work is in progress; a holder that cannot renew it lets go."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest

from application.coordination import claims as claims_module
from application.coordination.claims import Claim, Claims
from application.coordination.coordination import ClaimKey, ClaimKind
from application.coordination.lease_owner import LeaseOwner
from application.log.event_log import LogUnavailableError

A, B = UUID(int=1), UUID(int=2)
LEASE_SECONDS = 9.0


class Database:
    """Database with given answers. `now` is the clock of the process."""

    def __init__(self) -> None:
        self.now = 100.0
        self.takes_seconds = 0.0
        self.lost: set[UUID] = set()
        self.is_away = self.is_silent = False
        self.asked: list[list[ClaimKey]] = []
        self.released: list[ClaimKey] = []

    async def claim(
        self, kind: ClaimKind, holder: str, *, limit: int, lease_seconds: float
    ) -> Sequence[UUID]:
        assert lease_seconds == LEASE_SECONDS
        self.now += self.takes_seconds
        return [A, B][:limit]

    async def prolong(
        self, claims: Sequence[ClaimKey], *, lease_seconds: float
    ) -> frozenset[ClaimKey]:
        assert lease_seconds == LEASE_SECONDS
        self.asked.append(list(claims))
        self.now += self.takes_seconds
        if self.is_silent:
            await asyncio.Event().wait()
        if self.is_away:
            raise LogUnavailableError("away")
        return frozenset(claim for claim in claims if claim.run_id not in self.lost)

    async def release(self, claims: Sequence[ClaimKey]) -> None:
        self.released.extend(claims)


class Worker:
    """Worker that executes two runs until it is stopped."""

    def __init__(self, database: Database) -> None:
        self.holder = LeaseOwner(iter(("first", "second")).__next__)
        self.claims = Claims(
            database, self.holder, lease_seconds=LEASE_SECONDS, now=lambda: database.now
        )
        self.given: dict[UUID, Claim] = {}
        self.tasks: dict[UUID, asyncio.Task[None]] = {}
        self.done = {A: asyncio.Event(), B: asyncio.Event()}

    async def begin(self) -> None:
        for claim in await self.claims.take("effects", 2):
            self.given[claim.run_id] = claim
            task = asyncio.create_task(self._work(claim.run_id))
            self.tasks[claim.run_id] = task
            self.claims.renew_while(claim, task)

    async def _work(self, run_id: UUID) -> None:
        await self.done[run_id].wait()

    async def at_work(self) -> set[UUID]:
        for _ in range(3):
            await asyncio.sleep(0)
        return {run_id for run_id, task in self.tasks.items() if not task.done()}


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
async def worker(database: Database) -> AsyncIterator[Worker]:
    worker = Worker(database)
    await worker.begin()
    yield worker
    for done in worker.done.values():
        done.set()
    await asyncio.wait(worker.tasks.values())


def key(run_id: UUID) -> ClaimKey:
    return ClaimKey("effects", run_id, "first")


async def test_all_claims_are_prolonged_at_once(database: Database, worker: Worker) -> None:
    for _ in range(5):
        database.now += LEASE_SECONDS / 2
        await worker.claims.prolong()
    assert database.asked == [[key(A), key(B)]] * 5
    assert await worker.at_work() == {A, B}


async def test_finished_claim_is_not_prolonged(database: Database, worker: Worker) -> None:
    worker.done[A].set()
    assert await worker.at_work() == {B}
    await worker.claims.prolong()
    await worker.claims.give_up(worker.given[B])
    await worker.claims.prolong()
    assert database.asked == [[key(B)]]
    assert database.released == [key(B)]


async def test_claim_keeps_its_holder_name(database: Database, worker: Worker) -> None:
    worker.holder.replace_name()
    await worker.claims.prolong()
    await worker.claims.give_up(worker.given[A])
    assert database.asked == [[key(A), key(B)]]
    assert database.released == [key(A)]


async def test_lost_claim_is_broken_off(
    database: Database, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    database.lost = {A}
    with caplog.at_level(logging.WARNING):
        await worker.claims.prolong()
    assert await worker.at_work() == {B}
    assert [record.getMessage() for record in caplog.records] == [
        f"effects of run {A} is canceled: its claim has expired"
    ]
    assert database.released == []


@pytest.mark.parametrize("how", ["away", "silent"])
async def test_work_continues_offline_until_its_claim_ends(
    database: Database, worker: Worker, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims_module, "PROLONG_SECONDS_MIN", 0.01)
    database.is_away, database.is_silent = how == "away", how == "silent"
    database.now += LEASE_SECONDS - 0.05
    with pytest.raises(LogUnavailableError):
        await worker.claims.prolong()
    assert await worker.at_work() == {A, B}
    database.takes_seconds = 0.05
    with pytest.raises(LogUnavailableError):
        await worker.claims.prolong()
    assert await worker.at_work() == set()


async def test_expired_claim_is_not_prolonged(database: Database, worker: Worker) -> None:
    database.now += LEASE_SECONDS
    await worker.claims.prolong()
    assert await worker.at_work() == set()
    assert database.asked == []


async def test_claim_counts_from_before_the_question(database: Database, worker: Worker) -> None:
    database.takes_seconds = LEASE_SECONDS / 2
    await worker.claims.prolong()
    database.now += LEASE_SECONDS / 2
    await worker.claims.prolong()
    assert len(database.asked) == 1
    assert await worker.at_work() == set()
