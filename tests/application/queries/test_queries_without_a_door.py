"""What queries ask of the log, and what they have flushed before they read."""

import asyncio

import pytest

from application.queries.events import ListEvents, list_events
from application.queries.runs import GetRun, get_run
from application.queries.services import QueryServices
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import caller
from tests.support.servers.running_log import RunningLog


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
