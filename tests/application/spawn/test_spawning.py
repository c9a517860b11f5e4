"""Facts of a spawn before it is decided: its requester and its revision."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from application.concurrency.flushes import Flushes
from application.coordination.lane import LaneRoom, QueuedChild
from application.coordination.lease_owner import LeaseOwner
from application.log.envelope import Actor, Provenance
from application.log.event_log import (
    Decision,
    DecisionContext,
    Following,
    LaneFacts,
    LaneQuery,
    LogUnavailableError,
)
from application.ports.configurations import PinnedConfiguration
from application.spawn.ahead import PreparedSpawn
from application.spawn.prepare import SpawnPreparer
from application.spawn.service import SpawnResult, SpawnService
from domain.run.events import SpawnRefused, SpawnRequested
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.batch import Speculation
from domain.spawn.cascade import CascadeState
from domain.spawn.decide import SpawnDecision, request_spawns
from domain.spawn.request import RequestSpawn
from domain.values.refusals import SessionIsClosed
from infrastructure.outbound.log.append import load
from infrastructure.outbound.log.read.state_cache import StateCaches
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders import run_commands as ask
from tests.support.builders.configurations import load_values
from tests.support.builders.family_log import keep, policy, spawn_request
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.logged_messages import finish, send
from tests.support.builders.run_preparers import NoPlaces, preparing_on
from tests.support.builders.spawn_plans import resolved_spawn
from tests.support.builders.storytelling import ROOT
from tests.support.memory.served_log import work_on
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALLER = Actor(kind="token", token="caller")
BUSY = "agent:main:busy"
E = TypeVar("E")


class Counting(PostgresRegistry):
    """Registry that counts reads of sessions. Without the log's cache, it is that of a process that
    sees every session for the first time.
    """

    def __init__(self, running: RunningLog, remembered: StateCaches | None = None) -> None:
        super().__init__(running.pool, remembered)
        self.asked = 0

    async def session(self, key_or_id: str, *, at: int | None = None) -> Session | None:
        self.asked += 1
        return await super().session(key_or_id, at=at)


class Meanwhile(NoPlaces):
    """Has something happen once a spawn is prepared, before it is decided under the lock."""

    def __init__(self) -> None:
        self.action: Callable[[], Awaitable[object]] | None = None

    async def room(self, lane: str, depth: int, children: Sequence[QueuedChild] = ()) -> None:
        action, self.action = self.action, None
        if action is not None:
            await action()


class Process:
    """Services of one server process that spawns need."""

    def __init__(self, running: RunningLog, folder: Path, *, is_remembered: bool = True) -> None:
        self._running, self.folder = running, folder
        self.configurations = ServerConfigurations(running, folder / "workspaces")
        self.registry = Counting(running, running.log.remembered if is_remembered else None)
        self.meanwhile = Meanwhile()
        self.work = work_on(running, self.configurations, self.registry)
        self.preparing = self._preparing(SpawnPreparer)

    def _preparing(self, kind: type[SpawnPreparer]) -> SpawnPreparer:
        workspaces = self.configurations.workspaces
        return preparing_on(self.work, workspaces, self._running.pool, self.folder, kind)

    def prepare_with(self, kind: type[SpawnPreparer]) -> None:
        self.preparing = self._preparing(kind)

    async def activate(
        self, *, result: str = "done", session: dict[str, str] | None = None, **subagents: Any
    ) -> int:
        """Make this the active configuration; give its revision."""
        runtime = {"type": "scripted", "result": result}
        values = {
            "agents": {"defaults": {"runtime": runtime, "subagents": subagents}},
            "session": session or {},
        }
        return await self.configurations.activate(load_values(values, folder=self.folder), CALLER)

    async def spawn(
        self, key: str = ROOT, /, *, pinned: PinnedConfiguration | None = None, **members: Any
    ) -> SpawnResult:
        """Spawn by a session with these members of the body, read under a revision."""
        service = SpawnService(
            self.work, self.preparing, self.meanwhile, LeaseOwner(lambda: "server"), Flushes()
        )
        pinned = pinned or self.configurations.current()
        request = resolved_spawn(key, **members)
        return await service.spawn(request, CALLER, None, lambda: True, pinned=pinned)


@pytest.fixture
async def process(running: RunningLog, tmp_path: Path) -> Process:
    process = Process(running, tmp_path)
    await process.activate()
    return process


@pytest.fixture
def behind(running: RunningLog, tmp_path: Path) -> Process:
    """Return another process, which has not seen the first one's activation."""
    return Process(running, tmp_path)


async def events_of(running: RunningLog, kind: type[E]) -> list[E]:
    return [event.event for event in await running.events() if isinstance(event.event, kind)]


# Of its requester.


