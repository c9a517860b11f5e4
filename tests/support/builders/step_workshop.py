"""Preparations, stops and undos in one process, with steps that wait or fail as a test requires."""

import asyncio
import time
from pathlib import Path
from typing import Any
from uuid import UUID

from application.concurrency.bulkhead import Bulkhead
from application.concurrency.flushes import Flushes
from application.coordination.claims import Claims
from application.coordination.lease_owner import LeaseOwner
from application.delivery.effects import EffectWorker
from application.delivery.undo import UndoPerformer
from application.log.envelope import SYSTEM, Actor
from application.session.stop import StopService
from application.spawn.service import SpawnResult, SpawnService
from application.steps.attachments import AttachmentsStep
from application.steps.step import StepMaker, StepPlace, StepResult, UndoError
from application.steps.workspace import WorkspaceStep
from application.workers.due import DueWork
from domain.run.facts import Plan, StepState, UndoOutcome
from domain.run.state import Run
from infrastructure.outbound.files.attachments import WorkspaceAttachments
from infrastructure.outbound.files.workspaces import LocalWorkspaceFolders
from infrastructure.outbound.read_model.coordination import PostgresCoordination
from infrastructure.outbound.read_model.staged_files import PostgresStagedFiles
from tests.support.builders.configurations import load_values
from tests.support.builders.run_preparers import NoPlaces, preparing_on
from tests.support.builders.spawn_plans import resolved_spawn
from tests.support.builders.storytelling import ROOT
from tests.support.faults.interruption import uninterrupted
from tests.support.memory.served_log import work_on
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations
from tests.support.waiting import until

OPERATOR = Actor(kind="token", token="operator")
LOOK_SECONDS = 0.05
CLAIM_SECONDS = 10.0
BEGIN_SECONDS_MAX = 10.0
FILES = [{"name": "a.txt", "content": "first"}, {"name": "b.txt", "content": "second"}]
_UNDONE = (
    "SELECT count(*) FROM events WHERE type = 'EffectAttempted'"
    " AND convert_from(state, 'UTF8')::jsonb ? 'outcome'"
)


class WaitingStep:
    """A real step that waits before it takes effect, and whose undo fails a number of times.
    `limit` is the time limit that it declares.
    """

    def __init__(self, maker: StepMaker, limit_seconds: float) -> None:
        self._maker = maker
        self.name = maker.name
        self.limit_seconds = limit_seconds
        self._runs: asyncio.Queue[Run] = asyncio.Queue()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.failures = 0
        self.placed = 0
        self.undone = 0
        self.is_alone = True
        self._at_it: set[UUID] = set()

    async def begun(self) -> Run:
        return await asyncio.wait_for(self._runs.get(), BEGIN_SECONDS_MAX)

    async def place(self, run: Run, plan: Plan) -> StepPlace | None:
        """Return the place of the real step; `placed` counts the calls."""
        place = await self._maker.place(run, plan)
        self.placed += 1
        return place

    async def make(self, run: Run, state: StepState, *, is_resumed: bool) -> StepResult:
        self._runs.put_nowait(run)
        await self.may_go_on.wait()
        return await self._maker.make(run, state, is_resumed=is_resumed)

    async def undo(self, run: Run, state: StepState, /) -> UndoOutcome:
        """Undo the step after the given number of failures. Assert that a run has one undo at a
        time, unless more are allowed.
        """
        assert not self.is_alone or run.run_id not in self._at_it, "two are at it at once"
        self._at_it.add(run.run_id)
        try:
            await asyncio.sleep(0)
            self.undone += 1
            if self.undone <= self.failures:
                raise UndoError(f"the {self.undone}. attempt fails")
            return await self._maker.undo(run, state)
        finally:
            self._at_it.discard(run.run_id)


class Workshop:
    """Services of one server process for spawns with files, on a running log. Its children work in
    folders below `homes`.
    """

    def __init__(self, running: RunningLog, folder: Path, *, limit_seconds: float = 10.0) -> None:
        self.running, self.folder, self.homes = running, folder, folder.resolve() / "homes"
        self.configurations = ServerConfigurations(running, folder / "workspaces")
        self.work = work_on(running, self.configurations)
        self.staged = PostgresStagedFiles(running.pool)
        files = AttachmentsStep(
            WorkspaceAttachments(), self.staged, running.contents(), uninterrupted
        )
        self.workspace = WaitingStep(WorkspaceStep(LocalWorkspaceFolders()), limit_seconds)
        self.attachments = WaitingStep(files, limit_seconds)
        makers = (self.workspace, self.attachments)
        self.preparing = preparing_on(
            self.work, self.configurations.workspaces, running.pool, folder, makers=makers
        )
        self._spawning = SpawnService(
            self.work, self.preparing, NoPlaces(), LeaseOwner(lambda: "workshop"), Flushes()
        )
        self._stopping = StopService(self.work, self.preparing)
        self.effects = EffectWorker(self.work, [UndoPerformer(makers)], uninterrupted, Bulkhead())

    async def open(self) -> None:
        self.homes.mkdir()
        runtime = {"type": "scripted", "result": "done"}
        agents = [
            {"id": "main", "runtime": runtime},
            {"id": "porter", "runtime": runtime, "workspace": str(self.homes / "porter")},
        ]
        subagents = {"allowAgents": ["*"], "maxSpawnDepth": 3}
        values = {
            "agents": {"defaults": {"subagents": subagents}, "list": agents},
            "tools": {"sessions_spawn": {"attachments": {"enabled": True}}},
        }
        await self.configurations.activate(load_values(values, folder=self.folder), SYSTEM)

    async def spawn(self, requester: str = ROOT, *, batch: tuple[str, ...] = ()) -> SpawnResult:
        """Spawn a child with two files, or a batch of children without files."""
        batched = {"task": list(batch), "parallel": True} if batch else {"attachments": FILES}
        request = resolved_spawn(requester, agentId="porter", **batched)
        pinned = self.configurations.current()
        return await self._spawning.spawn(request, OPERATOR, None, lambda: True, pinned=pinned)

    async def erase(self, run: Run) -> None:
        await self.running.erase(run.session_id)

    async def stop(self, run: Run, actor: Actor = OPERATOR) -> None:
        await self._stopping.stop(run, actor, None)

    def undoer(self, name: str) -> DueWork:
        """Return a worker of this name that undoes what is due, as in a server; it is not
        started.
        """
        coordination = PostgresCoordination(self.running.pool)
        claims = Claims(
            coordination, LeaseOwner(lambda: name), lease_seconds=CLAIM_SECONDS, now=time.monotonic
        )
        return DueWork("effects", claims, self.effects.perform, seconds=LOOK_SECONDS)

    async def undone(self, steps: int) -> None:
        """Let two workers undo due steps, until this number of steps is recorded as undone."""

        async def are_done() -> bool:
            return await self.running.ask(_UNDONE) == [(steps,)]

        undoers = [self.undoer(name) for name in ("one", "other")]
        for undoer in undoers:
            undoer.start()
        try:
            await until(are_done, f"{steps} steps to be undone")
        finally:
            for undoer in undoers:
                await undoer.close()

    def left(self) -> list[str]:
        return sorted(str(path.relative_to(self.homes)) for path in self.homes.rglob("*"))

    async def recorded(self, run: Run, kind: str) -> list[Any]:
        events = await self.running.events()
        stream = f"run:{run.run_id}"
        return [
            event.event
            for event in events
            if event.envelope.stream == stream and event.envelope.type == kind
        ]
