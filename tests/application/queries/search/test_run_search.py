"""Runs are searched by words and counted, as of any position; each request is bounded."""

import re
from collections import Counter
from datetime import date
from typing import Any

import pytest

from application.ports.registry import RunCondition, RunQuery
from application.ports.run_search import RunWords, ScanWindow
from application.queries.access import AccessScope, Caller
from application.queries.errors import QueryError
from application.queries.runs import ListRuns, list_runs
from application.queries.search import run_totals, run_words
from application.queries.search.run_totals import UsageSum
from application.queries.services import QueryServices
from application.queries.views.run import RunListView, status_of
from application.queries.views.run_totals import RunTotalsView
from domain.run.facts import ModelUsage, Usage
from infrastructure.outbound.log.read.moments import moment_at_end
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.read_model.run_search import counts_sql, found_sql
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import caller
from tests.support.builders.storytelling import ROOT
from tests.support.servers.running_log import RunningLog

OTHER = "agent:main:other"
RUNS_MAX = 500
BOTH: tuple[AccessScope, ...] = ("read", "content")
READER = caller(*BOTH)
FAR = "far away " * 2_000


@pytest.fixture
async def family(running: RunningLog) -> LoggedFamily:
    family = LoggedFamily(running.log, max_children=3)
    await family.spawn("one", label="Wharf", task="Count the ships in the harbour")
    await family.begin("two")
    await family.spawn("below", "two", task="Read the log of the Wharf")
    await family.live("three")
    await family.spawn("four", target_agent_id="stranger", agent_id_argument="stranger")
    await family.spawn("five", task=f"{FAR}lighthouse", label="long")
    other_family = LoggedFamily(family.log, root=OTHER, first=500)
    await other_family.spawn("theirs", requester_agent_id="main", task="count 100% of_it")
    return family


async def _found(services: QueryServices, by: Caller, q: str, **more: Any) -> RunListView:
    return (await list_runs(services, by, ListRuns(q=q, **more))).view


async def _names(
    services: QueryServices, family: LoggedFamily, q: str, by: Caller | None = None, **more: Any
) -> list[str]:
    found = await _found(services, by or READER, q, **more)
    named = {family.id(name): name for name in ("one", "two", "below", "three", "five")}
    return [named.get(run.run_id, "?") for run in found.items]


async def test_run_is_found_by_label_and_task(
    services: QueryServices, family: LoggedFamily
) -> None:
    assert await _names(services, family, "wharf") == ["below", "one"]
    assert await _names(services, family, "wharf", order="asc") == ["one", "below"]
    assert await _names(services, family, " SHIPS  wharf ") == ["one"]
    assert await _names(services, family, "ships lighthouse") == []
    assert (
        await _names(services, family, "100%") == await _names(services, family, "of_it") == ["?"]
    )
    then = family.run("two").created_position
    assert await _names(services, family, "wharf", at=f"pos:{then}") == ["one"]
    assert await _names(services, family, "wharf", caller(*BOTH, session=OTHER)) == []


async def test_masked_task_is_found_by_its_beginning(
    services: QueryServices, family: LoggedFamily
) -> None:
    late = f"{'far away ' * 50}buoy"
    await family.spawn("buoy", "two", task=late)
    assert len((await _found(services, READER, "buoy")).items) == 1
    assert (await _found(services, caller("read"), "buoy")).items == []
    assert len((await _found(services, caller("read"), "away")).items) == 2
    # Words after the first ten thousand characters are not found.
    assert await _names(services, family, "lighthouse") == []


async def test_unusable_words_are_refused(services: QueryServices) -> None:
    for q in ("   ", "a b c d e f g h i"):
        with pytest.raises(QueryError) as refused:
            await _found(services, READER, q)
        assert refused.value.errors[0]["pointer"] == "/query/q"