async def test_spawn_below_no_run_reads_nothing_of_a_tree_that_waits(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (await process.spawn()).run
    for _ in range(2):
        spawned = await process.spawn(dependsOn=[str(first.run_id)])
        assert spawned.answer.kind == "accepted"
        monkeypatch.setattr(load, "ROWS_MAX", 0)


async def test_unseen_session_is_not_looked_for(process: Process) -> None:
    for _ in range(2):
        spawned = await process.spawn("agent:main:new")
        assert (spawned.answer.kind, process.registry.asked) == ("accepted", 0)


async def test_spawn_counts_children_of_another_process(
    running: RunningLog, process: Process, tmp_path: Path
) -> None:
    await process.spawn(BUSY)
    async with running.other() as second_log:
        elsewhere = Process(second_log, tmp_path)
        await elsewhere.activate()
        await elsewhere.spawn(BUSY)
        spawned = await process.spawn(BUSY)
    requested = (await running.log.read(limit=1, run_id=spawned.run.run_id))[0].event
    assert isinstance(requested, SpawnRequested)
    assert (requested.facts.active_children, process.registry.asked) == (2, 0)


async def test_spawn_by_session_continued_elsewhere_names_its_run(
    running: RunningLog, family: LoggedFamily, process: Process
) -> None:
    await family.begin("top")
    await process.activate(maxSpawnDepth=2)
    assert process.registry.last_seen_session(family.key("top")) is not None
    async with running.other() as second_log:
        family.log = second_log.log
        await finish(family, "top")
        await send(family, "again", "top")
        spawned = await process.spawn(family.key("top"))
    assert spawned.run.requester.run_id == family.id("again")
    assert process.registry.asked == 1


@pytest.mark.parametrize("is_remembered", [True, False])
async def test_tree_and_agent_of_requester_are_those_on_record(
    running: RunningLog, family: LoggedFamily, tmp_path: Path, is_remembered: bool
) -> None:
    await family.begin("top")
    process = Process(running, tmp_path, is_remembered=is_remembered)
    await process.activate()
    before = len(await running.events())
    spawned = await process.spawn(family.key("top"))
    requested, *_ = (await running.events())[before:]
    assert isinstance(requested.event, SpawnRequested)
    assert requested.event.requester.agent_id == "main"
    assert requested.envelope.provenance.correlation == ROOT
    assert requested.envelope.provenance.causation == family.run("top").last_event_id
    assert spawned.run.requester.root_session_key == ROOT


async def test_answer_names_the_append_that_decided_it(
    running: RunningLog, family: LoggedFamily, process: Process
) -> None:
    spawned = await process.spawn("agent:main:new")
    assert spawned.position == await running.log.head()
    await family.begin("top")
    refused = await process.spawn(family.key("top"))
    assert (refused.answer.kind, refused.position) == ("forbidden", await running.log.head())


async def test_spawns_of_one_requester_at_once_are_each_recorded_as_a_whole(
    running: RunningLog, process: Process
) -> None:
    """Both are prepared from the same state, so the second is decided again under the lock; its
    child is the prepared one all the same.
    """
    await process.spawn(BUSY)
    spawned = await asyncio.gather(*(process.spawn(BUSY) for _ in range(3)))
    facts = []
    for run in spawned:
        events = await running.log.read(limit=20, run_id=run.run.run_id)
        requested, queued = events[0], next(x for x in events if x.envelope.type == "RunQueued")
        assert isinstance(requested.event, SpawnRequested)
        facts.append(requested.event.facts.active_children)
        assert queued.envelope.recorded_at == requested.envelope.recorded_at
        assert run.position == queued.envelope.position
    assert sorted(facts) == [1, 2, 3]
    assert {item.answer.kind for item in spawned} == {"accepted"}


async def test_requester_stopped_while_its_spawn_is_prepared_spawns_no_more(
    running: RunningLog, family: LoggedFamily, process: Process
) -> None:
    await family.begin("top")
    await process.activate(maxSpawnDepth=2)
    assert (await process.spawn(family.key("top"))).answer.kind == "accepted"
    process.meanwhile.action = lambda: family.tell("top", ask.stop())
    before = await running.log.head()
    with pytest.raises(SessionIsClosed, match="is being stopped"):
        await process.spawn(family.key("top"))
    assert await running.log.head() == before + 1


async def test_requester_without_room_once_its_spawn_is_prepared_is_refused(
    process: Process,
) -> None:
    for _ in range(4):
        await process.spawn(BUSY)
    process.meanwhile.action = lambda: process.spawn(BUSY)
    spawned = await process.spawn(BUSY)
    assert (spawned.answer.kind, spawned.run.stage) == ("forbidden", "refused")


def admission_of(command: RequestSpawn) -> Decision[SpawnDecision]:
    """Return the admission of a spawn by an unknown session."""
    decided = request_spawns({}, {}, [(command, keep)], policy())
    return Decision(decided, decided.changes)


def after(admission: Decision[SpawnDecision]) -> CascadeState:
    """Return the recorded state after an admission to an empty log."""
    family = Speculation(CascadeState({}, {}), NOW)
    family.add(admission.changes)
    return family.family


def prepared_for(
    command: RequestSpawn, admission: Decision[SpawnDecision], room: LaneRoom | None = None
) -> PreparedSpawn:
    """Return the preparation of an admission, with an empty creation."""
    admitted = after(admission).runs.values()
    creation = Following(command.run_id, Provenance(), Decision(None))
    return PreparedSpawn(admission, tuple(admitted), creation, (), room)


def test_prepared_child_follows_an_admission_of_the_same_run_alone() -> None:
    command, world = spawn_request(), DecisionContext({}, {}, NOW)
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
        self.asked.append(is_as_prepared)
        return []

    def execute(self, runs: Iterable[Run]) -> None:
        """Execute nothing."""


def test_run_whose_requester_shares_by_now_is_not_started_as_it_was_prepared() -> None:
    command, room = spawn_request(), AskedRoom()
    first = admission_of(command)
    ahead = prepared_for(command, first, room)
    seen = after(first).sessions
    sharing = {key: value.changed({"shared_position": 3}) for key, value in seen.items()}
    known: tuple[Mapping[str, Session], ...] = ({}, seen, sharing)
    for sessions in known:
        world = DecisionContext({}, sessions, NOW, LaneFacts(0, ()))
        assert ahead.following(world, first) == (ahead.creation,)
    assert room.asked == [True, True, False]


# Under the last revision of the log, even in a process that lags.


async def test_spawn_prepared_under_another_revision_is_prepared_again(
    running: RunningLog, process: Process
) -> None:
    await process.spawn("agent:main:another")
    before = len(await running.events())
    process.meanwhile.action = lambda: process.activate(result="other")
    spawned = await process.spawn("agent:main:new")
    assert (spawned.run.stage, spawned.run.config_revision) == ("queued", 2)
    types = [event.envelope.type for event in (await running.events())[before:]]
    assert types.count("SpawnRequested") == types.count("RunQueued") == 1


async def test_limit_lowered_elsewhere_holds_for_a_process_behind(
    running: RunningLog, process: Process, behind: Process
) -> None:
    assert await behind.activate(maxChildrenPerAgent=2) == 2
    assert (await behind.spawn()).answer.kind == "accepted"
    assert await process.activate(maxChildrenPerAgent=1) == 3
    assert behind.configurations.current().revision == 2
    refused = await behind.spawn()
    assert refused.answer.kind == "forbidden"
    assert (refused.answer.body["rule"], refused.answer.body["limit"]) == ("active_children", 1)
    assert refused.run.config_revision == 3
    requests = [
        event for event in await running.events() if isinstance(event.event, SpawnRequested)
    ]
    assert [event.envelope.provenance.config_revision for event in requests] == [2, 3]


@pytest.mark.parametrize("session", [{"mainKey": "work"}, {"scope": "global"}])
async def test_request_whose_key_would_name_another_session_is_to_be_repeated(
    running: RunningLog, process: Process, behind: Process, session: dict[str, str]
) -> None:
    await behind.activate()
    await process.activate(session=session)
    before = await running.log.head()
    with pytest.raises(
        LogUnavailableError, match="configuration changed while the request was read"
    ):
        await behind.spawn()
    assert await running.log.head() == before


async def test_facts_of_refusal_are_recorded_as_far_as_it_came(
    running: RunningLog, process: Process
) -> None:
    refused = await process.spawn(sandbox="require")
    assert (refused.answer.kind, refused.answer.body["rule"]) == ("forbidden", "sandbox")
    (event,) = await events_of(running, SpawnRefused)
    assert event.facts is not None
    assert event.facts.sandbox is not None
    assert event.facts.sandbox.required is True
    assert event.facts.models is None


@pytest.fixture
def shared_folder(tmp_path: Path) -> str:
    folder = tmp_path / "workspaces" / "main" / "shared"
    folder.mkdir(parents=True)
    return str(folder)


class Dying(SpawnPreparer):
    """Leaves a request on record whose preparation was never begun."""

    async def prepare(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("the process dies")


async def test_preparation_resumed_elsewhere_reads_the_folder_from_the_record(
    running: RunningLog, process: Process, behind: Process, shared_folder: str
) -> None:
    process.prepare_with(Dying)
    # Its shared values must be read, so the child is not created with the request.
    shares: dict[str, Any] = {
        "requester": {"workspaceDir": shared_folder},
        "sharedContext": {"note": "look"},
    }
    with pytest.raises(RuntimeError, match="dies"):
        await process.spawn(**shares)
    (requested,) = await events_of(running, SpawnRequested)
    run = await process.work.run(requested.run_id)
    await behind.activate()
    (prepared,) = (await behind.preparing.prepare([run], lambda: False)).runs
    assert prepared.plan is not None
    assert prepared.plan.workspace_dir == shared_folder
