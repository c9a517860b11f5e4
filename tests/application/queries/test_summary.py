"""The summary counts spawned and ended runs between two moments, and groups failures."""

import re
from datetime import datetime
from typing import Any

import pytest

from application.ports.registry import LiveRuns, RunCondition, RunQuery
from application.ports.run_search import ScanWindow
from application.ports.runtimes import TranscriptEntry
from application.queries import runs, runs_at_work, summary
from application.queries.access import Caller
from application.queries.errors import QueryError
from application.queries.runs import (
    GetRun,
    GetRunTranscript,
    ListRuns,
    get_run,
    get_run_transcript,
    list_runs,
)
from application.queries.search import failures, run_totals
from application.queries.services import QueryServices
from application.queries.summary import GetSummary, get_summary
from application.queries.timeline.tree import GetSessionTree, get_session_tree
from application.queries.timeline.usage import ListTreeUsage, list_tree_usage
from application.queries.views.run import RunListView, status_of
from application.queries.views.summary import SummaryView, WaitView
from domain.run.facts import Usage
from domain.run.lifecycle import OVER
from infrastructure.outbound.log.read.moments import moment_at_end
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection
from infrastructure.outbound.read_model.run_search import counts_sql, errors_sql
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import caller
from tests.support.builders.storytelling import ref
from tests.support.builders.waiting_runs import dependency
from tests.support.servers.running_log import RunningLog

READER = caller("read", "content")
TIDE = "Traceback (most recent call last):\n  File 'x', line {}\nTimeoutError: tide service {}\n"


class Storm:
    """Runs in a log, and their errors beside it."""

    def __init__(self, running: RunningLog) -> None:
        self.running = running
        self.family = LoggedFamily(running.log, max_children=30, allow_agents=("writer",))

    async def fail(self, name: str, error: str, outcome: str = "error", **changes: Any) -> None:
        found = ref(error)
        session_id = self.family.session_id(name)
        async with borrow_connection(self.running.pool) as connection:
            await connection.execute(
                "INSERT INTO contents (content_id, session_id, kind, body, bytes)"
                " VALUES (%s, %s, 'error', %s, %s)",
                [found.id, session_id, error, found.bytes],
            )
        await self.family.end(name, outcome=outcome, error=found, result=None, **changes)

    async def head(self) -> int:
        return await self.running.log.head()


@pytest.fixture
def storm(running: RunningLog) -> Storm:
    return Storm(running)


def _usage(tokens: int) -> Usage:
    return Usage(input_tokens=tokens, output_tokens=2, models=())


async def _summary(
    services: QueryServices,
    begin: int | None,
    end: int | None = None,
    by: Caller = READER,
    **more: Any,
) -> SummaryView:
    moments = {
        name: f"pos:{position}"
        for name, position in (("begin", begin), ("end", end))
        if position is not None
    }
    return (await get_summary(services, by, GetSummary(**moments, **more))).view


async def _listed(services: QueryServices, by: Caller = READER, **query: Any) -> RunListView:
    return (await list_runs(services, by, ListRuns(**query))).view


async def test_list_names_cause_of_each_error(services: QueryServices, storm: Storm) -> None:
    frames = "".join(f"  File 'tide.py', line {line}, in ask\n" for line in range(20))
    traceback = f"Traceback (most recent call last):\n{frames}TimeoutError: no tide\n\n"
    await storm.family.begin("long")
    await storm.family.begin("one line")
    await storm.family.begin("short")
    await storm.fail("long", traceback)
    await storm.fail("one line", "no tide " * 30)
    await storm.fail("short", "no tide")
    listed = (await _listed(services)).items
    whole = ("no tide " * 30).rstrip()
    assert [run.error_cause for run in listed] == ["no tide", whole, "TimeoutError: no tide"]
    previews = ["no tide", ("no tide " * 30)[:200], traceback[:200]]
    assert [run.error for run in listed] == previews
    by_reader = (await _listed(services, caller("read"))).items
    assert [run.error_cause for run in by_reader] == [None] * 3
    assert [run.error for run in by_reader] == previews


