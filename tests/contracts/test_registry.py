"""The registry as it is now, and how it is found in a large one."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from application.ports.registry import InboxQuery, Registry, RunCondition, RunQuery, StatusRows
from application.projections.run_rows import COLUMNS_BY_CREATION
from domain.run.state import Run
from infrastructure.outbound.log.read.moments import Moment, moment_at_end
from infrastructure.outbound.log.schema.connections import PLANNING, LogConnection
from infrastructure.outbound.read_model.registry import RESPAWNS, page_of_runs
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.logged_messages import finish, go_on, send
from tests.support.builders.storytelling import ROOT, ref
from tests.support.memory.served_log import ServedLog
from tests.support.servers.running_log import RunningLog

OTHER = "agent:main:other"
MANY_RUNS = 4_000
VERSIONS = 5


@pytest.fixture
def registry(running: ServedLog) -> Registry:
    return running.registry()


async def test_runs_are_found_by_what_they_are(registry: Registry, family: LoggedFamily) -> None:
    other = LoggedFamily(family.log, root=OTHER, first=500)
    await family.spawn("one", label="reviewer")
    await family.begin("two")
    await family.spawn("below", "two")
    await family.live("three")
    await family.spawn("four", target_agent_id="stranger", agent_id_argument="stranger")
    await other.spawn("stranger", requester_agent_id="main")
    at = await family.log.head()
    third = family.run("three").created_at

    async def found(*conditions: RunCondition, **values: Any) -> list[str]:
        query = RunQuery((*conditions, *RunQuery.where(**values).conditions))
        runs = await registry.runs(query, at=at, limit=99)
        return family.names(run for run in runs if run.run_id != other.id("stranger"))

    assert await found() == ["four", "three", "below", "two", "one"]
    assert await found(requester=ROOT) == ["four", "three", "two", "one"]
    assert await found(requester=family.key("two")) == ["below"]
    assert await found(root=ROOT) == ["four", "three", "below", "two", "one"]
    assert await found(agent_id=("main",)) == ["three", "below", "two", "one"]
    assert await found(agent_id=("main", "stranger", "nobody")) == await found()
    assert await found(label=("reviewer",)) == ["one"]
    assert await found(label=("review",)) == []
    assert await found(label=("review", "reviewer")) == ["one"]
    assert await found(stage=("requested",)) == ["below", "one"]
    assert await found(stage=("started", "refused")) == ["four", "two"]
    assert await found(stage=()) == []
    assert await found(outcome=("success",)) == ["three"]
    assert await found(outcome=("error", "success")) == ["three"]
    assert await found(outcome=("error", "timeout")) == []
    begun, done = StatusRows(("started",)), StatusRows(("announced", "archived"), "success")
    assert await found(status=(begun, done)) == ["three", "two"]
    assert await found(status=(begun, done), outcome=("success",)) == ["three"]
    assert await found(status=(begun, done), stage=("started",)) == ["two"]
    assert await found(status=()) == []
    since = RunCondition("created_at", ">=", third)
    assert await found(since) == ["four", "three"]
    assert await found(RunCondition("created_at", "<", third)) == ["below", "two", "one"]
    assert await found(
        since, RunCondition("created_at", "<", third + timedelta(microseconds=1))
    ) == ["three"]
    assert await found(requester=ROOT, stage=("requested",), label=("reviewer",)) == ["one"]
    assert await found(session_id=family.session_id("two")) == ["two"]
    assert await found(depth=(2, 9)) == await found(RunCondition("depth", ">", 1)) == ["below"]
    assert await found(run_id=(family.id("one"), family.id("two"))) == ["two", "one"]
    assert await found(RunCondition("label", ">=", "reviewer")) == ["one"]
    assert len(await registry.runs(RunQuery.where(root=OTHER), at=at, limit=99)) == 1


async def test_a_session_is_found_by_its_key_and_by_its_id(
    registry: Registry, family: LoggedFamily
) -> None:
    await family.queue("scout")
    by_key = await registry.session(family.key("scout"))
    assert by_key is not None
    assert by_key.run_id == family.id("scout")
    assert await registry.session(str(family.session_id("scout"))) == by_key
    assert await registry.session("agent:main:nobody") is None
    assert await registry.session(str(family.id("scout"))) is None


async def test_a_child_session_tells_its_newest_run(
    registry: Registry, family: LoggedFamily
) -> None:
    await family.spawn("scout")
    assert await registry.runs_of_session(family.key("scout"), limit=5) == []
    await family.create("scout")
    assert await registry.runs_of_session(family.key("scout"), limit=5) == [family.run("scout")]


async def test_the_runs_of_a_session_are_told_the_newest_first_without_those_refused(
    registry: Registry, family: LoggedFamily
) -> None:
    await family.begin("scout")
    await finish(family, "scout")
    await go_on(family, "second", "scout")
    await send(family, "refused", "scout", max_children=0)
    await send(family, "third", "scout")
    key = family.key("scout")
    found = await registry.runs_of_session(key, limit=9)
    assert family.names(found) == ["third", "second", "scout"]
    assert found == [family.run(name) for name in ("third", "second", "scout")]
    assert family.names(await registry.runs_of_session(key, limit=2)) == ["third", "second"]
    assert await registry.runs_of_session("agent:main:nobody", limit=9) == []
    session = await registry.session(key)
    assert session is not None
    assert session.run_id == family.id("third")
    assert family.names(await registry.runs_below(ROOT)) == ["scout", "second", "third"]


async def test_those_below_are_told_parents_first_and_siblings_as_they_came(
    registry: Registry, postgres: RunningLog
) -> None:
    family = LoggedFamily(postgres.log, max_children=20)
    await family.begin("scout")
    siblings = [f"aside-{number}" for number in range(9)]
    for name in siblings:
        await family.spawn(name)
    for name in siblings[3::-1]:
        await family.resolve(name)
    # Known to be small, the table is read as it lies there, newest versions last.
    async with postgres.pool.connection() as connection:
        await connection.execute("ANALYZE runs")
    await family.begin("below", "scout")
    await family.spawn("deepest", "below")
    assert family.names(await registry.runs_below(family.key("scout"))) == ["below", "deepest"]
    everybody = family.names(await registry.runs_below(ROOT))
    assert everybody == ["scout", *siblings, "below", "deepest"]
    assert await registry.runs_below(family.key("deepest")) == []


async def test_an_inbox_holds_what_was_announced_in_order(
    running: ServedLog, registry: Registry, family: LoggedFamily
) -> None:
    async def inbox_of(requester: str | None, after: int = 0, limit: int = 9) -> Sequence[Run]:
        at = await running.log.head()
        return await registry.inbox(InboxQuery(requester), at=at, after=after, limit=limit)

    for name in ("one", "two", "skipped"):
        await family.begin(name)
        await family.end(name)
    await family.announce("two")
    await family.tell("skipped", ask.announce(disposition="skipped", text=None))
    await family.announce("one")
    await family.spawn("refused")
    await family.tell("refused", ask.refuse(1, announcement=ref("it was refused")))
    inbox = await inbox_of(ROOT)
    assert family.names(inbox) == ["two", "one", "refused"]
    position = inbox[0].inbox.position if inbox[0].inbox else 0
    assert family.names(await inbox_of(ROOT, position, 1)) == ["one"]
    assert await inbox_of(family.key("one")) == []
    await family.tell("two", ask.acknowledge())
    await family.tell("two", ask.archive())
    told = await inbox_of(None)
    assert family.names(told) == ["two", "one", "refused"]
    taken = [run.inbox.acknowledged_at is not None for run in told if run.inbox is not None]
    assert taken == [True, False, False]


async def test_lanes_tell_who_is_in_them(
    running: ServedLog, registry: Registry, family: LoggedFamily
) -> None:
    assert (await registry.lanes(at=0), await registry.waiting_lanes(width=9)) == ([], [])
    await family.begin("running")
    await family.queue("claimed")
    await family.tell("claimed", ask.claim())
    await family.queue("first")
    await family.queue("second")
    await family.queue("below", "running")
    (top, deeper) = await registry.lanes(at=await running.log.head())
    assert (top.lane, top.depth, deeper.depth) == ("subagent", 1, 2)
    assert family.names(top.running) == ["running", "claimed"]
    assert family.names(top.queued) == ["first", "second"]
    assert (family.names(deeper.running), family.names(deeper.queued)) == ([], ["below"])
    assert await registry.waiting_lanes(width=9) == [
        ("subagent", 1, False),
        ("subagent", 2, False),
    ]
    await family.tell("below", ask.claim())
    assert await registry.waiting_lanes(width=9) == [("subagent", 1, False)]


async def test_a_lane_that_is_full_waits_for_nobody(
    registry: Registry, family: LoggedFamily
) -> None:
    await family.begin("running")
    for name in ("overtaken", "second"):
        await family.queue(name)
    assert await registry.waiting_lanes(width=1) == [("subagent", 1, True)]
    assert await registry.waiting_lanes(width=2) == [("subagent", 1, False)]
    await family.tell("second", ask.claim())
    # Full, but not by the first ones in line: whoever claims counts.
    assert await registry.waiting_lanes(width=2) == [("subagent", 1, False)]
    await family.tell("overtaken", ask.claim())
    assert await registry.waiting_lanes(width=9) == []


BUSY = (StatusRows(("queued",)), StatusRows(("ended",), "success"))
PAGES = {
    "newest": (RunQuery(), MANY_RUNS * VERSIONS, None, False),
    "middle": (RunQuery(), MANY_RUNS * VERSIONS // 2, None, False),
    "first": (RunQuery(), 60, None, False),
    "deep": (RunQuery(), MANY_RUNS * VERSIONS, MANY_RUNS // 2, False),
    "of two statuses": (RunQuery.where(status=BUSY), MANY_RUNS * VERSIONS // 2, None, False),
    "ascending": (RunQuery(), MANY_RUNS * VERSIONS // 2, MANY_RUNS // 3, True),
}


@pytest.mark.server
async def test_a_page_goes_along_its_index_wherever_it_lies(connection: LogConnection) -> None:
    await _fill(connection)
    for name, (query, at, behind, ascending) in PAGES.items():
        sql, values = page_of_runs(query, moment_at_end(at), 51, behind, ascending=ascending)
        explained = await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", values)
        plan = "\n".join(row[0] for row in await explained.fetchall())
        assert re.search(r"Index Scan (Backward )?using runs_as_of", plan), f"{name}: {plan}"
        assert "Sort" not in plan, f"{name}: {plan}"
        touched = re.search(r"Buffers: shared hit=(\d+)", plan)
        assert touched is not None
        assert int(touched.group(1)) < 51 * VERSIONS * 3, f"{name}: {plan}"


@pytest.mark.server
async def test_a_page_as_of_a_position_inside_of_a_transaction_goes_along_its_index_too(
    connection: LogConnection,
) -> None:
    await connection.execute(PLANNING)
    await _fill(connection)
    family = FamilyLog()
    family.begin("scout")
    for name, (query, at, behind, ascending) in PAGES.items():
        moment = Moment(at + 3, at, family.fold.runs, {})
        sql, values = page_of_runs(query, moment, 51, behind, ascending=ascending)
        explained = await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", values)
        plan = "\n".join(row[0] for row in await explained.fetchall())
        assert re.search(r"Index Scan (Backward )?using runs_as_of", plan), f"{name}: {plan}"
        touched = re.search(r"Buffers: shared hit=(\d+)", plan)
        assert touched is not None
        assert int(touched.group(1)) < 51 * VERSIONS * 3, f"{name}: {plan}"


@pytest.mark.server
async def test_the_plan_that_serves_every_page_goes_along_an_index_too(
    connection: LogConnection,
) -> None:
    """A connection that has asked the same often uses one plan for all values."""
    await _fill(connection)
    for query, index in {
        RunQuery(): "runs_as_of",
        RunQuery.where(requester="agent:main:r7"): "runs_of_a_requester",
        RunQuery.where(root="agent:main:r7"): "runs_of_a_tree",
        RunQuery.where(root="agent:main:r7", status=BUSY, agent_id=("a", "b")): "runs_of_a_tree",
        RunQuery.where(label=("one",)): "runs_by_label",
        RunQuery.where(rule="depth"): "runs_refused_by_a_rule",
        RunQuery.where(label=("one", "two")): "runs_by_label",
        RunQuery.where(respawned_from=UUID(int=7)): "runs_by_respawned_from",
    }.items():
        sql, values = page_of_runs(query, moment_at_end(1), 51, 1, ascending=False)
        for number in range(1, len(values) + 1):
            sql = sql.replace("%s", f"${number}", 1)
        explained = await connection.execute(f"EXPLAIN (GENERIC_PLAN) {sql}")
        plan = "\n".join(row[0] for row in await explained.fetchall())
        assert index in plan, plan


@pytest.mark.server
async def test_columns_by_creation_have_an_index(connection: LogConnection) -> None:
    found = await connection.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'runs'")
    indexes = [re.search(r"\((\w+), created_position\)", row[0]) for row in await found.fetchall()]
    assert {one.group(1) for one in indexes if one is not None} == COLUMNS_BY_CREATION


@pytest.mark.server
async def test_what_was_made_from_a_run_is_found_along_its_index(connection: LogConnection) -> None:
    await _fill(connection)
    values = [[UUID(int=7)] * 50, [MANY_RUNS * VERSIONS] * 50, 100]
    explained = await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {RESPAWNS}", values)
    plan = "\n".join(row[0] for row in await explained.fetchall())
    assert "Index Scan using runs_by_respawned_from" in plan, plan
    assert "Seq Scan" not in plan, plan


async def _fill(connection: LogConnection) -> None:
    """So many runs with so many versions each, interleaved as they would be in a busy log."""
    await connection.execute(
        "INSERT INTO runs (run_id, version, created_position, created_at, from_position,"
        " to_position, stage, session_id, requester, root, epoch, state)"
        " SELECT md5(run::text)::uuid, version, run, now(), run + (version - 1) * %(apart)s,"
        " CASE WHEN version = %(versions)s THEN 4611686018427387904"
        " ELSE run + version * %(apart)s END, 'queued', md5(run::text)::uuid,"
        " 'agent:main:r' || run %% 200, 'agent:main:r' || run %% 200, 1, '{}'"
        " FROM generate_series(1, %(runs)s) AS run, generate_series(1, %(versions)s) AS version",
        {"runs": MANY_RUNS, "versions": VERSIONS, "apart": MANY_RUNS},
    )
    await connection.execute("ANALYZE runs")
