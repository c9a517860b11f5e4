"""A stop goes on to those that are spawned while it is under way."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from application.log.envelope import Actor
from application.log.unit_of_work import UnitOfWork
from application.session.stop import StopService
from domain.run.lifecycle import OVER
from domain.run.state import Run
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.run_preparers import preparing_on
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations

OPERATOR = Actor(kind="token", token="operator")


class Overtaken(PostgresRegistry):
    """After each look at what is below, something happens before the answer is there."""

    def __init__(self, running: RunningLog, *meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(running.pool)
        self._meanwhile = list(meanwhile)
        self.looks = 0

    async def runs_below(self, session_key: str) -> Sequence[Run]:
        below = await super().runs_below(session_key)
        self.looks += 1
        if self._meanwhile:
            await self._meanwhile.pop(0)()
        return below


def stopping(running: RunningLog, registry: Overtaken, folder: Path) -> StopService:
    contents, identities = PostgresContents(running.pool), RandomIdentities()
    configurations = ServerConfigurations(running, folder)
    work = UnitOfWork(running.log, identities, registry, contents, configurations)
    return StopService(work, preparing_on(work, configurations.workspaces, running.pool, folder))


async def test_those_spawned_while_others_are_being_stopped_are_stopped_too(
    running: RunningLog, tmp_path: Path
) -> None:
    family = LoggedFamily(running.log, max_spawn_depth=5)
    await family.begin("top")
    await family.begin("branch", "top")

    async def another() -> None:
        await family.begin("late", "branch")

    async def one_below_it() -> None:
        await family.begin("later", "late")

    registry = Overtaken(running, another, one_below_it)
    answer = await stopping(running, registry, tmp_path).stop(family.run("top"), OPERATOR, "enough")
    assert answer.kind == "stopping"
    for name in ("top", "branch", "late", "later"):
        run = await registry.run(family.id(name))
        assert run is not None
        assert (name, run.stop_requested_by) == (name, "operator")
    assert (await running.types()).count("StopRequested") == 4
    # The last look is the one that found nobody new.
    assert registry.looks == 4


async def test_those_that_are_over_or_told_already_are_left_as_they_are(
    running: RunningLog, family: LoggedFamily, tmp_path: Path
) -> None:
    await family.begin("top")
    await family.begin("done", "top")
    await family.end("done")
    await family.begin("told", "top")
    registry = Overtaken(running)
    stop = stopping(running, registry, tmp_path).stop
    await stop(family.run("told"), OPERATOR, None)
    await stop(family.run("top"), OPERATOR, None)
    assert (await running.types()).count("StopRequested") == 2
    done = await registry.run(family.id("done"))
    assert done is not None
    assert done.stage in OVER
    assert done.stop_requested_by is None