async def test_search_is_bounded_and_continued(
    services: QueryServices, family: LoggedFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_words, "WORDS_EXAMINED_MAX", 2)
    pages = [await _found(services, READER, "wharf")]
    while pages[-1].next_cursor is not None:
        pages.append(await _found(services, READER, "wharf", cursor=pages[-1].next_cursor))
    found = [[run.run_id for run in page.items] for page in pages]
    assert found == [[], [], [family.id("below")], [family.id("one")]]
    with pytest.raises(QueryError, match="another query"):
        await _found(services, READER, "ships", cursor=pages[0].next_cursor)
    whole = await _found(services, READER, "wharf", limit=1)
    assert [run.run_id for run in whole.items] == []


async def test_label_prefix_is_found_without_a_family(
    services: QueryServices, family: LoggedFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(*prefixes: str, **others: Any) -> RunListView:
        query = ListRuns.model_validate({"labelPrefix": prefixes, **others})
        return (await list_runs(services, READER, query)).view

    assert [run.label for run in (await found("lon")).items] == ["long"]
    several = await found("no", "lon", "Wh", totals=True)
    assert [run.label for run in several.items] == ["long", "Wharf"]
    assert several.totals is not None
    assert several.totals.runs == 2
    assert [run.label for run in (await found("lon", "Wh", q="ships")).items] == ["Wharf"]
    then = f"pos:{family.run('two').created_position}"
    assert [run.label for run in (await found("lon", "Wh", at=then)).items] == ["Wharf"]
    assert (await found("long", q="ships")).items == []
    either = await found("lon", label=("Wharf", "Whar"))
    assert [run.label for run in either.items] == ["long", "Wharf"]
    totals = (await found("Wh", totals=True)).totals
    assert totals is not None
    assert totals.runs == 1
    monkeypatch.setattr(run_words, "LABELS_EXAMINED_MAX", 2)
    pages = [await found("Wharf")]
    while pages[-1].next_cursor is not None:
        pages.append(await found("Wharf", cursor=pages[-1].next_cursor))
    assert [len(page.items) for page in pages] == [0, 0, 0, 1]


async def test_totals_are_those_of_every_position(
    services: QueryServices, running: RunningLog, family: LoggedFamily
) -> None:
    registry = services.work.registry
    for at in range(1, await running.log.head() + 1):
        for criteria, query in (
            ({}, RunQuery()),
            ({"tree": ROOT, "agent_ids": ("main",)}, RunQuery.where(root=ROOT, agent_id=("main",))),
        ):
            runs = await registry.runs(query, at=at, limit=RUNS_MAX)
            answer = await list_runs(
                services, READER, ListRuns(at=f"pos:{at}", limit=1, totals=True, **criteria)
            )
            assert answer.view.totals == RunTotalsView(
                runs=len(runs),
                statuses=Counter(map(status_of, runs)),
                agents=Counter(run.agent_id for run in runs if run.agent_id is not None),
                statuses_by_agent={
                    agent: Counter(status_of(run) for run in runs if run.agent_id == agent)
                    for agent in {run.agent_id for run in runs} - {None}
                },
                rules=Counter(run.refusal.rule for run in runs if run.refusal is not None),
                input_tokens=0,
                output_tokens=0,
                estimated_cost_usd=None,
                models=0,
                unpriced_models=0,
                usage_by_agent=[],
                usage_by_day=[],
                running_not_summed=0,
                counted_to=None,
            )
    assert answer.view.totals is not None
    assert answer.view.totals.runs == 5
    assert answer.view.totals.rules == {}


def _usage(tokens: int, *costs: float | None) -> Usage:
    models = tuple(
        ModelUsage(model=f"m{number}" if number else None, input_tokens=tokens, cost_usd=cost)
        for number, cost in enumerate(costs)
    )
    return Usage(input_tokens=tokens, output_tokens=2, models=models)


def test_usage_by_day_has_whole_days(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = date(2026, 3, 1), date(2026, 3, 2)
    usages = {(day, agent): UsageSum() for day in (first, second) for agent in ("main", "writer")}
    for usage in usages.values():
        usage.input_tokens = 1
    monkeypatch.setattr(run_totals, "DAYS_MAX", 3)
    assert [place for place, _ in run_totals.whole_days(usages)] == [
        (second, "main"),
        (second, "writer"),
    ]
    monkeypatch.setattr(run_totals, "DAYS_MAX", 1)
    assert [place for place, _ in run_totals.whole_days(usages)] == [(second, "main")]


async def test_totals_sum_tokens_and_cost_as_of_each_position(
    services: QueryServices, family: LoggedFamily
) -> None:
    async def totals(at: int | None = None, by: Caller = READER, **more: Any) -> RunTotalsView:
        moment = None if at is None else f"pos:{at}"
        answer = await list_runs(services, by, ListRuns(at=moment, limit=1, totals=True, **more))
        assert answer.view.totals is not None
        return answer.view.totals

    await family.create("one")
    await family.execute("one")
    before_first = await services.work.log.head()
    await family.end("one", usage=_usage(100, 0.1, None))
    after_first = await services.work.log.head()
    await family.announce("one")
    writers = LoggedFamily(
        family.log, root="agent:main:writers", first=900, allow_agents=("writer",)
    )
    await writers.begin("six", target_agent_id="writer", agent_id_argument="writer")
    before_last = await services.work.log.head()
    await writers.end("six", usage=_usage(1_000, 0.00002))
    for seen in (await totals(after_first), await totals(before_last)):
        assert (seen.input_tokens, seen.output_tokens, seen.estimated_cost_usd) == (100, 2, 0.1)
    now = await totals()
    assert (now.input_tokens, now.output_tokens, now.estimated_cost_usd) == (1_100, 4, 0.10002)
    shares = [(usage.agent_id, usage.input_tokens) for usage in now.usage_by_agent]
    assert shares == [("main", 100), ("writer", 1_000)]
    assert [usage.agent_id for usage in now.usage_by_day] == ["main", "writer"]
    assert {usage.day for usage in now.usage_by_day} == {writers.run("six").created_at.date()}
    # The unnamed model of both, and `m1` without a price.
    assert [(usage.models, usage.unpriced_models) for usage in now.usage_by_agent] == [
        (2, 1),
        (1, 0),
    ]
    assert [usage.unpriced_models for usage in now.usage_by_day] == [1, 0]
    assert (now.models, now.unpriced_models) == (2, 1)
    assert (await totals(agent_ids=("writer",))).estimated_cost_usd == 0.00002
    assert (await totals(by=caller(*BOTH, session=OTHER))).input_tokens == 0
    assert (await totals(q="lighthouse")).estimated_cost_usd is None
    assert (await totals(before_first)).usage_by_agent == []


async def test_totals_are_of_what_a_token_sees(
    services: QueryServices, family: LoggedFamily
) -> None:
    async def totals(by: Caller, **more: Any) -> RunTotalsView | None:
        return (await list_runs(services, by, ListRuns(totals=True, **more))).view.totals

    assert (await list_runs(services, READER, ListRuns())).view.totals is None
    everything = await totals(READER)
    assert everything is not None
    assert everything.rules == {"allow_agents": 1}
    assert (everything.runs, everything.statuses["refused"]) == (7, 1)
    for pattern, runs in ((ROOT, 6), (OTHER, 1), ("agent:main:nobody-*", 0)):
        seen = await totals(caller(*BOTH, session=pattern))
        assert seen is not None
        assert seen.runs == runs
    own = caller(*BOTH, session=family.key("two"), run_id=family.id("two"))
    listed = (await list_runs(services, own, ListRuns())).view.items
    seen = await totals(own)
    assert seen is not None
    assert seen.runs == len(listed) == 2
    with_word = await totals(READER, q="wharf")
    assert with_word is not None
    assert with_word.runs == 2


async def test_search_filters_by_any_column(
    services: QueryServices, running: RunningLog, family: LoggedFamily
) -> None:
    search, at = services.run_search, await running.log.head()
    words = RunWords(("count",), in_whole_texts=True)
    for query, found, counted in (
        (RunQuery.where(session_id=family.session_id("one")), ["one"], 1),
        (RunQuery.where(session_id=family.session_id("two"), stage="started"), [], 1),
        (RunQuery.where(lane_depth=(1, 7), root=ROOT), [], 1),
        (RunQuery((RunCondition("version", "<", 2), RunCondition("root", "<=", ROOT))), ["one"], 3),
        (RunQuery.where(stage=()), [], 0),
    ):
        page = await search.find(query, words, ScanWindow(at, RUNS_MAX), limit=9)
        assert family.names(page.runs) == found, query
        counts = await search.count(query, None, ScanWindow(at, RUNS_MAX), by_requester=False)
        assert sum(count.runs for count in counts.counts) == counted


async def test_count_says_how_far_it_went(services: QueryServices, family: LoggedFamily) -> None:
    search, at = services.run_search, await services.work.log.head()
    cut = await search.count(RunQuery(), None, ScanWindow(at, 2), by_requester=False)
    assert sum(count.runs for count in cut.counts) == 2
    assert cut.counted_to == family.run("five").created_position
    none = await search.count(
        RunQuery.where(root="agent:x:x"), None, ScanWindow(at, 2), by_requester=True
    )
    assert none == ([], None)


@pytest.mark.server
async def test_search_goes_along_an_index(
    connection: LogConnection,
) -> None:
    await connection.execute(
        "INSERT INTO runs (run_id, version, created_position, created_at, from_position,"
        " to_position, stage, session_id, requester, root, depth, epoch, state)"
        " SELECT md5(run::text)::uuid, version, run, now(), run + (version - 1) * 20000,"
        " CASE WHEN version = 10 THEN 4611686018427387904 ELSE run + version * 20000 END, 'queued',"
        " md5(run::text)::uuid, 'agent:main:r', 'agent:main:r', 1, 1,"
        ' CASE WHEN version = 10 THEN \'{"task":{"id":"\' || md5(run::text)::uuid || \'"}}\' END'
        " FROM generate_series(1, 20000) AS run, generate_series(1, 10) AS version"
    )
    await connection.execute("ANALYZE runs")
    moment, examined = moment_at_end(200_000), ScanWindow(200_000, 500)
    words = RunWords(("nothing",), in_whole_texts=True)
    for query in (
        RunQuery.where(agent_id=("nobody",)),
        RunQuery.where(root="agent:main:r", depth=7),
    ):
        for sql, values in (
            found_sql(query, words, moment, examined, 50),
            found_sql(RunQuery(), words, moment, examined, 50),
            counts_sql(query, None, moment, examined, by_requester=True),
        ):
            explained = await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", values)
            plan = "\n".join(row[0] for row in await explained.fetchall())
            assert "Seq Scan on runs" not in plan, plan
            touched = re.search(r"Buffers: shared hit=(\d+)", plan)
            assert touched is not None
            assert int(touched.group(1)) < 500 * 10 * 3, plan


async def test_past_runs_that_were_not_running_need_no_instant(
    services: QueryServices, family: LoggedFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()
    log = type(services.work.log)
    original = log.recorded_at

    async def recorded_at(self: Any, position: int) -> Any:
        asked.append(position)
        return await original(self, position)

    monkeypatch.setattr(log, "recorded_at", recorded_at)
    moment = f"pos:{await services.work.log.head()}"
    await list_runs(services, READER, ListRuns(at=moment, agent_ids=("stranger",)))
    assert asked == []
    await list_runs(services, READER, ListRuns(at=moment, agent_ids=("main",)))
    assert asked