async def test_summary_counts_what_was_spawned_and_what_ended(
    services: QueryServices, storm: Storm
) -> None:
    family = storm.family
    await family.begin("old")
    await family.live("over before")
    before = await storm.head()
    await family.begin("new")
    await family.spawn("refused", target_agent_id="stranger", agent_id_argument="stranger")
    await family.end("old", usage=_usage(40))
    end = await storm.head()
    await family.end("new", usage=_usage(100))

    found = await _summary(services, before, end)
    assert (found.after, found.until) == (before, end)
    assert (found.spawned.runs, found.spawned.statuses) == (2, {"refused": 1, "running": 1})
    assert (found.ended.runs, found.ended.statuses) == (2, {"done": 1, "refused": 1})
    assert found.ended.rules == {"allow_agents": 1}
    assert found.ended.statuses_by_agent == {"main": {"done": 1}, "stranger": {"refused": 1}}
    assert (found.ended.input_tokens, found.spawned.input_tokens) == (40, 0)
    assert [usage.agent_id for usage in found.ended.usage_by_agent] == ["main"]
    assert (found.live.running, found.live.waits, found.live.cut) == (1, [], False)
    assert found.failures == []
    later = await _summary(services, end)
    assert (later.ended.statuses, later.ended.input_tokens) == ({"done": 1}, 100)
    assert later.spawned.runs == later.live.running == 0
    none = await _summary(services, end, end)
    assert (none.spawned.runs, none.ended.runs, none.live.running) == (0, 0, 1)
    whole = await _summary(services, 0)
    assert (whole.spawned.runs, whole.ended.runs) == (4, 4)


async def test_sums_of_now_include_running_runs_so_far(
    services: QueryServices, storm: Storm
) -> None:
    family = storm.family
    await family.begin("ended")
    await family.end("ended", usage=_usage(40))
    for name, tokens in (("first", 7), ("second", 5)):
        await family.begin(name, label=name)
        used = TranscriptEntry("usage", {"inputTokens": tokens, "outputTokens": 1, "model": "m"})
        run = family.run(name)
        assert await services.transcripts.append(run.run_id, run.epoch, 1, [used, used])
    # The page has one of the three runs, its totals have all.
    now = (await _listed(services, totals=True, limit=1)).totals
    whole = (await _listed(services, totals=True)).totals
    assert now is not None
    assert now == whole
    assert (now.runs, now.input_tokens, now.output_tokens) == (3, 64, 6)
    assert [usage.input_tokens for usage in now.usage_by_agent] == [64]
    assert [usage.input_tokens for usage in now.usage_by_day] == [64]
    second = (await _listed(services, totals=True, label=("second",))).totals
    assert second is not None
    assert second.input_tokens == 10
    words = (await _listed(services, totals=True, q="second")).totals
    assert words is not None
    assert words.input_tokens == 10
    summary = await _summary(services, 0)
    assert (summary.spawned.input_tokens, summary.ended.input_tokens) == (64, 40)
    (live,) = summary.live.usage_by_agent
    assert (live.runs, live.input_tokens, live.unpriced_models) == (2, 24, 1)


