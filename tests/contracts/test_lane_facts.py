"""A lane is never wider than permitted, with any number of concurrent claims."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from application.log.event_log import (
    Change,
    Decision,
    DecisionContext,
    EventLog,
    LaneFacts,
    LaneQuery,
    Submission,
)
from application.projections.fold import Fold
from domain.run.commands import ClaimRun
from domain.run.decide import decide
from domain.values.record import run_stream
from domain.values.refusals import Rejected
from infrastructure.outbound.log.append import ledger, load
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily, lane
from tests.support.builders.submissions import at_once, submission
from tests.support.memory.served_log import ServedLog

WIDTH = 3
RUNS = 24
ROUNDS_MAX = 500


async def facts(log: EventLog, query: LaneQuery) -> LaneFacts:
    appended = await log.submit(submission(lambda world: Decision(_told(world)), lane=query))
    return appended.result


def _told(world: DecisionContext) -> LaneFacts:
    assert world.lane is not None
    return world.lane


def claiming(width: int, query: LaneQuery, holder: str = "server-1") -> Submission[list[UUID]]:
    """Return a submission that claims as many runs as there is room for, in order."""

    def choose(world: DecisionContext) -> Decision[list[UUID]]:
        result, changes, taken = _told(world), list[Change](), list[UUID]()
        for run in result.next:
            running = result.running + len(taken)
            command = ClaimRun(holder=holder, lane_width=width, lane_running=running)
            try:
                events = decide(run, command)
            except Rejected:
                continue
            changes += [(run_stream(run.run_id), event) for event in events]
            taken.append(run.run_id)
        return Decision(taken, changes)

    return submission(choose, lane=query)


async def queued(log: EventLog, count: int, first: int = 1) -> LoggedFamily:
    family = LoggedFamily(log, first=first, max_children=count)
    for number in range(count):
        await family.queue(f"r{number}")
    return family


async def test_lane_has_running_and_next(running: ServedLog, family: LoggedFamily) -> None:
    for name in ("one", "two", "three", "four"):
        await family.queue(name)
    await family.begin("held")
    await family.queue("below", "held")
    result = await facts(running.log, lane(take=3))
    assert result.running == 1
    assert [run.run_id for run in result.next] == [
        family.id(text) for text in ("one", "two", "three")
    ]
    assert result.next[0] == family.run("one")
    deeper = await facts(running.log, lane(depth=2))
    assert (deeper.running, [run.run_id for run in deeper.next]) == (0, [family.id("below")])
    assert await facts(running.log, LaneQuery("other", 1, 8)) == LaneFacts(0, ())


async def test_run_leaves_its_lane_at_its_end(running: ServedLog, family: LoggedFamily) -> None:
    await family.queue("one")
    await family.tell("one", ask.claim())
    assert (await facts(running.log, lane())).running == 1
    await family.tell("one", ask.claim(holder="server-2", lost_epoch=family.run("one").epoch))
    await family.start("one")
    assert (await facts(running.log, lane())).running == 1
    await family.end("one")
    assert await facts(running.log, lane()) == LaneFacts(0, ())


async def test_decision_counts_claims_of_its_batch(
    running: ServedLog,
) -> None:
    family = await queued(running.log, 8)
    before = await running.commits()
    answers = await at_once(running.log, *(claiming(WIDTH, lane(take=8)) for _ in range(4)))
    assert await running.commits() == before + 1
    assert [len(answer.result) for answer in answers] == [WIDTH, 0, 0, 0]
    assert answers[0].result == [family.id(f"r{number}") for number in range(WIDTH)]


async def test_lane_whose_read_part_is_claimed_may_have_more(
    running: ServedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "LANE_RUNS_MAX", 3)
    monkeypatch.setattr(ledger, "LANE_RUNS_MAX", 3)
    await queued(running.log, 8)
    query = lane(take=3)
    request = submission(lambda world: Decision(_told(world)), lane=query)
    _, result = await at_once(running.log, claiming(8, query), request)
    assert result.result == LaneFacts(3, (), may_have_more=True)


async def test_decision_counts_ends_of_its_batch(running: ServedLog) -> None:
    family = await queued(running.log, 6)
    await running.log.submit(claiming(WIDTH, lane()))
    family.runs |= (await running.log.submit(_reading(family))).runs
    await family.start("r0")
    before = await running.commits()
    _, taken = await asyncio.gather(
        family.end("r0"), running.log.submit(claiming(WIDTH, lane(take=1)))
    )
    assert await running.commits() == before + 1
    assert taken.result == [family.id("r3")]
    assert (await facts(running.log, lane())).running == WIDTH


async def test_run_stopped_in_same_batch_is_not_next(
    running: ServedLog,
) -> None:
    family = await queued(running.log, 2)
    _, taken = await asyncio.gather(
        family.tell("r0", ask.stop()), running.log.submit(claiming(WIDTH, lane()))
    )
    assert taken.result == [family.id("r1")]


async def test_run_queued_in_same_batch_is_last(
    running: ServedLog,
) -> None:
    family = LoggedFamily(running.log, max_children=4)
    for name in ("r0", "r1"):
        await family.queue(name)
    for name in ("later", "last"):
        await family.spawn(name)
    _, _, result, first = await asyncio.gather(
        family.create("later"),
        family.create("last"),
        facts(running.log, lane(take=8)),
        facts(running.log, lane(take=2)),
    )
    names = ("r0", "r1", "later", "last")
    assert [run.run_id for run in result.next] == [family.id(name) for name in names]
    assert [run.run_id for run in first.next] == [family.id("r0"), family.id("r1")]


@pytest.mark.server
async def test_two_processes_never_exceed_the_width(
    running: ServedLog,
) -> None:
    async with running.other() as second_log:
        family = await queued(running.log, RUNS)
        logs = (running.log, second_log.log)
        ended: set[UUID] = set()

        async def work(log: EventLog, holder: str) -> None:
            own = LoggedFamily(log)
            for _ in range(ROUNDS_MAX):
                if len(ended) == RUNS:
                    return
                taken = await log.submit(claiming(WIDTH, lane(take=5), holder))
                for run_id in taken.result:
                    name = own.adopt(taken.runs[run_id])
                    await own.start(name)
                    await own.end(name)
                    ended.add(run_id)

        await asyncio.gather(*(work(log, f"{number}") for number in (1, 2) for log in logs))
    assert ended == {family.id(f"r{number}") for number in range(RUNS)}
    await _never_wider_than(running, WIDTH, [family.id(f"r{number}") for number in range(RUNS)])


async def _never_wider_than(running: ServedLog, width: int, in_line: Sequence[UUID]) -> None:
    fold = Fold((), ())
    claimed: list[UUID] = []
    most = 0
    for recorded in await running.events():
        envelope = recorded.envelope
        fold.apply(envelope.stream, recorded.event, envelope.stamp)
        held = [run for run in fold.runs.values() if run.stage in ("queued", "started")]
        most = max(most, sum(item.holder is not None for item in held))
        if envelope.type == "RunClaimed" and envelope.provenance.run_id is not None:
            claimed.append(envelope.provenance.run_id)
    assert most == width
    assert claimed == list(in_line)


def _reading(family: LoggedFamily) -> Submission[None]:
    streams = [run_stream(run_id) for run_id in family.runs]
    return submission(lambda _: Decision(None), *streams)
