"""A door that is not HTTP asks the same queries: it needs a caller, and no request."""

import asyncio

import pytest

from application.queries.agents import ListAgents, list_agents
from application.queries.errors import QueryError
from application.queries.events import ListEvents, list_events
from application.queries.runs import GetRun, ListRuns, get_run, list_runs
from application.queries.services import QueryServices
from application.queries.views.run import RunMetadataView, RunView
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import caller
from tests.support.builders.storytelling import ROOT
from tests.support.servers.running_log import RunningLog


async def test_agents_runs_and_events_are_asked_for_by_a_caller(
    services: QueryServices, running: RunningLog
) -> None:
    family = LoggedFamily(running.log)
    await family.begin("reviewer")
    run_id = str(family.id("reviewer"))
    own = caller("read", "content", session=ROOT)

    agents = (await list_agents(services, own, ListAgents(requester="current"))).view
    assert [agent.id for agent in agents.agents] == [agents.requester]
    page = await list_runs(services, own, ListRuns(tree="current"))
    assert [str(run.run_id) for run in page.view.items] == [run_id]
    assert page.position == await running.log.head()
    assert isinstance((await get_run(services, own, run_id, GetRun(wait="1ms"))).view, RunView)
    assert isinstance(
        (await get_run(services, caller("read", session=ROOT), run_id, GetRun())).view,
        RunMetadataView,
    )
    events = (await list_events(services, own, ListEvents(run_id=run_id))).view
    assert {event.run_id for event in events.items} == {family.id("reviewer")}


async def test_what_a_caller_may_not_see_is_an_error_of_the_query(
    services: QueryServices, running: RunningLog
) -> None:
    family = LoggedFamily(running.log)
    await family.begin("reviewer")
    stranger = caller("read", session="agent:main:stranger")
    with pytest.raises(QueryError, match="there is no such run") as unseen:
        await get_run(services, stranger, str(family.id("reviewer")), GetRun())
    assert (unseen.value.code, unseen.value.position) == ("not_found", await running.log.head())
    assert (await list_runs(services, stranger, ListRuns())).view.items == []


async def test_page_of_events_asks_once_how_far_log_goes(
    services: QueryServices, running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, asked = services.work.log, []
    head = log.head

    async def counted() -> int:
        asked.append(await head())
        return asked[-1]

    monkeypatch.setattr(log, "head", counted)
    listed = await list_events(services, caller("read"), ListEvents())
    assert asked == [listed.position]
    assert listed.view.head == listed.position


async def test_wait_for_stage_does_not_ask_how_far_log_goes(
    services: QueryServices, running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    family, asked = LoggedFamily(running.log), []
    await family.begin("reviewer")
    head = running.log.head

    async def counted() -> int:
        asked.append(await head())
        return asked[-1]

    monkeypatch.setattr(running.log, "head", counted)
    query = GetRun(wait="20s", until="ended")
    waiting = asyncio.create_task(
        get_run(services, caller("read"), str(family.id("reviewer")), query)
    )
    while not running.tail._recent.waited_for:
        await asyncio.sleep(0)
    await family.end("reviewer")
    answer = await waiting
    assert answer.view.stage == "ended"
    assert answer.position == running.tail.position
    assert asked == []


async def test_output_is_flushed_for_runs_at_work_alone(
    services: QueryServices, running: RunningLog
) -> None:
    family, flushed = LoggedFamily(running.log), list[str]()
    await family.begin("reviewer")
    run_id = family.id("reviewer")

    async def flush() -> None:
        flushed.append(family.run("reviewer").stage)

    services.transcripts.flushes.add(run_id, flush)
    await get_run(services, caller("read"), str(run_id), GetRun())
    await family.end("reviewer")
    await get_run(services, caller("read"), str(run_id), GetRun())
    assert set(flushed) == {"started"}