async def test_sums_of_the_past_include_what_running_runs_had_used_by_then(
    services: QueryServices, storm: Storm, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = storm.family
    await family.begin("early", label="early")
    run = family.run("early")

    async def use(tokens: int, sequence: int) -> None:
        entry = TranscriptEntry("usage", {"inputTokens": tokens, "outputTokens": 1, "model": "m"})
        assert await services.transcripts.append(run.run_id, run.epoch, sequence, [entry])

    async def sums(at: int) -> tuple[list[int], list[int]]:
        listed = await _listed(services, totals=True, at=f"pos:{at}")
        summary = await _summary(services, 0, at)
        assert listed.totals is not None
        live = sum(usage.input_tokens for usage in summary.live.usage_by_agent)
        spawned = summary.spawned
        (item,) = [item for item in listed.items if item.label == "early"]
        own = item.usage.input_tokens if item.usage is not None else 0
        unsummed = {listed.totals.running_not_summed, spawned.running_not_summed}
        tokens = [listed.totals.input_tokens, spawned.input_tokens, live, own]
        return tokens, sorted(unsummed | {summary.live.running_not_summed})

    await use(7, 1)
    await family.begin("between")
    between = await storm.head()
    await use(50, 2)
    await family.begin("after")
    after = await storm.head()
    await use(900, 3)
    assert await sums(between) == ([7] * 4, [0])
    assert await sums(after) == ([57] * 4, [0])
    await family.end("early", usage=_usage(957))
    assert await sums(after) == ([57] * 4, [0])
    # Of three running runs each may have three entries.
    monkeypatch.setattr(runs_at_work, "PAST_ENTRIES_MAX", 5)
    assert await sums(after) == ([0] * 4, [1])


async def test_sums_as_of_an_instant_include_what_was_used_after_the_last_event(
    services: QueryServices, storm: Storm
) -> None:
    family, log = storm.family, services.work.log
    await family.begin("first", label="first")
    await family.begin("second", label="second")
    run, head = family.run("first"), await storm.head()
    entry = TranscriptEntry("usage", {"inputTokens": 7, "outputTokens": 1, "model": "m"})
    assert await services.transcripts.append(run.run_id, run.epoch, 1, [entry])
    instant = log.now().isoformat()
    assert await services.transcripts.append(run.run_id, run.epoch, 2, [entry])
    for at, tokens in ((f"pos:{head}", 0), (instant, 7)):
        page = await _listed(services, totals=True, limit=1, at=at)
        assert page.totals is not None
        assert page.totals.input_tokens == tokens
        (second,) = (await _listed(services, limit=1, at=at, cursor=page.next_cursor)).items
        assert (second.usage.input_tokens if second.usage else 0) == tokens
        summary = (await get_summary(services, READER, GetSummary(begin="pos:0", end=at))).view
        assert sum(usage.input_tokens for usage in summary.live.usage_by_agent) == tokens
        tree = await get_session_tree(services, READER, family.root, GetSessionTree(at=at))
        assert tree.view.root.total.input_tokens == tokens
        usage = await list_tree_usage(services, READER, ListTreeUsage(trees=(family.root,), at=at))
        assert [one.input_tokens for one in usage.view.items] == [tokens]
        found = (await get_run(services, READER, str(run.run_id), GetRun(at=at))).view
        assert (found.usage.input_tokens if found.usage else 0) == tokens
        told = await get_run_transcript(
            services, READER, str(run.run_id), GetRunTranscript(at=at, last=9, tools=True)
        )
        assert len(told.view.items) == tokens // 7


async def test_sums_say_how_many_running_runs_they_lack(
    services: QueryServices, storm: Storm, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storm.family.begin("ended")
    await storm.family.end("ended", usage=_usage(40))
    begin = await storm.head()
    for name in ("first", "second", "third"):
        await storm.family.begin(name, label=name)
    listed, summary = await _listed(services, totals=True, limit=1), await _summary(services, begin)
    assert listed.totals is not None
    assert listed.totals.running_not_summed == summary.live.running_not_summed == 0
    monkeypatch.setattr(runs, "RUNNING_SUMMED_MAX", 1)
    listed, summary = await _listed(services, totals=True, limit=1), await _summary(services, begin)
    assert listed.totals is not None
    assert (listed.totals.running_not_summed, summary.live.running_not_summed) == (2, 2)
    assert (summary.spawned.running_not_summed, summary.ended.running_not_summed) == (2, 0)
    by_label = (await _listed(services, totals=True, label=("first", "second"), limit=1)).totals
    assert by_label is not None
    assert by_label.running_not_summed == 1
    tree = await get_session_tree(services, READER, storm.family.root, GetSessionTree())
    assert tree.view.running_not_summed == 2


async def test_summary_is_that_of_the_states_at_both_moments(
    services: QueryServices, storm: Storm
) -> None:
    family = storm.family
    await family.begin("one")
    await family.spawn("two")
    await family.spawn("refused", target_agent_id="stranger", agent_id_argument="stranger")
    await family.create("two")
    await family.end("one", outcome="stopped")
    await family.live("three")
    head = await storm.head()
    registry = services.work.registry
    states = [
        {run.run_id: run for run in await registry.runs(RunQuery(), at=at, limit=100)}
        for at in range(head + 1)
    ]
    for begin in range(head + 1):
        for end in range(begin, head + 1):
            found = await _summary(services, begin, end)
            was, now = states[begin], states[end]
            over = [
                run
                for run_id, run in now.items()
                if run.stage in OVER and (run_id not in was or was[run_id].stage not in OVER)
            ]
            assert found.spawned.runs == len(now.keys() - was.keys()), (begin, end)
            statuses = sorted(status_of(run) for run in over)
            assert (
                sorted(
                    status for status, count in found.ended.statuses.items() for _ in range(count)
                )
                == statuses
            ), (begin, end)
            live = sum(run.stage not in OVER for run in now.values())
            shown = found.live
            assert shown.preparing + shown.waiting + shown.queued + shown.running == live


async def test_failures_are_grouped_by_cause(services: QueryServices, storm: Storm) -> None:
    family = storm.family
    for number in range(7):
        await family.begin(f"tide-{number}")
        await storm.fail(f"tide-{number}", TIDE.format(number, number))
    await family.begin("slow", target_agent_id="writer", agent_id_argument="writer")
    await storm.fail("slow", TIDE.format("other", 100), outcome="timeout")
    await family.begin("broken")
    await storm.fail("broken", "exit status 3")
    await family.begin("stopped")
    await storm.fail("stopped", "by somebody", outcome="stopped")
    await family.begin("silent")
    await family.end("silent", outcome="error", error=ref("erased"), result=None)

    found = await _summary(services, 0)
    tide, *others = found.failures
    assert (tide.cause, tide.error) == (
        "TimeoutError: tide service <n>",
        "TimeoutError: tide service …",
    )
    assert (tide.runs, tide.agents) == (8, {"main": 7, "writer": 1})
    assert tide.statuses == {"failed": 7, "timeout": 1}
    assert tide.newest_at == family.run("slow").ended_at
    assert tide.run_ids == [
        family.id(name) for name in ("slow", "tide-6", "tide-5", "tide-4", "tide-3")
    ]
    assert [(item.cause, item.runs) for item in others] == [
        ("exit status <n>", 1),
        ("no error text", 1),
    ]
    assert found.further_causes == 0

    listed = await _listed(services, cause=tide.cause, totals=True)
    assert [run.run_id for run in listed.items][:5] == tide.run_ids
    assert len(listed.items) == 8
    assert listed.totals is not None
    assert listed.totals.statuses == tide.statuses
    line = "TimeoutError: tide service 100"
    by_line = await _listed(services, cause=line, agent_ids=("writer",))
    assert [run.run_id for run in by_line.items] == [family.id("slow")]
    assert (await _listed(services, cause="nothing")).items == []
    silent = await _listed(services, cause="no error text")
    assert [run.run_id for run in silent.items] == [family.id("silent")]
    masked = await _summary(services, 0, by=caller("read"))
    assert masked.failures[0].cause == tide.cause
    # Lines that have other numbers of words share only their cause.
    for name, error in (
        ("one", "tide 'low'"),
        ("two", "tide 'at the pier'"),
        ("three", "tide 'high'"),
    ):
        await family.begin(name)
        await storm.fail(name, error)
    found = await _summary(services, 0)
    errors = {group.cause: group.error for group in found.failures}
    assert errors["tide <text>"] == "tide <text>"


async def test_list_of_cause_is_paged_and_bounded(
    services: QueryServices, storm: Storm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_totals, "COUNTED_MAX", 2)
    monkeypatch.setattr(failures, "CAUSES_MAX", 1)
    family = storm.family
    for number in range(3):
        await family.begin(f"tide-{number}")
        await storm.fail(f"tide-{number}", f"tide {number}")
    await family.begin("other")
    await storm.fail("other", "a storm")
    pages = [await _listed(services, cause="tide <n>", limit=1)]
    while pages[-1].next_cursor is not None:
        pages.append(
            await _listed(services, cause="tide <n>", limit=1, cursor=pages[-1].next_cursor)
        )
    found = [run.run_id for page in pages for run in page.items]
    assert found == [family.id(f"tide-{number}") for number in (2, 1, 0)]
    with pytest.raises(QueryError, match="another query"):
        await _listed(services, cause="storm", cursor=pages[0].next_cursor)
    summary = await _summary(services, 0)
    assert (len(summary.failures), summary.further_causes) == (1, 1)
    assert summary.ended.counted_to == family.run("tide-2").created_position


async def test_runs_are_listed_by_when_they_ended(services: QueryServices, storm: Storm) -> None:
    family = storm.family
    await family.begin("early")
    await family.begin("late")
    await family.spawn("refused", target_agent_id="stranger", agent_id_argument="stranger")
    await family.end("early")
    between = await storm.head()
    await family.live("new")
    await family.end("late")
    await family.begin("running")

    async def names(**query: Any) -> list[str]:
        listed = await _listed(services, **query)
        return [
            name
            for run in listed.items
            for name in ("early", "late", "refused", "new", "running")
            if family.id(name) == run.run_id
        ]

    point = f"pos:{between}"
    assert await names(ended_since=point) == ["new", "late"]
    assert await names(ended_until=point) == ["refused", "early"]
    assert await names(ended_since=point, order="asc", limit=1) == ["late"]
    assert await names(ended_since=point, q="look") == ["new", "late"]
    assert await names(ended_since="pos:0", ended_until=point, statuses=("done",)) == ["early"]
    assert await names(ended_since=point, at=point) == []
    assert await names(ended_until=point, at="pos:1") == []
    assert await names(ended_since="1h") == ["new", "refused", "late", "early"]
    first = await _listed(services, ended_since=point, limit=1)
    rest = await _listed(services, ended_since=point, limit=1, cursor=first.next_cursor)
    assert [run.run_id for run in rest.items] == [family.id("late")]
    with pytest.raises(QueryError) as refused:
        await _listed(services, ended_since="soon")
    assert refused.value.errors[0]["pointer"] == "/query/endedSince"


async def test_words_are_found_in_errors_and_rules(services: QueryServices, storm: Storm) -> None:
    family = storm.family
    await family.begin("tide")
    before = await storm.head()
    await storm.fail("tide", TIDE.format("long " * 100, "lighthouse"))
    await family.spawn("refused", target_agent_id="stranger", agent_id_argument="stranger")

    async def found(q: str, by: Caller = READER, **query: Any) -> list[str]:
        return family.names(await _runs_of(services, by, q=q, **query))

    assert await found("traceback lighthouse") == ["tide"]
    assert await found("lighthouse", caller("read")) == []
    assert await found("traceback", caller("read")) == ["tide"]
    assert await found("allow_agents") == ["refused"]
    assert await found("traceback", at=f"pos:{before}") == []


async def _runs_of(services: QueryServices, by: Caller, **query: Any) -> list[Any]:
    return list((await _listed(services, by, **query)).items)


async def test_summary_is_of_what_a_token_sees(services: QueryServices, storm: Storm) -> None:
    family = storm.family
    await family.begin("mine")
    await storm.fail("mine", "broken")
    other_family = LoggedFamily(storm.running.log, root="agent:main:other", first=500)
    await other_family.begin("theirs", requester_agent_id="main")
    everything = await _summary(services, 0)
    assert everything.revisions is not None
    assert [revision.revision for revision in everything.revisions] == [1]
    assert everything.live.running == everything.failures[0].runs == 1
    theirs = await _summary(services, 0, by=caller("read", session="agent:main:other"))
    assert (theirs.spawned.runs, theirs.ended.runs, theirs.failures) == (1, 0, [])
    assert theirs.revisions is None
    assert theirs.live.running == 1
    in_tree = await _summary(services, 0, tree=family.root)
    assert (in_tree.spawned.runs, in_tree.live.running) == (1, 0)
    assert (await _summary(services, 0, agent_ids=("nobody",))).spawned.runs == 0


async def test_summary_says_what_waits_and_why(services: QueryServices, storm: Storm) -> None:
    family = storm.family
    await family.begin("running")
    await family.queue("first")
    await family.spawn(
        "later", dependencies=(dependency(run_id=family.id("running"), name="running"),)
    )
    await family.create("later")
    found = await _summary(services, 0)
    assert found.live.waits == [
        WaitView(reason="runs", lane=None, depth=None, runs=1, run_ids=[family.id("later")]),
        WaitView(reason="claim", lane="subagent", depth=1, runs=1, run_ids=[family.id("first")]),
    ]
    assert (found.live.waiting, found.live.queued, found.live.parked_deliveries) == (1, 1, 0)


async def test_live_says_if_runs_were_left_out(
    services: QueryServices, storm: Storm, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storm.family.begin("one")
    await storm.family.begin("other")
    for most, is_cut in ((2, False), (1, True)):
        monkeypatch.setattr(summary, "LIVE_RUNS_MAX", most)
        live = (await _summary(services, 0)).live
        assert (live.running, live.runs_cut, live.parked_cut) == (most, is_cut, False)
        assert live.cut == is_cut


async def test_range_is_the_last_day_unless_given(services: QueryServices, storm: Storm) -> None:
    await storm.family.live("one")
    found = await _summary(services, None)
    assert (found.after, found.until, found.spawned.runs) == (0, await storm.head(), 1)
    assert found.from_at is not None
    assert found.to_at is not None
    assert (found.to_at - found.from_at).total_seconds() == 86_400
    past = await _summary(services, None, 3)
    assert past.to_at == await services.work.log.recorded_at(3)
    assert (past.after, past.until) == (0, 3)
    assert isinstance(past.from_at, datetime)
    with pytest.raises(QueryError) as refused:
        await _summary(services, 4, 3)
    assert refused.value.errors[0]["pointer"] == "/query/from"


@pytest.mark.server
async def test_summary_costs_what_its_range_has(connection: LogConnection) -> None:
    await connection.execute(
        "INSERT INTO runs (run_id, version, created_position, created_at, from_position,"
        " to_position, stage, outcome, session_id, requester, root, depth, epoch, state)"
        " SELECT md5(run::text)::uuid, version, run * 10, now(), run * 10 + version - 1,"
        " CASE WHEN version = 10 THEN 4611686018427387904 ELSE run * 10 + version END,"
        " CASE WHEN version = 10 THEN 'archived' ELSE 'queued' END, 'error',"
        " md5(run::text)::uuid, 'agent:main:r', 'agent:main:r', 1, 1,"
        ' CASE WHEN version = 10 THEN \'{"error":{"id":"\' || md5(run::text)::uuid || \'"}}\' END'
        " FROM generate_series(1, 20000) AS run, generate_series(1, 10) AS version"
    )
    await connection.execute("ANALYZE runs")
    row = await (
        await connection.execute(
            "SELECT array_agg(DISTINCT run_id) FROM runs WHERE created_position <= 300"
        )
    ).fetchone()
    assert row is not None
    live = LiveRuns(199_000, tuple(row[0]))
    query = RunQuery(
        (
            RunCondition("over_position", ">", live),
            RunCondition("stage", "any of", tuple(sorted(OVER))),
        )
    )
    moment, examined = moment_at_end(200_020), ScanWindow(200_020, 10_000)
    for sql, values in (
        counts_sql(query, None, moment, examined, by_requester=True),
        errors_sql(query, None, moment, examined, whole=True),
    ):
        explained = await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", values)
        plan = "\n".join(row[0] for row in await explained.fetchall())
        assert "Seq Scan on runs" not in plan, plan
        touched = re.search(r"Buffers: shared hit=(\d+)", plan)
        assert touched is not None
        assert int(touched.group(1)) < 130 * 10 * 4, plan
