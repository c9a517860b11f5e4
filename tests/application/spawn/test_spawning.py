"""What a spawn knows of its requester before it is decided."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from application.concurrency.flushes import Flushes
from application.coordination.holder import Holder
from application.coordination.lane import LanePlaces, LaneRoom, QueuedChild
from application.log.envelope import SYSTEM, Actor, Provenance
from application.log.event_log import Decision, Following, LaneFacts, LaneQuery, World
from application.log.unit_of_work import UnitOfWork
from application.spawn.ahead import PreparedSpawn
from application.spawn.service import SpawnResult, SpawnService
from domain.run.events import SpawnRequested
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.batch import Speculation
from domain.spawn.cascade import CascadeState
from domain.spawn.decide import SpawnDecision, request_spawns
from domain.spawn.request import RequestSpawn
from domain.values.refusals import SessionIsClosed
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.log.append import load
from infrastructure.outbound.log.read.state_cache import StateCaches
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders import run_commands as ask
from tests.support.builders.configurations import load_values
from tests.support.builders.family_log import keep, policy, spawn_request
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.logged_messages import finish, send
from tests.support.builders.run_preparers import NoPlaces, preparing_on
from tests.support.builders.spawn_plans import resolved_spawn
from tests.support.builders.storytelling import ROOT
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALLER = Actor(kind="token", token="caller")
VALUES = {"agents": {"list": [{"id": "main", "runtime": {"type": "scripted", "result": "done"}}]}}


class Counting(PostgresRegistry):
    """Counts how often it is asked for a session. One that has nothing to do with the log's own
    memory is that of a process which sees all sessions for the first time."""

    def __init__(self, running: RunningLog, remembered: StateCaches | None = None) -> None:
        super().__init__(running.pool, remembered)
        self.asked = 0

    async def session(self, key_or_id: str, *, at: int | None = None) -> Session | None:
        self.asked += 1
        return await super().session(key_or_id, at=at)


class Door:
    """Spawns as one process does."""

    def __init__(
        self, running: RunningLog, registry: Counting, folder: Path, lanes: LanePlaces
    ) -> None:
        contents, identities = PostgresContents(running.pool), RandomIdentities()
        self.configurations = ServerConfigurations(running, folder)
        work = UnitOfWork(running.log, identities, registry, contents, self.configurations)
        preparing = preparing_on(work, self.configurations.workspaces, running.pool, folder)
        self._spawning = SpawnService(work, preparing, lanes, Holder(lambda: "holder"), Flushes())

    async def spawn(self, key: str, /, **members: Any) -> SpawnResult:
        """Spawn with these members of the body."""
        request = resolved_spawn(key, **members)
        pinned = self.configurations.current()
        return await self._spawning.spawn(request, CALLER, None, lambda: True, pinned=pinned)


async def door(
    running: RunningLog, registry: Counting, folder: Path, lanes: LanePlaces | None = None
) -> Door:
    opened = Door(running, registry, folder, lanes or NoPlaces())
    await opened.configurations.activate(load_values(VALUES, folder=folder), SYSTEM)
    return opened


class Meanwhile(NoPlaces):
    """Has something happen once a spawn is prepared, before it is decided under the lock."""

    def __init__(self) -> None:
        self.what: Callable[[], Awaitable[object]] | None = None

    async def room(self, lane: str, depth: int, children: Sequence[QueuedChild] = ()) -> None:
        what, self.what = self.what, None
        if what is not None:
            await what()


async def test_spawn_below_no_run_reads_nothing_of_a_tree_that_waits(
    running: RunningLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = await door(running, Counting(running), tmp_path)
    first = (await opened.spawn(ROOT)).run
    for _ in range(2):
        spawned = await opened.spawn(ROOT, dependsOn=[str(first.run_id)])
        assert spawned.answer.kind == "accepted"
        monkeypatch.setattr(load, "ROWS_MAX", 0)


async def test_a_session_that_was_never_seen_is_not_looked_for(
    running: RunningLog, tmp_path: Path
) -> None:
    registry = Counting(running, running.log.remembered)
    opened = await door(running, registry, tmp_path)
    spawned = await opened.spawn("agent:main:new")
    assert (spawned.answer.kind, registry.asked) == ("accepted", 0)
    again = await opened.spawn("agent:main:new")
    assert (again.answer.kind, registry.asked) == ("accepted", 0)


async def test_spawn_counts_children_of_another_process(
    running: RunningLog, tmp_path: Path
) -> None:
    registry = Counting(running, running.log.remembered)
    opened = await door(running, registry, tmp_path)
    await opened.spawn("agent:main:busy")
    async with running.other() as other:
        elsewhere = await door(other, Counting(other, other.log.remembered), tmp_path)
        await elsewhere.spawn("agent:main:busy")
        spawned = await opened.spawn("agent:main:busy")
    requested = (await running.log.read(limit=1, run_id=spawned.run.run_id))[0].event
    assert isinstance(requested, SpawnRequested)
    assert (requested.facts.active_children, registry.asked) == (2, 0)


async def test_spawn_by_session_continued_elsewhere_names_its_run(
    running: RunningLog, family: LoggedFamily, tmp_path: Path
) -> None:
    await family.begin("top")
    registry = Counting(running, running.log.remembered)
    opened = await door(running, registry, tmp_path)
    deeper = {"agents": {**VALUES["agents"], "defaults": {"subagents": {"maxSpawnDepth": 2}}}}
    await opened.configurations.activate(load_values(deeper, folder=tmp_path), SYSTEM)
    assert registry.last_seen_session(family.key("top")) is not None
    async with running.other() as other:
        family.log = other.log
        await finish(family, "top")
        await send(family, "again", "top")
        spawned = await opened.spawn(family.key("top"))
    assert spawned.run.requester.run_id == family.id("again")
    assert registry.asked == 1


@pytest.mark.parametrize("is_remembered", [True, False])
async def test_the_tree_and_the_agent_of_a_session_on_record_are_those_of_the_record(
    running: RunningLog,
    family: LoggedFamily,
    tmp_path: Path,
    is_remembered: bool,
) -> None:
    await family.begin("top")
    remembered = running.log.remembered if is_remembered else None
    opened = await door(running, Counting(running, remembered), tmp_path)
    before = len(await running.events())
    spawned = await opened.spawn(family.key("top"))
    requested, *_ = (await running.events())[before:]
    assert isinstance(requested.event, SpawnRequested)
    assert requested.event.requester.agent_id == "main"
    assert requested.envelope.provenance.correlation == ROOT
    assert requested.envelope.provenance.causation == family.run("top").last_event_id
    assert spawned.run.requester.root_session_key == ROOT


async def test_an_answer_names_the_append_that_decided_it(
    running: RunningLog, family: LoggedFamily, tmp_path: Path
) -> None:
    opened = await door(running, Counting(running), tmp_path)
    spawned = await opened.spawn("agent:main:new")
    assert spawned.position == await running.log.head()
    await family.begin("top")
    refused = await opened.spawn(family.key("top"))
    assert (refused.answer.kind, refused.position) == ("forbidden", await running.log.head())


async def test_spawns_of_one_requester_at_once_are_each_recorded_as_a_whole(
    running: RunningLog, family: LoggedFamily, tmp_path: Path
) -> None:
    """They are prepared on the same knowledge of it, so the second is decided again under the
    lock; its child is the one that was prepared all the same."""
    opened = await door(running, Counting(running, running.log.remembered), tmp_path)
    await opened.spawn("agent:main:busy")
    spawned = await asyncio.gather(*(opened.spawn("agent:main:busy") for _ in range(3)))
    facts = []
    for one in spawned:
        events = await running.log.read(limit=20, run_id=one.run.run_id)
        requested, queued = events[0], next(x for x in events if x.envelope.type == "RunQueued")
        assert isinstance(requested.event, SpawnRequested)
        facts.append(requested.event.facts.active_children)
        assert queued.envelope.recorded_at == requested.envelope.recorded_at
        assert one.position == queued.envelope.position
    assert sorted(facts) == [1, 2, 3]
    assert {one.answer.kind for one in spawned} == {"accepted"}


async def test_requester_stopped_while_its_spawn_is_prepared_spawns_no_more(
    running: RunningLog, family: LoggedFamily, tmp_path: Path
) -> None:
    await family.begin("top")
    meanwhile = Meanwhile()
    opened = await door(running, Counting(running, running.log.remembered), tmp_path, meanwhile)
    deeper = {"agents": {**VALUES["agents"], "defaults": {"subagents": {"maxSpawnDepth": 2}}}}
    await opened.configurations.activate(load_values(deeper, folder=tmp_path), SYSTEM)
    assert (await opened.spawn(family.key("top"))).answer.kind == "accepted"
    meanwhile.what = lambda: family.tell("top", ask.stop())
    before = await running.log.head()
    with pytest.raises(SessionIsClosed, match="is being stopped"):
        await opened.spawn(family.key("top"))
    assert await running.log.head() == before + 1


async def test_requester_without_room_once_its_spawn_is_prepared_is_refused(
    running: RunningLog, family: LoggedFamily, tmp_path: Path
) -> None:
    meanwhile = Meanwhile()
    opened = await door(running, Counting(running, running.log.remembered), tmp_path, meanwhile)
    for _ in range(4):
        await opened.spawn("agent:main:busy")
    meanwhile.what = lambda: opened.spawn("agent:main:busy")
    spawned = await opened.spawn("agent:main:busy")
    assert (spawned.answer.kind, spawned.run.stage) == ("forbidden", "refused")


async def test_spawn_prepared_under_another_revision_is_prepared_again(
    running: RunningLog, family: LoggedFamily, tmp_path: Path
) -> None:
    meanwhile = Meanwhile()
    opened = await door(running, Counting(running, running.log.remembered), tmp_path, meanwhile)
    await opened.spawn("agent:main:another")
    before = len(await running.events())
    agent = {"id": "main", "runtime": {"type": "scripted", "result": "other"}}
    values = load_values({"agents": {"list": [agent]}}, folder=tmp_path)
    meanwhile.what = lambda: opened.configurations.activate(values, SYSTEM)
    spawned = await opened.spawn("agent:main:new")
    assert (spawned.run.stage, spawned.run.config_revision) == ("queued", 2)
    types = [one.envelope.type for one in (await running.events())[before:]]
    assert types.count("SpawnRequested") == types.count("RunQueued") == 1


def admission_of(command: RequestSpawn) -> Decision[SpawnDecision]:
    """The admission of a spawn by a session of which nothing is known."""
    decided = request_spawns({}, {}, [(command, keep)], policy())
    return Decision(decided, decided.changes)


def after(admission: Decision[SpawnDecision]) -> CascadeState:
    """What is on record after an admission that was the first of all."""
    family = Speculation(CascadeState({}, {}), NOW)
    family.add(admission.changes)
    return family.family


def prepared_for(
    command: RequestSpawn, admission: Decision[SpawnDecision], room: LaneRoom | None = None
) -> PreparedSpawn:
    """What was prepared for an admission, with a creation of nothing."""
    admitted = after(admission).runs.values()
    creation = Following(command.run_id, Provenance(), Decision(None))
    return PreparedSpawn(admission, tuple(admitted), creation, (), room)


def test_what_was_prepared_follows_an_admission_of_the_same_run_alone() -> None:
    command, world = spawn_request(), World({}, {}, NOW)
    first = admission_of(command)
    ahead = prepared_for(command, first)
    assert ahead.following(world, first) == (ahead.creation,)
    assert ahead.following(world, admission_of(command)) == (ahead.creation,)
    in_sandbox = admission_of(replace(command, requester_in_sandbox=True))
    assert ahead.following(world, in_sandbox) == ()


class AskedRoom:
    """Implements `LaneRoom`: notes whether runs may be started as they were prepared."""

    query = LaneQuery("subagent", 1, 8)

    def __init__(self) -> None:
        self.asked: list[bool] = []

    def claims(
        self, lane: LaneFacts, now: datetime, runs: Sequence[Run], *, is_as_prepared: bool
    ) -> list[Following]:
        """Claim none."""
        self.asked.append(is_as_prepared)
        return []

    def execute(self, runs: Iterable[Run]) -> None:
        """Execute none."""


def test_run_whose_requester_shares_by_now_is_not_started_as_it_was_prepared() -> None:
    command, room = spawn_request(), AskedRoom()
    first = admission_of(command)
    ahead = prepared_for(command, first, room)
    seen = after(first).sessions
    sharing = {key: one.changed({"shared_position": 3}) for key, one in seen.items()}
    known: tuple[Mapping[str, Session], ...] = ({}, seen, sharing)
    for sessions in known:
        world = World({}, sessions, NOW, LaneFacts(0, ()))
        assert ahead.following(world, first) == (ahead.creation,)
    assert room.asked == [True, True, False]
