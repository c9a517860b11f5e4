"""A state at a position is the fold of the events up to it; streams that changed between two
positions have events there.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

import pytest

from application.ports.registry import (
    InboxQuery,
    LanePlace,
    LaneState,
    Registry,
    RunCondition,
    RunQuery,
    StatusRows,
)
from application.projections import fold as fold_module
from application.projections.fold import FOREVER, Fold
from domain.run.lifecycle import OVER, SETTLED
from domain.run.state import Run
from domain.values.record import run_id_of, session_key_of
from infrastructure.outbound.log.read import moments, past_runs
from infrastructure.outbound.log.read.fold_input import (
    SPAN_POSITIONS_MAX,
    FoldedRun,
    runs_folded,
    spans_of,
)
from infrastructure.outbound.log.read.moments import Moment, moment_at
from infrastructure.outbound.log.read.state_cache import StateCaches
from infrastructure.outbound.log.rebuild.rebuild import rebuild
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.read_model.registry import PostgresRegistry
from infrastructure.outbound.read_model.run_bars import PostgresRunBars
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import a_family
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import ROOT
from tests.support.builders.submissions import at_once, key, observe, observing, recording
from tests.support.builders.whole_story import tell_everything
from tests.support.memory.served_log import ServedLog
from tests.support.models.random_family import live_at_random
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import nightly_but, stride

RUNS_MAX = 500

HISTORY = a_family()

BUSY = ("queued", "started")

WAITING = StatusRows(("session-created",), waiting=True)

FILTERS: tuple[tuple[RunQuery, Callable[[Run], bool]], ...] = (
    (RunQuery.where(stage=BUSY), lambda run: run.stage in BUSY),
    (RunQuery.where(outcome=("success",)), lambda run: run.outcome == "success"),
    (
        RunQuery.where(requester=ROOT, stage=("ended",)),
        lambda run: (run.requester.session_key, run.stage) == (ROOT, "ended"),
    ),
    (
        RunQuery.where(root=ROOT, status=(StatusRows(BUSY), WAITING)),
        lambda run: (
            run.stage in BUSY or (run.stage == "session-created" and run.waits_for is not None)
        ),
    ),
    (
        RunQuery.where(rule="stopped", depth=1),
        lambda run: run.refusal is not None and (run.refusal.rule, run.depth) == ("stopped", 1),
    ),
    (
        RunQuery(
            (
                *RunQuery.where(root=ROOT, depth=2).conditions,
                RunCondition("label", "begins with", ("o", "tw")),
            )
        ),
        lambda run: run.depth == 2 and (run.label or "").startswith(("o", "tw")),
    ),
    (
        RunQuery((RunCondition("label", "is or begins with", (("one", "t"), ("tw",))),)),
        lambda run: run.label == "one" or (run.label or "").startswith("tw"),
    ),
    (RunQuery(), lambda run: True),
)


async def _is_the_fold_everywhere(running: ServedLog, registry: Registry) -> None:
    fold = Fold((), ())
    events = await running.events()
    for recorded in events:
        envelope, before = recorded.envelope, dict(fold.runs)
        fold.apply(envelope.stream, recorded.event, envelope.stamp)
        at = envelope.position
        run_id = run_id_of(envelope.stream)
        if run_id is not None:
            run = fold.runs[run_id]
            assert await registry.run(run_id, at=at) == run
            assert await registry.run(run_id, at=at - 1) == before.get(run_id)
            assert await registry.run_at_version(run_id, run.version) == run
        owner = session_key_of(envelope.stream)
        if owner is not None:
            by_id = str(fold.sessions[owner].session_id)
            assert await registry.session(by_id, at=at) == fold.sessions[owner]
        if at % stride(5):
            continue
        for session_key, session in fold.sessions.items():
            assert await registry.session(session_key, at=at) == session
        listed = await _all_runs(registry, at)
        newest_first = sorted(fold.runs.values(), key=lambda run: -run.created_position)
        assert list(listed) == newest_first
        query, is_meant = FILTERS[at % len(FILTERS)]
        meant = [run for run in newest_first if is_meant(run)]
        assert await registry.runs(query, at=at, limit=RUNS_MAX) == meant
        page = await registry.runs(query, at=at, limit=2, after_cursor=at // 2, ascending=True)
        assert page == [item for item in reversed(meant) if item.created_position > at // 2][:2]
        stages = [run.stage for run in fold.runs.values()]
        pending = sum(stage not in SETTLED for stage in stages)
        running_still = sum(stage not in OVER for stage in stages)
        assert await registry.descendants(ROOT, at=at) == (pending, running_still)
        await _lanes_and_inboxes_are_the_fold(registry, list(fold.runs.values()), at)
    for run_id, run in fold.runs.items():
        assert await registry.run(run_id) == run
    for session_key, session in fold.sessions.items():
        assert await registry.session(session_key) == session


async def _lanes_and_inboxes_are_the_fold(registry: Registry, runs: Sequence[Run], at: int) -> None:
    waiting = [run for run in runs if run.stage in BUSY]
    waiting.sort(key=lambda run: (run.lane, run.lane_depth, run.queued_position))
    expected = [
        (lane, depth, [(run.run_id, run.label, run.requester.session_key, run.holder)])
        for run in waiting
        for lane, depth in [(run.lane, run.lane_depth)]
    ]
    found = [
        (lane.lane, lane.depth, [tuple(place)])
        for lane in await registry.lanes(at=at)
        for place in _in_line(lane, waiting)
    ]
    assert found == expected
    announced = [run for run in runs if run.inbox is not None and run.inbox.disposition == "inbox"]
    announced.sort(key=lambda run: run.inbox.position if run.inbox is not None else 0)
    for query, meant in (
        (InboxQuery(), announced),
        (InboxQuery(ROOT), [run for run in announced if run.requester.session_key == ROOT]),
        (InboxQuery(is_parked=True), [run for run in announced if run.is_parked]),
    ):
        assert await registry.inbox(query, at=at, after=0, limit=RUNS_MAX) == meant
        after = at // 2
        unread = [run for run in meant if run.inbox is not None and run.inbox.position > after]
        assert await registry.inbox(query, at=at, after=after, limit=2) == unread[:2]


def _in_line(lane: LaneState, runs: Sequence[Run]) -> Sequence[LanePlace]:
    """Return the runs of both lists of a lane in the order queued; each list has its own order."""
    order = [run.run_id for run in runs]
    for places in (lane.running, lane.queued):
        indexes = [order.index(place.run_id) for place in places]
        assert indexes == sorted(indexes)
    assert all(item.holder is not None for item in lane.running)
    assert all(item.holder is None for item in lane.queued)
    return sorted((*lane.running, *lane.queued), key=lambda run: order.index(run.run_id))


async def _all_runs(registry: Registry, at: int) -> Sequence[Run]:
    return await registry.runs(RunQuery(), at=at, limit=RUNS_MAX)


@pytest.mark.server
async def test_state_is_the_fold_at_every_position(running: ServedLog, registry: Registry) -> None:
    await tell_everything(running)
    await _is_the_fold_everywhere(running, registry)


@pytest.mark.server
@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2))
async def test_state_is_the_fold_inside_large_appends(
    postgres: RunningLog, registry: Registry, seed: int
) -> None:
    await live_at_random(postgres, seed, rounds=40, at_once=6)
    assert {"RunContinued", "ArchiveScheduled"} <= set(await postgres.types())
    assert await postgres.commits() < await postgres.log.head() / 2
    await _is_the_fold_everywhere(postgres, registry)
    assert (await rebuild(postgres.url)).differing == 0


@pytest.mark.server
@pytest.mark.parametrize("seed", nightly_but(range(3), [0]))
async def test_history_reads_alike_however_it_was_appended(
    running: ServedLog, registry: Registry, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_module, "STATE_VERSIONS_MAX", 3)
    die = random.Random(seed)
    changes = [(event.stream, event.event) for event in HISTORY]
    transactions = 0
    while changes:
        length, first = die.randint(1, 14), die.randint(1, 7)
        taken, changes = changes[:length], changes[length:]
        request = [recording(*part) for part in (taken[:first], taken[first:]) if part]
        await at_once(running.log, *request)
        transactions += 1
    assert await running.commits() == transactions < len(HISTORY) / 4
    await _is_the_fold_everywhere(running, registry)
    if isinstance(running, RunningLog):
        before = await _rows(running)
        assert (await rebuild(running.url)).differing == 0
        assert await _rows(running) == before


@pytest.mark.server
async def test_transaction_opens_one_row_of_each(postgres: RunningLog) -> None:
    changes = [(event.stream, event.event) for event in HISTORY]
    await at_once(postgres.log, recording(*changes[:20]), recording(*changes[20:]))
    last = {stream: position for position, (stream, _) in enumerate(changes, 1)}
    found = "SELECT 'run:' || run_id, from_position, to_position FROM runs"
    rows = await postgres.ask(
        f"{found} UNION ALL SELECT 'session:' || session_key, from_position, to_position"
        " FROM sessions"
    )
    assert sorted(rows) == sorted((stream, at, FOREVER) for stream, at in last.items())


async def test_reads_of_now_look_up_no_transaction(
    postgres: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    async def noting(connection: LogConnection, position: int) -> Moment:
        looked.append(position)
        return await moment_at(connection, position)

    monkeypatch.setattr(moments, "moment_at", noting)
    registry = PostgresRegistry(postgres.pool, postgres.log.remembered)
    await at_once(postgres.log, *(observing(key(number)) for number in range(3)))
    head = await postgres.log.head()
    assert await registry.position_at(datetime.now(UTC)) == head
    assert await registry.runs(RunQuery(), at=head, limit=9) == []
    assert await registry.descendants(ROOT, at=head) == (0, 0)
    assert await registry.run(UUID(int=9), at=head) is None
    assert await registry.session(key(2), at=head) == await registry.session(key(2))
    assert looked == []
    assert await registry.session(key(1), at=2) is not None
    assert await registry.session(key(2), at=2) is None
    assert looked == [2]
    # A read at that position also returned the instant.
    (recorded_at,) = {event.envelope.recorded_at for event in await postgres.events()}
    assert postgres.log.known_instant(2) == recorded_at


@pytest.mark.server
@pytest.mark.told("everything")
async def test_next_moment_folds_only_changes(
    postgres: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded: list[UUID] = []

    async def noting(
        connection: LogConnection, wanted: Sequence[tuple[UUID, int]]
    ) -> dict[tuple[UUID, int], FoldedRun]:
        folded.extend(run_id for run_id, _ in wanted)
        return await runs_folded(connection, wanted)

    monkeypatch.setattr(past_runs, "runs_folded", noting)
    remembered = StateCaches()
    registry = PostgresRegistry(postgres.pool, remembered)
    first, second = [row[0] for row in await postgres.ask(_TWO_ENDS)]
    before = await registry.runs(RunQuery(), at=first, limit=RUNS_MAX)
    assert folded
    folded.clear()
    after = await registry.runs(RunQuery(), at=second, limit=RUNS_MAX)
    assert len(folded) <= len([run for run in after if run not in before]) < len(after)
    folded.clear()
    remembered.forget()
    assert await registry.runs(RunQuery(), at=second, limit=RUNS_MAX) == after
    assert len(folded) > len([run for run in after if run not in before])


@pytest.mark.server
@pytest.mark.told("everything")
async def test_folded_stages_are_not_read_again(
    postgres: RunningLog,
) -> None:
    remembered = StateCaches()
    registry = PostgresRegistry(postgres.pool, remembered)
    looks = {"folded": remembered.past_runs.stages, "inside": remembered.moments.stages}
    answered: Counter[str] = Counter()
    for at in range(1, await postgres.log.head(), stride(5)):
        runs = await registry.runs(RunQuery(), at=at, limit=RUNS_MAX)
        versions = {run.run_id: run.version for run in runs}
        read = await PostgresRunBars(postgres.pool).stages(versions)
        assert await PostgresRunBars(postgres.pool, remembered).stages(versions) == read
        for name, look in looks.items():
            result = {run_id: look(run_id, version) for run_id, version in versions.items()}
            assert all(
                read[run_id] == answer for run_id, answer in result.items() if answer is not None
            )
            answered[name] += sum(answer is not None for answer in result.values())
    assert remembered.past_runs.stages(runs[0].run_id, 99) is None
    assert all(answered[name] for name in looks)


@pytest.mark.told("everything")
async def test_memory_of_the_past_is_bounded(
    postgres: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_runs, "RUNS_REMEMBERED_MAX", 2)
    monkeypatch.setattr(moments, "MOMENTS_REMEMBERED_MAX", 2)
    remembered = StateCaches()
    registry = PostgresRegistry(postgres.pool, remembered)
    for at in range(1, await postgres.log.head()):
        await registry.runs(RunQuery(), at=at, limit=RUNS_MAX)
    assert len(remembered.past_runs) == len(remembered.moments) == 2


@pytest.mark.server
@pytest.mark.told("everything")
async def test_read_across_a_reset_is_not_remembered(
    postgres: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered = StateCaches()

    async def interrupted(
        connection: LogConnection, wanted: Sequence[tuple[UUID, int]]
    ) -> dict[tuple[UUID, int], FoldedRun]:
        folded = await runs_folded(connection, wanted)
        remembered.forget()
        return folded

    async def cut(connection: LogConnection, position: int) -> Moment:
        moment = await moment_at(connection, position)
        remembered.forget()
        return moment

    monkeypatch.setattr(past_runs, "runs_folded", interrupted)
    monkeypatch.setattr(moments, "moment_at", cut)
    registry = PostgresRegistry(postgres.pool, remembered)
    for at in range(1, await postgres.log.head()):
        assert await registry.runs(RunQuery(), at=at, limit=RUNS_MAX) is not None
        assert len(remembered.past_runs) == len(remembered.moments) == 0
        assert at not in remembered.ends


# Two positions in the middle of the log, whose rows are no longer the current ones.
_TWO_ENDS = (
    "SELECT last_position FROM commits WHERE last_position > (SELECT max(last_position) / 2"
    " FROM commits) ORDER BY last_position LIMIT 2"
)


async def _rows(running: RunningLog) -> list[list[Any]]:
    return [
        await running.ask(f"SELECT t::text FROM {table} t ORDER BY 1")
        for table in ("runs", "sessions")
    ]


async def test_nothing_is_there_before_it_was_recorded(
    registry: Registry, family: LoggedFamily
) -> None:
    await family.spawn("scout")
    scout = family.id("scout")
    unknown = [await registry.run(scout, at=at) is None for at in (0, 1, 2, 3)]
    assert unknown == [True, True, False, False]
    assert await registry.session(ROOT, at=0) is None
    assert await registry.run(UUID(int=9)) is None
    assert await registry.run_at_version(scout, 0) is None
    assert await registry.run_at_version(scout, family.run("scout").version + 1) is None
    assert await registry.run(scout, at=10**9) == await registry.run(scout)


@pytest.mark.parametrize("ascending", [False, True])
async def test_pages_of_a_listing_are_one_moment(
    running: ServedLog, registry: Registry, ascending: bool
) -> None:
    family = LoggedFamily(running.log, max_children=50)
    for number in range(9):
        await family.queue(f"r{number}")
    at = await running.log.head()
    expected = await _all_runs(registry, at)
    found: list[Run] = []
    for number in range(6):
        after_cursor = found[-1].created_position if found else None
        found += await registry.runs(
            RunQuery(), at=at, limit=2, after_cursor=after_cursor, ascending=ascending
        )
        await family.tell(f"r{number}", ask.stop())
        await family.spawn(f"late {number}")
    assert found == (list(reversed(expected)) if ascending else list(expected))
    assert {run.stage for run in found} == {"queued"}
    assert len(await _all_runs(registry, await running.log.head())) == 15


async def test_instant_is_the_last_whole_append(running: ServedLog, registry: Registry) -> None:
    start = datetime.now(UTC) - timedelta(minutes=1)
    assert await registry.position_at(start) == 0
    for number in range(4):
        await at_once(running.log, *(observing(key(f"{number}-{item}")) for item in range(5)))
    await observe(running.log, ["last"])
    envelopes = [event.envelope for event in await running.events()]
    assert await registry.position_at(start) == 0
    for recorded_at, group in groupby(envelopes, key=lambda envelope: envelope.recorded_at):
        last = max(item.position for item in group)
        assert await registry.position_at(recorded_at) == last
        assert await registry.position_at(recorded_at - timedelta(microseconds=1)) < last
    assert await registry.position_at(start + timedelta(days=1)) == len(envelopes)


async def test_equal_instants_mean_the_last_append(
    postgres: RunningLog, registry: Registry
) -> None:
    ahead = datetime.now(UTC) + timedelta(hours=1)
    await postgres.ask("UPDATE log_head SET recorded_at = %s", ahead)
    await observe(postgres.log, range(4))
    assert await registry.position_at(ahead) == 4
    assert await registry.position_at(ahead - timedelta(seconds=1)) == 0


async def _all_pages(
    registry: Registry, after: int, until: int, events_max: int, tree: str | None
) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    after_cursor = after
    while after_cursor < until:
        page = await registry.changed_streams(
            after=after, until=until, after_cursor=after_cursor, events_max=events_max, tree=tree
        )
        assert after_cursor < page.examined <= until
        assert all(after_cursor < stream.position <= page.examined for stream in page.streams)
        found += page.streams
        after_cursor = page.examined
    return found


@pytest.mark.server
async def test_changed_stream_is_found_once(running: ServedLog, registry: Registry) -> None:
    await tell_everything(running)
    await LoggedFamily(running.log, root="agent:main:other", first=500).live("elsewhere")
    events = [event.envelope for event in await running.events()]
    die = random.Random(7)
    for _ in range(30):
        after, until = sorted(die.randint(0, len(events)) for _ in range(2))
        tree = die.choice([None, ROOT, "agent:main:other"])
        first: dict[str, int] = {}
        for item in events[after:until]:
            if tree is None or item.provenance.correlation == tree:
                first.setdefault(item.stream, item.position)
        found = await _all_pages(registry, after, until, die.choice([1, 7, 1000]), tree)
        assert found == sorted(first.items(), key=lambda item: item[1])


@pytest.mark.server
async def test_several_states_are_those_of_each_alone(
    running: ServedLog, registry: Registry
) -> None:
    await tell_everything(running)
    streams = {event.envelope.stream for event in await running.events()}
    run_ids = [id for id in map(run_id_of, streams) if id is not None]
    keys = [key for key in map(session_key_of, streams) if key is not None]
    every = range(0, await running.log.head() + 1, stride(17))
    for at, found in zip(every, await registry.states(run_ids, keys, at=every), strict=True):
        runs = {id: await registry.run(id, at=at) for id in run_ids}
        sessions = {key: await registry.session(key, at=at) for key in keys}
        assert found.runs == {id: run for id, run in runs.items() if run is not None}
        assert found.sessions == {
            key: session for key, session in sessions.items() if session is not None
        }
    assert await registry.states([], [], at=[0]) == [({}, {})]
    assert await registry.states(run_ids, keys, at=[]) == []


def test_distant_positions_are_folded_apart() -> None:
    near, far = 1 + SPAN_POSITIONS_MAX, 2 + SPAN_POSITIONS_MAX
    spans = spans_of([("b", 5), ("a", far), ("a", near), ("a", 1)])
    assert spans == [("a", [1, near]), ("a", [far]), ("b", [5])]
