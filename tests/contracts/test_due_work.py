"""Work that is due is done by one, and by somebody else when that one does not come back."""

import asyncio
from collections.abc import Iterable
from uuid import UUID

import pytest

from application.coordination.coordination import ClaimKey, ClaimKind, Coordination
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.servers.running_log import RunningLog

HOLDER = "server-1"
LONG = 60.0


async def _ended(family: LoggedFamily, count: int) -> set[UUID]:
    """So many runs that ended in the same instant and wait for their announcement."""
    names = [f"r{number}" for number in range(count)]
    family.policy = LoggedFamily(family.log, max_children=count).policy
    for name in names:
        await family.begin(name)
    await asyncio.gather(*(family.end(name) for name in names))
    return {family.id(name) for name in names}


async def test_due_work_is_claimed_once_until_the_claim_is_over(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    due = await _ended(family, 3)

    async def claim(holder: str, limit: int = 9) -> set[UUID]:
        return set(await coordination.claim("announce", holder, limit=limit, lease_seconds=LONG))

    first = await claim("server-1", limit=2)
    assert len(first) == 2
    rest = await claim("server-2")
    assert first | rest == due
    assert first & rest == await claim("server-3") - due == set()
    await _end_claims(postgres, first)
    assert await claim("server-3") == first
    await coordination.release(_keys("announce", rest, "server-1"))
    await coordination.release(_keys("archive", rest, "server-2"))
    assert await claim("server-1") == set()
    await coordination.release(_keys("announce", rest, "server-2"))
    assert await claim("server-1") == rest


def _keys(kind: ClaimKind, run_ids: Iterable[UUID], holder: str) -> list[ClaimKey]:
    return [ClaimKey(kind, run_id, holder) for run_id in run_ids]


async def test_claim_is_prolonged_unless_taken_by_another(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    due = await _ended(family, 4)
    over = set(await coordination.claim("announce", HOLDER, limit=1, lease_seconds=LONG))
    await _end_claims(postgres, over)
    kept = due - over
    short = LONG / 2
    assert set(await coordination.claim("announce", "x", limit=1, lease_seconds=short)) == over
    assert set(await coordination.claim("announce", HOLDER, limit=9, lease_seconds=short)) == kept
    others = [*_keys("archive", due, HOLDER), *_keys("announce", kept, "server-2")]
    mine = _keys("announce", due, HOLDER)
    prolonged = await coordination.prolong([*mine, *others], lease_seconds=LONG)
    assert prolonged == set(_keys("announce", kept, HOLDER))
    longer = await postgres.ask(
        "SELECT run_id FROM work_claims WHERE until > clock_timestamp() + interval '31 s'"
    )
    assert {run_id for (run_id,) in longer} == kept
    expired = "UPDATE work_claims SET until = clock_timestamp() WHERE holder = %s"
    await postgres.ask(expired, HOLDER)
    assert await coordination.prolong(mine, lease_seconds=LONG) == set(
        _keys("announce", kept, HOLDER)
    )
    assert await coordination.prolong([], lease_seconds=LONG) == frozenset()


async def _end_claims(postgres: RunningLog, run_ids: set[UUID]) -> None:
    expired = "UPDATE work_claims SET until = clock_timestamp() WHERE run_id = ANY(%s)"
    await postgres.ask(expired, list(run_ids))


@pytest.mark.server
async def test_those_who_claim_at_once_never_get_the_same(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    due = await _ended(family, 40)
    taken: list[UUID] = []

    async def work(holder: str) -> None:
        for _ in due:
            taken.extend(await coordination.claim("announce", holder, limit=25, lease_seconds=LONG))
            if len(taken) == len(due):
                return

    for _ in range(6):
        await asyncio.gather(*(work(f"server-{number}") for number in range(4)))
        assert len(taken) == len(due)
        assert set(taken) == due
        taken.clear()
        await postgres.ask("TRUNCATE work_claims")


async def test_nothing_is_due_before_its_time(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    async def claim(kind: ClaimKind) -> list[UUID]:
        return list(await coordination.claim(kind, HOLDER, limit=9, lease_seconds=LONG))

    await family.begin("scout")
    assert await claim("announce") == []
    await family.end("scout")
    assert await claim("announce") == [family.id("scout")]
    await family.announce("scout")
    assert 3_500 < await _seconds_to_archive(postgres) <= 3_600
    assert await claim("archive") == []
    await postgres.ask("UPDATE runs SET due_at = now() WHERE due_kind = 'archive'")
    assert await claim("archive") == [family.id("scout")]


async def _seconds_to_archive(postgres: RunningLog) -> float:
    ((seconds,),) = await postgres.ask(
        "SELECT extract(epoch FROM due_at - clock_timestamp())::float8 FROM runs"
        " WHERE due_kind = 'archive'"
    )
    return float(seconds)


async def test_an_orchestrator_is_not_due_while_those_below_it_are_under_way(
    coordination: Coordination, family: LoggedFamily
) -> None:
    await family.begin("scout")
    await family.begin("below", "scout")
    await family.end("scout")
    assert await coordination.claim("announce", HOLDER, limit=9, lease_seconds=LONG) == []
    await family.end("below")
    await family.announce("below")
    assert await coordination.claim("announce", HOLDER, limit=9, lease_seconds=LONG) == [
        family.id("scout")
    ]


async def test_emptied_tables_cost_nothing_but_a_repeat(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    due = await _ended(family, 2)
    claim = coordination.claim
    assert set(await claim("announce", HOLDER, limit=9, lease_seconds=LONG)) == due
    await postgres.ask("TRUNCATE holders, work_claims")
    assert set(await claim("announce", "server-2", limit=9, lease_seconds=LONG)) == due
    await family.begin("held")
    (lost,) = (await coordination.lost_runs(limit=9)).runs
    assert (lost.run_id, lost.absent) == (family.id("held"), True)
    epoch = family.run("held").epoch
    await family.end("held")
    assert epoch == lost.epoch == 6


async def _unmade(family: LoggedFamily, *names: str) -> None:
    """Spawns that were refused while their files were being written."""
    for name in names:
        await family.furnish(name)
        await family.tell(name, ask.refuse(family.run(name).epoch, step="attachments"))


async def test_what_has_to_be_undone_is_claimed_once_until_the_claim_is_over(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    async def claim(holder: str, limit: int = 9) -> set[UUID]:
        claimed = await coordination.claim("effects", holder, limit=limit, lease_seconds=LONG)
        return set(claimed)

    await family.furnish("preparing")
    assert await claim("server-1") == set()
    await _unmade(family, "a", "b", "c")
    due = {family.id(name) for name in ("a", "b", "c")}
    first = await claim("server-1", limit=2)
    assert len(first) == 2
    rest = await claim("server-2")
    assert first | rest == due
    assert await claim("server-3") == set()
    await _end_claims(postgres, first)
    assert await claim("server-3") == first
    await coordination.release(_keys("effects", rest, "server-2"))
    assert await claim("server-1") == rest
    await coordination.release(_keys("announce", due, "server-1"))
    assert await claim("server-1") == set()


async def test_an_undo_that_failed_is_not_claimed_before_its_time_and_one_that_is_done_never(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    async def claim() -> list[UUID]:
        claimed = await coordination.claim("effects", HOLDER, limit=9, lease_seconds=LONG)
        await coordination.release(_keys("effects", claimed, HOLDER))
        return list(claimed)

    await _unmade(family, "a")
    for attempt in range(1, 6):
        await family.tell("a", ask.note_undo_failure(attempt=attempt))
    assert await claim() == []
    await postgres.ask("UPDATE runs SET effects_at = now() WHERE effects_at IS NOT NULL")
    assert await claim() == [family.id("a")]
    await family.tell("a", ask.confirm_undo())
    await postgres.ask("UPDATE runs SET effects_at = now() WHERE effects_at IS NOT NULL")
    assert await claim() == [family.id("a")]
    await family.tell("a", ask.confirm_undo(step="workspace"))
    assert await claim() == []


async def test_files_are_removed_while_the_announced_run_waits_for_its_archive(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    await family.furnish("scout")
    await family.tell("scout", ask.take_step(family.run("scout").epoch))
    await family.create("scout")
    await family.tell("scout", ask.claim())
    await family.start("scout")
    await family.end("scout")
    assert await coordination.claim("effects", HOLDER, limit=9, lease_seconds=LONG) == []
    await family.announce("scout")
    due = [family.id("scout")]
    assert await coordination.claim("effects", HOLDER, limit=9, lease_seconds=LONG) == due
    assert await _seconds_to_archive(postgres) > 0
