"""A stop reaches runs that are spawned, and sessions that continue, in the meantime."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from application.log.envelope import Actor
from application.log.unit_of_work import UnitOfWork
from application.session.stop import StopService
from domain.run.facts import SpawnOptions
from domain.run.lifecycle import OVER
from domain.run.state import Run
from domain.session.state import Session
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders.configurations import PlacedConfigurations
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.logged_messages import finish, send
from tests.support.builders.run_preparers import preparing_on
from tests.support.servers.running_log import RunningLog

OPERATOR = Actor(kind="token", token="operator")
STAYING = SpawnOptions(mode="session")
Meanwhile = Callable[[], Awaitable[object]]


class Overtaken(PostgresRegistry):
    """Registry in which something happens after a read, before its answer returns."""

    def __init__(
        self,
        running: RunningLog,
        *,
        of_run: Sequence[Meanwhile] = (),
        below: Sequence[Meanwhile] = (),
    ) -> None:
        super().__init__(running.pool)
        self._of_run, self._below = [*of_run], [*below]
        self.looks = 0

    async def run(self, run_id: UUID, *, at: int | None = None) -> Run | None:
        run = await super().run(run_id, at=at)
        if self._of_run:
            await self._of_run.pop(0)()
        return run

    async def runs_below(self, session_key: str) -> Sequence[Run]:
        below = await super().runs_below(session_key)
        self.looks += 1
        if self._below:
            await self._below.pop(0)()
        return below


def stopping(running: RunningLog, registry: PostgresRegistry, folder: Path) -> StopService:
    configurations = PlacedConfigurations(folder)
    configurations.read({})
    contents = PostgresContents(running.pool)
    work = UnitOfWork(running.log, RandomIdentities(), registry, contents, configurations)
    return StopService(work, preparing_on(work, configurations.workspaces, running.pool, folder))


async def recorded(running: RunningLog, run_id: UUID) -> Run:
    run = await PostgresRegistry(running.pool).run(run_id)
    assert run is not None
    return run


async def session_of(running: RunningLog, run: Run) -> Session:
    session = await PostgresRegistry(running.pool).session(run.child_session_key or "")
    assert session is not None
    return session


async def test_run_spawned_while_others_are_stopped_is_stopped_too(
    running: RunningLog, tmp_path: Path
) -> None:
    family = LoggedFamily(running.log, max_spawn_depth=5)
    await family.begin("top")
    await family.begin("branch", "top")
    registry = Overtaken(
        running,
        below=[lambda: family.begin("late", "branch"), lambda: family.begin("later", "late")],
    )
    answer = await stopping(running, registry, tmp_path).stop(family.run("top"), OPERATOR, "enough")
    assert answer.kind == "stopping"
    for name in ("top", "branch", "late", "later"):
        run = await recorded(running, family.id(name))
        assert (name, run.stop_requested_by) == (name, "operator")
    assert (await running.types()).count("StopRequested") == 4
    # The last query found no new run.
    assert registry.looks == 4


async def test_run_that_is_over_or_stopped_already_is_left_alone(
    running: RunningLog, family: LoggedFamily, tmp_path: Path
) -> None:
    await family.begin("top")
    await family.begin("done", "top")
    await family.end("done")
    await family.begin("told", "top")
    stop = stopping(running, Overtaken(running), tmp_path).stop
    await stop(family.run("told"), OPERATOR, None)
    await stop(family.run("top"), OPERATOR, None)
    assert (await running.types()).count("StopRequested") == 2
    done = await recorded(running, family.id("done"))
    assert done.stage in OVER
    assert done.stop_requested_by is None


@pytest.mark.parametrize("options", [SpawnOptions(), STAYING], ids=["run", "session"])
async def test_run_that_continues_meanwhile_is_the_one_stopped(
    running: RunningLog, family: LoggedFamily, tmp_path: Path, options: SpawnOptions
) -> None:
    await family.begin("child", options=options, thread=options.mode == "session")
    await finish(family, "child")
    last = family.run("child")
    meanwhile = [lambda: send(family, "next", "child")]
    service = stopping(running, Overtaken(running, of_run=meanwhile), tmp_path)
    answer = await service.stop_session(await session_of(running, last), OPERATOR, "enough")
    run = await recorded(running, family.id("next"))
    assert (run.stage, run.outcome, run.stop_requested_by) == ("ended", "stopped", "operator")
    assert (answer.body["runId"], answer.body["wasOver"]) == (str(run.run_id), False)
    closed = (await session_of(running, last)).stage == "closed"
    assert (answer.body["closed"], closed) == (options.mode == "session",) * 2


async def test_run_that_ends_before_its_stop_is_stopped_as_the_next_one(
    running: RunningLog, family: LoggedFamily, tmp_path: Path
) -> None:
    await family.begin("child")

    async def over_and_on() -> None:
        await finish(family, "child")
        await send(family, "next", "child")

    service = stopping(running, Overtaken(running, of_run=[over_and_on]), tmp_path)
    session = await session_of(running, family.run("child"))
    await service.stop_session(session, OPERATOR, None)
    run = await recorded(running, family.id("next"))
    assert (run.stage, run.outcome) == ("ended", "stopped")
    assert family.run("child").outcome == "success"
