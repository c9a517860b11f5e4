"""Leases on the database's clock, and exclusive claims."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from application.coordination.coordination import Coordination, DueFile
from application.log.event_log import Decision, Reservation, StoredAnswer, Submission
from domain.run.facts import EXTERNAL_LANE, TranscriptSeal
from infrastructure.outbound.read_model.coordination import CLOSE
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.submissions import at_once, submission
from tests.support.faults.held_commits import held_commits
from tests.support.memory.served_log import ServedLog
from tests.support.servers.running_log import RunningLog
from tests.support.waiting import until

HOLDER = "server-1"
LONG = 60.0
SHORT = 0.05


async def _expired(postgres: RunningLog, holder: str = HOLDER) -> None:
    async def over() -> bool:
        query = "SELECT 1 FROM holders WHERE until > clock_timestamp() AND holder = %s"
        return not await postgres.ask(query, holder)

    await until(over, "the lease is over")


async def test_lease_is_written_and_prolonged(
    postgres: RunningLog, coordination: Coordination
) -> None:
    assert await coordination.renew(HOLDER, url="http://a", lease_seconds=SHORT)
    assert await coordination.renew(HOLDER, url="http://b", lease_seconds=LONG)
    ((url, left),) = await postgres.ask("SELECT url, until - clock_timestamp() FROM holders")
    assert url == "http://b"
    assert timedelta(seconds=LONG - 10) < left <= timedelta(seconds=LONG)


async def test_expired_lease_is_prolonged_up_to_its_limit(
    postgres: RunningLog, coordination: Coordination
) -> None:
    await coordination.renew(HOLDER, url=None, lease_seconds=SHORT)
    await _expired(postgres)
    limit = datetime.now(UTC) - timedelta(seconds=1)
    assert not await coordination.renew(HOLDER, url=None, lease_seconds=LONG, not_after=limit)
    assert await coordination.renew(HOLDER, url=None, lease_seconds=LONG)
    await coordination.forget(HOLDER)
    assert await postgres.ask("SELECT holder FROM holders") == []


async def test_closed_lease_is_not_prolonged(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    await family.begin("running")
    await coordination.renew(HOLDER, url="http://a", lease_seconds=SHORT)
    await coordination.renew("server-2", url="http://b", lease_seconds=LONG)
    await _expired(postgres)
    before = (await coordination.lost_runs(limit=9)).runs
    assert await coordination.close_leases([HOLDER, "server-2"]) == {HOLDER}
    assert not await coordination.renew(HOLDER, url="http://a", lease_seconds=LONG)
    assert await coordination.renew("server-2", url="http://b", lease_seconds=LONG)
    # A server that dies between closing and taking over leaves the runs to the next one.
    assert (await coordination.lost_runs(limit=9)).runs == before
    assert await coordination.close_leases([HOLDER]) == {HOLDER}


async def test_lease_without_row_can_be_closed(
    running: ServedLog, coordination: Coordination
) -> None:
    assert await coordination.close_leases([HOLDER]) == {HOLDER}
    assert not await coordination.renew(HOLDER, url="http://a", lease_seconds=LONG)


async def test_renewal_waits_for_closing_of_same_lease(
    postgres: RunningLog, coordination: Coordination
) -> None:
    await coordination.renew(HOLDER, url="http://a", lease_seconds=SHORT)
    await _expired(postgres)
    async with postgres.pool.connection() as connection:
        async with connection.transaction():
            await connection.execute(CLOSE, [[HOLDER]])
            renewing = asyncio.create_task(
                coordination.renew(HOLDER, url="http://a", lease_seconds=LONG)
            )

            async def waits() -> bool:
                query = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'transactionid'"
                return bool(await postgres.ask(query))

            await until(waits, "the renewal waits")
    assert not await renewing


async def test_truncated_lease_is_written_again(
    postgres: RunningLog, coordination: Coordination
) -> None:
    await coordination.renew(HOLDER, url=None, lease_seconds=LONG)
    await postgres.ask("TRUNCATE holders, work_claims")
    assert await coordination.renew(HOLDER, url=None, lease_seconds=LONG)


async def test_lease_ends_at_its_limit(
    running: ServedLog, coordination: Coordination, family: LoggedFamily
) -> None:
    await family.begin("limited")
    limit = datetime.now(UTC) - timedelta(seconds=1)
    assert not await coordination.renew(HOLDER, url=None, lease_seconds=LONG, not_after=limit)
    (lost,) = (await coordination.lost_runs(limit=9)).runs
    assert (lost.run_id, lost.until, lost.absent) == (family.id("limited"), limit, False)


async def test_unclaimed_runs_are_found_by_age(
    coordination: Coordination, family: LoggedFamily
) -> None:
    for name in ("first", "second", "claimed"):
        await family.spawn(name)
        await family.create(name, lane=EXTERNAL_LANE)
    await family.queue("of a server")
    await family.tell("claimed", ask.claim())
    assert await coordination.unclaimed_runs(seconds=LONG, limit=9) == []
    waiting = [family.id("first"), family.id("second")]
    assert await coordination.unclaimed_runs(seconds=0, limit=9) == waiting
    assert await coordination.unclaimed_runs(seconds=0, limit=1) == waiting[:1]


async def test_runs_are_lost_with_their_holder(
    running: ServedLog, coordination: Coordination, family: LoggedFamily
) -> None:
    await family.spawn("preparing")
    await family.begin("running")
    await family.queue("waiting")
    await family.live("over")
    lost = (await coordination.lost_runs(limit=9)).runs
    assert [(run.run_id, run.stage, run.epoch, run.absent) for run in lost] == [
        (family.id("preparing"), "requested", 1, True),
        (family.id("running"), "started", 6, True),
    ]
    assert {item.holder for item in lost} == {HOLDER}
    await coordination.renew(HOLDER, url=None, lease_seconds=LONG)
    assert (await coordination.lost_runs(limit=9)).runs == []
    await coordination.leave(HOLDER)
    lost = (await coordination.lost_runs(limit=9)).runs
    assert [(run.run_id, run.absent) for run in lost] == [
        (family.id("preparing"), False),
        (family.id("running"), False),
    ]
    assert len((await coordination.lost_runs(limit=1)).runs) == 1
    assert not await coordination.renew(HOLDER, url=None, lease_seconds=LONG)


async def test_runs_are_lost_when_a_lease_runs_out(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    await family.spawn("preparing")
    await coordination.renew(HOLDER, url=None, lease_seconds=SHORT)
    await _expired(postgres)
    (lost,) = (await coordination.lost_runs(limit=9)).runs
    assert (lost.run_id, lost.absent) == (family.id("preparing"), False)
    await family.tell("preparing", ask.resume(lost.epoch, holder="server-2"))
    await coordination.renew("server-2", url=None, lease_seconds=LONG)
    assert (await coordination.lost_runs(limit=9)).runs == []


async def test_holder_is_forgotten_a_day_later(
    postgres: RunningLog, coordination: Coordination
) -> None:
    for holder in ("old", "fresh"):
        await coordination.renew(holder, url=None, lease_seconds=LONG)
    await postgres.ask(
        "UPDATE holders SET until = now() - interval '25 hours' WHERE holder = 'old'"
    )
    await coordination.leave("fresh")
    assert await postgres.ask("SELECT holder FROM holders") == [("fresh",)]


async def test_runs_of_a_holder_are_listed(
    coordination: Coordination, family: LoggedFamily
) -> None:
    await family.spawn("preparing")
    await family.begin("running")
    await family.live("over")
    held = await coordination.held_runs(HOLDER, limit=9)
    assert [run.run_id for run in held] == [family.id("preparing"), family.id("running")]
    assert await coordination.held_runs("server-2", limit=9) == []


async def test_old_complete_answers_are_forgotten(
    postgres: RunningLog, coordination: Coordination
) -> None:
    def reserving(name: str, answer: StoredAnswer | None) -> Submission[None]:
        reservation = Reservation("admin", "POST", "/", name, b"")
        return submission(lambda _: Decision(None, answer=answer), reservation=reservation)

    answered = StoredAnswer("accepted", {})
    await at_once(
        postgres.log,
        *(reserving(name, answered) for name in ("old", "fresh")),
        reserving("open", None),
    )
    long_ago = datetime.now(UTC) - timedelta(days=8)
    await postgres.ask("UPDATE idempotency SET created_at = %s WHERE key <> 'fresh'", long_ago)
    assert await coordination.forget_old_answers(days=7) == 1
    assert await postgres.ask("SELECT key FROM idempotency ORDER BY key") == [("fresh",), ("open",)]
    assert await coordination.forget_old_answers(days=7) == 0


SEAL = TranscriptSeal(count=1, bytes=3, hmac="00", path="/transcripts/main/said.jsonl")


async def test_file_is_due_at_end_and_archive(
    running: ServedLog, coordination: Coordination, family: LoggedFamily
) -> None:
    await family.begin("scout")
    assert await coordination.files_written([DueFile(family.id("scout"), is_archived=False)]) != []
    await family.end("scout", transcript=SEAL)
    ended = DueFile(family.id("scout"), is_archived=False)
    assert await coordination.due_files(limit=9) == [], "whoever ended the run has time for it"
    await family.announce("scout")
    await family.tell("scout", ask.archive(transcript_path="/transcripts/main/archived.jsonl"))
    archived = DueFile(family.id("scout"), is_archived=True)
    assert await coordination.files_written([ended]) == [ended]
    assert await coordination.files_written([archived]) == []
    assert await coordination.files_written([archived]) == [archived]


async def test_unwritten_file_is_given_out_with_backoff(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    await family.begin("scout")
    await family.end("scout", transcript=SEAL)
    await family.begin("silent")
    await family.end("silent")
    pauses: list[float] = []
    for _ in range(14):
        await postgres.ask("UPDATE transcript_files SET due_at = clock_timestamp()")
        due = await coordination.due_files(limit=9)
        assert [run.run_id for run in due] == [family.id("scout")]
        assert await coordination.due_files(limit=9) == []
        ((pause,),) = await postgres.ask(
            "SELECT extract(epoch FROM due_at - clock_timestamp())::float FROM transcript_files"
        )
        pauses.append(pause)
    expected = [min(3_600.0, 5.0 * 2**attempt) for attempt in range(14)]
    assert pauses == pytest.approx(expected, abs=5)


async def test_file_under_append_blocks_nobody(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    await family.begin("scout")
    await family.end("scout", transcript=SEAL)
    ended = DueFile(family.id("scout"), is_archived=False)
    await family.announce("scout")
    async with held_commits(postgres.url) as commits:
        archiving = asyncio.create_task(
            family.tell("scout", ask.archive(transcript_path="/transcripts/main/later.jsonl"))
        )
        await commits.held()
        assert await coordination.files_written([ended]) == [ended]
        await commits.release()
        await archiving
    assert await postgres.ask("SELECT is_archived FROM transcript_files") == [(True,)]
