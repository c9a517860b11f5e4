"""Due work is done by one worker, and by another one if that does not come back."""

import asyncio
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest

from application.coordination.coordination import ClaimKey, ClaimKind, Coordination
from tests.contracts.conftest import Claim
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.servers.running_log import RunningLog

HOLDER = "server-1"
LONG = 60.0


def keys(kind: ClaimKind, run_ids: Iterable[UUID], holder: str = HOLDER) -> list[ClaimKey]:
    return [ClaimKey(kind, run_id, holder) for run_id in run_ids]


async def end_claims(postgres: RunningLog, run_ids: Iterable[UUID]) -> None:
    await postgres.ask(
        "UPDATE work_claims SET until = clock_timestamp() WHERE run_id = ANY(%s)", [*run_ids]
    )


async def ended(family: LoggedFamily, count: int) -> set[UUID]:
    """Return this number of runs that ended in the same instant and wait for their announcement."""
    names = [f"r{number}" for number in range(count)]
    family.policy = LoggedFamily(family.log, max_children=count + 1).policy
    for name in names:
        await family.begin(name)
    await asyncio.gather(*(family.end(name) for name in names))
    return {family.id(name) for name in names}


async def refused_with_files(family: LoggedFamily, count: int) -> set[UUID]:
    """Return spawns that were refused while their files were being written."""
    names = [f"r{number}" for number in range(count)]
    for name in names:
        await family.furnish(name)
        await family.tell(name, ask.refuse(family.run(name).epoch, step="attachments"))
    return {family.id(name) for name in names}


@pytest.mark.parametrize(
    ("kind", "other_kind", "make"),
    [("announce", "archive", ended), ("effects", "announce", refused_with_files)],
)
async def test_due_work_is_claimed_once(
    postgres: RunningLog,
    coordination: Coordination,
    claim: Claim,
    family: LoggedFamily,
    kind: ClaimKind,
    other_kind: ClaimKind,
    make: Any,
) -> None:
    await family.furnish("preparing")
    assert await claim(kind) == []
    due = await make(family, 3)
    first = set(await claim(kind, limit=2))
    assert len(first) == 2
    rest = set(await claim(kind, "server-2"))
    assert first | rest == due
    assert first & rest == set(await claim(kind, "server-3")) == set()
    await end_claims(postgres, first)
    assert set(await claim(kind, "server-3")) == first
    await coordination.release([*keys(kind, rest), *keys(other_kind, rest, "server-2")])
    assert await claim(kind) == []
    await coordination.release(keys(kind, rest, "server-2"))
    assert set(await claim(kind)) == rest


async def test_claim_is_prolonged_unless_taken_by_another(
    postgres: RunningLog, coordination: Coordination, claim: Claim, family: LoggedFamily
) -> None:
    due = await ended(family, 4)
    over = set(await claim("announce", limit=1))
    await end_claims(postgres, over)
    kept = due - over
    assert set(await claim("announce", "x", limit=1, seconds=LONG / 2)) == over
    assert set(await claim("announce", seconds=LONG / 2)) == kept
    others = [*keys("archive", due), *keys("announce", kept, "server-2")]
    mine, still = keys("announce", due), set(keys("announce", kept))
    assert await coordination.prolong([*mine, *others], lease_seconds=LONG) == still
    longer = await postgres.ask(
        "SELECT run_id FROM work_claims WHERE until > clock_timestamp() + interval '31 s'"
    )
    assert {run_id for (run_id,) in longer} == kept
    expired = "UPDATE work_claims SET until = clock_timestamp() WHERE holder = %s"
    await postgres.ask(expired, HOLDER)
    assert await coordination.prolong(mine, lease_seconds=LONG) == still
    assert await coordination.prolong([], lease_seconds=LONG) == frozenset()


@pytest.mark.server
async def test_claims_at_once_never_share_work(
    postgres: RunningLog, claim: Claim, family: LoggedFamily
) -> None:
    due = await ended(family, 40)
    taken: list[UUID] = []

    async def work(holder: str) -> None:
        for _ in due:
            taken.extend(await claim("announce", holder, limit=25))
            if len(taken) == len(due):
                return

    for _ in range(6):
        await asyncio.gather(*(work(f"server-{number}") for number in range(4)))
        assert len(taken) == len(due)
        assert set(taken) == due
        taken.clear()
        await postgres.ask("TRUNCATE work_claims")


async def seconds_to_archive(postgres: RunningLog) -> float:
    ((seconds,),) = await postgres.ask(
        "SELECT extract(epoch FROM due_at - clock_timestamp())::float8 FROM runs"
        " WHERE due_kind = 'archive'"
    )
    return float(seconds)


async def test_nothing_is_due_before_its_time(
    postgres: RunningLog, claim: Claim, family: LoggedFamily
) -> None:
    await family.begin("scout")
    assert await claim("announce") == []
    await family.end("scout")
    assert await claim("announce") == [family.id("scout")]
    await family.announce("scout")
    assert 3_500 < await seconds_to_archive(postgres) <= 3_600
    assert await claim("archive") == []
    await postgres.ask("UPDATE runs SET due_at = now() WHERE due_kind = 'archive'")
    assert await claim("archive") == [family.id("scout")]


async def test_emptied_tables_cost_nothing_but_a_repeat(
    postgres: RunningLog, coordination: Coordination, claim: Claim, family: LoggedFamily
) -> None:
    due = await ended(family, 2)
    assert set(await claim("announce")) == due
    await postgres.ask("TRUNCATE holders, work_claims")
    assert set(await claim("announce", "server-2")) == due
    await family.begin("held")
    (lost,) = (await coordination.lost_runs(limit=9)).runs
    assert (lost.run_id, lost.absent) == (family.id("held"), True)
    epoch = family.run("held").epoch
    await family.end("held")
    assert epoch == lost.epoch == 6


async def test_failed_undo_is_claimed_at_its_time(
    postgres: RunningLog, coordination: Coordination, claim: Claim, family: LoggedFamily
) -> None:
    async def claim_later() -> list[UUID]:
        await postgres.ask("UPDATE runs SET effects_at = now() WHERE effects_at IS NOT NULL")
        claimed = await claim("effects")
        await coordination.release(keys("effects", claimed))
        return claimed

    (run_id,) = await refused_with_files(family, 1)
    for attempt in range(1, 6):
        await family.tell("r0", ask.note_undo_failure(attempt=attempt))
    assert await claim("effects") == []
    assert await claim_later() == [run_id]
    await family.tell("r0", ask.confirm_undo())
    assert await claim_later() == [run_id]
    await family.tell("r0", ask.confirm_undo(step="workspace"))
    assert await claim_later() == []


async def test_files_are_removed_before_the_archive(
    postgres: RunningLog, claim: Claim, family: LoggedFamily
) -> None:
    await family.furnish("scout")
    await family.tell("scout", ask.take_step(family.run("scout").epoch))
    await family.create("scout")
    await family.execute("scout")
    await family.end("scout")
    assert await claim("effects") == []
    await family.announce("scout")
    assert await claim("effects") == [family.id("scout")]
    assert await seconds_to_archive(postgres) > 0
