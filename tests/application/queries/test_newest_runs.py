"""Queries read the newest state of a run, and no more than they need."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from application.log.envelope import SYSTEM
from application.log.event_log import LogUnavailableError
from application.ports.runtimes import TranscriptEntry
from application.queries import runs_at_work, wait
from application.queries.access import ALL_SCOPES, Access, Caller
from application.queries.as_of import AsOf, resolve_as_of
from application.queries.errors import QueryError
from application.queries.events import ListEvents, list_events
from application.queries.runs import GetRun, ListRuns, get_run, list_runs, newest_run
from application.queries.services import QueryServices
from domain.run.state import Run
from tests.support.builders import run_histories as past
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import caller
from tests.support.builders.storytelling import run_of
from tests.support.servers.running_log import RunningLog

RECORDED = run_of(*past.an_ended_run())

FOLLOWED = run_of(*past.a_started_run())

EVERYTHING = Caller(actor=SYSTEM, scopes=ALL_SCOPES, patterns=("*",))


class FollowedLog:
    """A log that ends at `position`, and of which a process has followed `seen`."""

    def __init__(self, position: int, seen: int, followed: Run | None = FOLLOWED) -> None:
        self.ends, self.position, self.followed = position, seen, followed
        self.asked = 0
        self.read_at: int | None = None

    async def head(self) -> int:
        self.asked += 1
        return self.ends

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def run(self, _: object, *, at: int | None = None) -> Run:
        self.read_at = at
        return RECORDED

    def newest(self, _: object) -> Run | None:
        return self.followed

    async def changed(self, *_: object, timeout_seconds: float, **__: object) -> bool:
        await asyncio.sleep(timeout_seconds)
        return False

    def services(self) -> QueryServices:
        work = SimpleNamespace(log=self, registry=self)
        made: Any = SimpleNamespace(
            work=work,
            tail=self,
            access=Access(cast(Any, self)),
            closing=lambda: False,
            stopped=asyncio.get_running_loop().create_future(),
        )
        return cast(QueryServices, made)

    async def told(self, caller: Caller = EVERYTHING, least: int | None = None) -> tuple[Run, int]:
        run, at = await newest_run(self.services(), caller, str(FOLLOWED.run_id), least)
        return run, at.position


async def test_followed_run_is_not_read() -> None:
    log = FollowedLog(position=7, seen=7)
    assert await log.told() == (FOLLOWED, 7)
    assert (log.asked, log.read_at) == (1, None)


async def test_run_is_read_if_the_log_is_longer() -> None:
    log = FollowedLog(position=9, seen=7)
    assert await log.told() == (RECORDED, 9)
    assert log.read_at == 9


async def test_unknown_run_is_read() -> None:
    assert await FollowedLog(position=7, seen=7, followed=None).told() == (RECORDED, 7)


async def test_named_position_may_be_followed() -> None:
    log = FollowedLog(position=9, seen=7)
    assert await log.told(least=6) == (FOLLOWED, 7)
    assert log.asked == 0
    assert await log.told(least=8) == (RECORDED, 9)


async def test_unreached_position_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wait, "REACH_SECONDS_MAX", 0.01)
    with pytest.raises(LogUnavailableError, match="position 12 is not known to this server yet"):
        await FollowedLog(position=9, seen=9).told(least=12)


async def test_followed_run_is_hidden_from_strangers() -> None:
    stranger = Caller(actor=SYSTEM, scopes=ALL_SCOPES, patterns=("agent:other:*",))
    log = FollowedLog(position=7, seen=7)
    log.session = _nobody  # type: ignore[attr-defined]
    with pytest.raises(QueryError, match="run not found"):
        await log.told(stranger)


async def _nobody(_: object) -> None:
    return None


async def test_followed_position_needs_no_log() -> None:
    log = FollowedLog(position=9, seen=7)
    for position, reads in ((7, 0), (8, 1)):
        found = await resolve_as_of(log.services(), EVERYTHING, f"pos:{position}")
        assert (found, log.asked) == (AsOf(position, now=False), reads)
    with pytest.raises(QueryError, match="the log ends at pos:9"):
        await resolve_as_of(log.services(), EVERYTHING, "pos:10")


async def test_page_of_events_asks_once_how_far_log_goes(
    services: QueryServices, running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, request = services.work.log, []
    head = log.head

    async def counted() -> int:
        request.append(await head())
        return request[-1]

    monkeypatch.setattr(log, "head", counted)
    listed = await list_events(services, caller("read"), ListEvents())
    assert request == [listed.position]
    assert listed.view.head == listed.position


async def test_wait_for_stage_does_not_ask_how_far_log_goes(
    services: QueryServices, running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    family, request = LoggedFamily(running.log), []
    await family.begin("reviewer")
    head = running.log.head

    async def counted() -> int:
        request.append(await head())
        return request[-1]

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
    assert request == []


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


async def test_output_of_a_settled_moment_is_read_once(
    services: QueryServices, running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    family, read = LoggedFamily(running.log), list[int]()
    await family.begin("reviewer")
    query = ListRuns(at=f"pos:{await running.log.head()}", totals=True)
    read_on = services.transcripts.read_on

    async def counted(afters: Mapping[UUID, int], **more: Any) -> Any:
        read.append(len(afters))
        return await read_on(afters, **more)

    monkeypatch.setattr(services.transcripts, "read_on", counted)
    await list_runs(services, caller("read"), query)
    await list_runs(services, caller("read"), query)
    assert read == [1, 1], "another server may still write entries"
    monkeypatch.setattr(runs_at_work, "SETTLED", timedelta(seconds=-1))
    await list_runs(services, caller("read"), query)
    await list_runs(services, caller("read"), query)
    assert read == [1, 1, 1]


async def test_output_is_flushed_for_runs_of_the_past(
    services: QueryServices, running: RunningLog
) -> None:
    family = LoggedFamily(running.log)
    await family.begin("reviewer")
    run = family.run("reviewer")
    used = TranscriptEntry("usage", {"inputTokens": 7, "outputTokens": 1, "model": "m"})

    async def flush() -> None:
        await services.transcripts.append(run.run_id, run.epoch, 1, [used])

    await family.begin("later")
    # The entry arrived before the last event, and is still in a buffer.
    used = replace(used, arrived_at=asyncio.get_running_loop().time() - 60)
    services.transcripts.flushes.add(run.run_id, flush)
    query = ListRuns(at=f"pos:{await running.log.head()}", totals=True)
    totals = (await list_runs(services, caller("read"), query)).view.totals
    assert totals is not None
    assert totals.input_tokens == 7
