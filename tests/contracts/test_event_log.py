"""Guarantees for every caller of the log: one order, atomic appends, and isolation."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from application.log.event_log import Decision, DecisionContext, LogUnavailableError, Submission
from domain.values.record import CONFIG_STREAM, run_stream, session_stream
from domain.values.refusals import CorruptHistoryError, Rejected
from infrastructure.outbound.log.append import writer
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import ROOT, run_id
from tests.support.builders.submissions import (
    SeenBefore,
    at_once,
    failing_with,
    key,
    observe,
    observing,
    recording,
    seen,
    submission,
)
from tests.support.builders.whole_story import activate, tell_everything
from tests.support.memory.served_log import ServedLog
from tests.support.servers.running_log import RunningLog, running_on

PLACES = 20
CALLERS = 64


async def test_events_are_read_from_either_end(running: ServedLog, family: LoggedFamily) -> None:
    await family.live("first")
    await family.queue("second")
    log = running.log
    all_of_them = list(await log.read(limit=10_000))
    positions = [event.envelope.position for event in all_of_them]

    async def newest(**question: Any) -> list[int]:
        found = await log.read(newest_first=True, **question)
        return [event.envelope.position for event in found]

    assert positions == list(range(1, len(positions) + 1))
    assert await newest(limit=10_000) == positions[::-1]
    assert await newest(limit=3) == positions[:-4:-1]
    assert await newest(limit=3, after=2, until=6) == [6, 5, 4]
    assert await newest(limit=9, after=2, until=6) == [6, 5, 4, 3]
    run_id = family.id("first")
    of_run = [event for event in all_of_them if event.envelope.provenance.run_id == run_id]
    assert await newest(limit=2, run_id=run_id) == [
        event.envelope.position for event in of_run[:-3:-1]
    ]
    ended = [event.envelope.position for event in all_of_them if event.envelope.type == "RunEnded"]
    assert await newest(limit=9, types=("RunEnded",), correlations=(ROOT,)) == ended[::-1]


async def test_events_are_read_by_who_acted(running: ServedLog, family: LoggedFamily) -> None:
    await family.live("first")
    everything = list(await running.log.read(limit=10_000))
    words = {word for event in everything for word in event.envelope.provenance.actor if word}
    assert words
    for word in (*words, "nobody"):
        found = await running.log.read(limit=10_000, actor=word)
        assert list(found) == [
            event for event in everything if word in event.envelope.provenance.actor
        ]


async def test_an_empty_log_is_at_position_zero(running: ServedLog) -> None:
    assert await running.log.head() == 0
    assert await running.log.read(limit=10) == []
    assert isinstance(running.log.log_id, UUID)


async def test_rejections_leave_no_gap_of_positions(
    running: ServedLog,
) -> None:
    await observe(running.log, ["known"])
    request: list[Submission[Any]] = []
    for number in range(10):
        request += [observing(key(number)), observing(key("known")), failing_with(KeyError(number))]
    answers = await at_once(running.log, *request)
    assert await running.commits() == 2, "the commands were not decided as one batch"
    recorded = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert [event.position for event in recorded] == list(range(2, 12))
    assert len(await running.events()) == 11


async def test_rejection_hurts_only_its_caller(running: ServedLog) -> None:
    await observe(running.log, ["known"])
    troubles: list[BaseException] = [Rejected("no"), KeyError("broken"), ZeroDivisionError()]
    answers = await at_once(
        running.log,
        observing(key(1)),
        *map(failing_with, troubles),
        observing(key("known")),
        observing(key(2)),
    )
    assert answers[1:4] == troubles
    assert isinstance(answers[4], SeenBefore)
    assert [answers[0].result, answers[5].result] == [(key(1),), (key(2),)]


async def test_streams_of_a_decision_are_one_append(
    running: ServedLog, family: LoggedFamily
) -> None:
    await family.queue("scout")
    await family.execute("scout")
    appended = await family.tell("scout", ask.end(family.run("scout").epoch))
    last = [event.envelope for event in (await running.events())[-2:]]
    assert [event.stream for event in last] == [
        run_stream(family.id("scout")),
        session_stream(ROOT),
    ]
    assert {event.append_last for event in last} == {appended.position}
    assert len({event.command_id for event in last}) == 1
    assert [event.version for event in last] == [8, 3]


async def test_append_with_a_misfit_is_not_recorded(
    postgres: RunningLog,
) -> None:
    archived = (run_stream(run_id(1)), past.archived())
    with pytest.raises(CorruptHistoryError, match="cannot follow stage unborn"):
        await postgres.log.submit(recording(seen(key(1)), archived))
    assert await postgres.events() == []
    assert await postgres.ask("SELECT 1 FROM sessions") == []


async def test_misfit_hurts_only_its_caller(running: ServedLog) -> None:
    misfit = recording((run_stream(run_id(1)), past.archived()))
    answers = await at_once(running.log, observing(key(1)), misfit, observing(key(2)))
    assert isinstance(answers[1], CorruptHistoryError)
    assert await running.types() == ["SessionObserved", "SessionObserved"]


async def test_decision_sees_earlier_ones_of_its_batch(
    running: ServedLog,
) -> None:
    def next_one(world: DecisionContext) -> Decision[int]:
        number = sum(key(number) in world.sessions for number in range(10))
        return Decision(number, [seen(key(number))])

    streams = [session_stream(key(number)) for number in range(10)]
    submissions = [submission(next_one, *streams) for _ in range(10)]
    answers = await at_once(running.log, *submissions)
    assert [answer.result for answer in answers] == list(range(10))
    assert await running.commits() == 1


async def test_answer_shows_state_of_its_own_append(
    running: ServedLog, family: LoggedFamily
) -> None:
    await family.begin("scout")
    stopped, ended = await asyncio.gather(
        family.tell("scout", ask.stop()), family.tell("scout", ask.end(family.run("scout").epoch))
    )
    assert await running.commits() == 5, "the two commands were not decided as one batch"
    assert stopped.runs[family.id("scout")].stage == "started"
    assert ended.runs[family.id("scout")].stage == "ended"
    assert stopped.runs[family.id("scout")].version == 8
    assert stopped.sessions[ROOT].version == 2
    assert (stopped.position, ended.position) == (ended.position - 2, await running.log.head())


@pytest.mark.parametrize(("processes", "at_a_time"), [(1, CALLERS), (2, CALLERS), (2, 4)])
async def test_spawns_at_once_fill_all_places(
    running: ServedLog, processes: int, at_a_time: int
) -> None:
    async with running.other() as second_log:
        logs = [running.log, second_log.log][:processes]
        families = [
            LoggedFamily(log, first=1 + 1000 * number, max_children=PLACES)
            for number, log in enumerate(logs)
        ]
        answers = []
        for first in range(0, CALLERS, at_a_time):
            callers = range(first, first + at_a_time)
            answers += await asyncio.gather(
                *(families[caller % processes].spawn(f"child {caller}") for caller in callers)
            )
    refusals = [answer.result.refusal for answer in answers if answer.result.refusal is not None]
    assert {refusal.rule for refusal in refusals} == {"active_children"}
    assert len(refusals) == CALLERS - PLACES
    types = await running.types()
    assert (types.count("ChildAdmitted"), types.count("SpawnRefused")) == (
        PLACES,
        CALLERS - PLACES,
    )
    session = answers[0].sessions[ROOT]
    assert session.active_children <= PLACES
    counted = [
        event.event for event in await running.events() if event.envelope.type == "ChildAdmitted"
    ]
    assert [getattr(item, "active_children", None) for item in counted] == list(range(PLACES))


async def test_recording_time_never_runs_backwards(postgres: RunningLog) -> None:
    await observe(postgres.log, range(3))
    ahead = datetime.now(UTC) + timedelta(hours=1)
    await postgres.ask("UPDATE log_head SET recorded_at = %s", ahead)
    async with postgres.other() as second_log:
        await observe(second_log.log, range(3, 6))
    events = [event.envelope for event in await postgres.events()]
    assert all(event.recorded_at <= two.recorded_at for event, two in pairwise(events))
    assert [event.recorded_at for event in events[3:]] == [ahead] * 3
    assert all(event.occurred_at < ahead for event in events)


async def test_empty_decision_leaves_no_trace(running: ServedLog) -> None:
    await observe(running.log, ["known"])
    appended = await running.log.submit(
        submission(lambda world: Decision(len(world.sessions)), session_stream(key("known")))
    )
    assert (appended.result, appended.position) == (1, 1)
    assert appended.sessions[key("known")].version == 1
    assert await running.commits() == 1


async def test_caller_that_gives_up_undoes_nothing(running: ServedLog) -> None:
    tasks = [asyncio.create_task(running.log.submit(observing(key(number)))) for number in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [
        False,
        True,
        False,
    ]
    assert len(await running.events()) == 3


async def test_closing_log_writes_what_was_submitted(database_url: str) -> None:
    async with running_on(database_url) as running:
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(running.log.submit(observing(key(number)))) for number in range(200)
        ]
        await asyncio.sleep(0)
        await running.log.close()
        assert all(task.done() for task in tasks)
        assert len(await running.events()) == len(await asyncio.gather(*tasks)) == 200
        with pytest.raises(LogUnavailableError, match="is stopping"):
            await running.log.submit(observing(key("late")))


async def test_full_queue_turns_callers_away(
    running: ServedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUEUE_SUBMISSIONS_MAX", 5)
    answers = await at_once(running.log, *(observing(key(number)) for number in range(8)))
    assert [isinstance(answer, LogUnavailableError) for answer in answers] == [False] * 5 + [
        True
    ] * 3
    assert len(await running.events()) == 5


async def test_stream_is_read_backwards_from_a_version(
    running: ServedLog,
) -> None:
    for number in range(3):
        await activate(running, f'{{"x": {number}}}')
        await observe(running.log, [f"between-{number}"])

    async def versions(**how: int) -> list[int]:
        found = await running.log.newest_of_stream(CONFIG_STREAM, **how)
        assert {event.envelope.stream for event in found} <= {CONFIG_STREAM}
        return [event.envelope.version for event in found]

    assert await versions(limit=10) == [3, 2, 1]
    assert await versions(limit=2) == [3, 2]
    assert await versions(version_max=2, limit=10) == [2, 1]
    assert await versions(version_max=2, limit=1) == [2]
    assert await versions(version_max=2**62, limit=1) == [3]
    assert await versions(version_max=0, limit=1) == []
    assert await running.log.newest_of_stream("log:nothing", limit=1) == []


async def test_stream_has_its_versions_at_every_position(running: ServedLog) -> None:
    await tell_everything(running)
    recorded = await running.events()
    assert CONFIG_STREAM in {event.envelope.stream for event in recorded}
    known = Counter[str]()
    for item in recorded:
        stream, at = item.envelope.stream, item.envelope.position
        known[stream] += 1
        assert await running.log.event_of(stream, item.envelope.version) == item
        for name in (stream, CONFIG_STREAM):
            assert await running.log.version_of(name, at=at) == known[name]
    for name, version in {**known, "run:nobody": 0}.items():
        assert await running.log.version_of(name, at=0) == 0
        assert await running.log.version_of(name, at=len(recorded) + 7) == version
        assert await running.log.event_of(name, version + 1) is None


async def test_version_of_a_long_stream_is_found(running: ServedLog) -> None:
    positions = []
    for _ in range(37):
        await activate(running)
        positions.append(await running.log.head())
    for revision, position in enumerate(positions, 1):
        assert await running.log.version_of(CONFIG_STREAM, at=position) == revision
        assert await running.log.version_of(CONFIG_STREAM, at=position - 1) == revision - 1
