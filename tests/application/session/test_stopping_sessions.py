"""A session that goes on while it is being stopped is stopped all the same."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from application.log.envelope import Actor
from application.log.event_log import Submission
from application.log.texts import TextStore
from application.log.unit_of_work import UnitOfWork, provenance_of
from application.session.continue_session import decide_message
from application.session.stop import StopService
from domain.run.events import ContinuationPlanned
from domain.run.facts import SpawnOptions
from domain.run.plan_facts import PlanFacts
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.continuation import Message
from domain.values.record import run_stream, session_stream
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders import run_commands as ask
from tests.support.builders.configurations import PlacedConfigurations
from tests.support.builders.logged_family import LoggedFamily, content_key_of
from tests.support.builders.run_preparers import preparing_on
from tests.support.builders.storytelling import plan, ref
from tests.support.servers.running_log import RunningLog

OPERATOR = Actor(kind="token", token="operator")
STAYING = SpawnOptions(mode="session")


class Overtaken(PostgresRegistry):
    """Once it was asked for a run, something happens before the answer is there."""

    def __init__(self, running: RunningLog, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(running.pool)
        self._meanwhile = [meanwhile]

    async def run(self, run_id: UUID, *, at: int | None = None) -> Run | None:
        run = await super().run(run_id, at=at)
        if self._meanwhile:
            await self._meanwhile.pop()()
        return run


async def goes_on(family: LoggedFamily, last: Run) -> UUID:
    """A message starts another run of the session."""
    message = Message(
        run_id=uuid7(), text=ref("message"), by="operator", config_revision=1, max_children=5
    )
    planned = ContinuationPlanned(
        max_depth=2,
        role="orchestrator",
        control_scope="children",
        plan=plan(),
        ingredients=(),
        facts=PlanFacts(),
    )
    key = last.child_session_key
    assert key is not None
    streams = (
        run_stream(message.run_id),
        run_stream(last.run_id),
        session_stream(key),
        session_stream(last.requester.session_key),
    )

    text_store = TextStore(last.session_id, content_key_of(last.session_id), uuid7)
    appended = await family.log.submit(
        Submission(
            command_id=uuid7(),
            streams=streams,
            decide=lambda world: decide_message(world, message, last, planned, text_store),
            provenance=provenance_of(last),
        )
    )
    assert appended.result.kind == "continued"
    return message.run_id


async def announced(family: LoggedFamily, name: str, options: SpawnOptions) -> Run:
    await family.spawn(name, options=options, thread=options.mode == "session")
    await family.create(name)
    await family.tell(name, ask.claim())
    await family.start(name)
    await family.end(name)
    await family.announce(name)
    return family.run(name)


def stopping(running: RunningLog, registry: PostgresRegistry, folder: Path) -> StopService:
    contents, identities = PostgresContents(running.pool), RandomIdentities()
    configurations = PlacedConfigurations(folder)
    configurations.read({})
    work = UnitOfWork(running.log, identities, registry, contents, configurations)
    return StopService(work, preparing_on(work, configurations.workspaces, running.pool, folder))


async def session_of(running: RunningLog, run: Run) -> Session:
    assert run.child_session_key is not None
    session = await PostgresRegistry(running.pool).session(run.child_session_key)
    assert session is not None
    return session


@pytest.mark.parametrize("options", [SpawnOptions(), STAYING], ids=["run", "session"])
async def test_the_run_that_goes_on_meanwhile_is_the_one_that_is_stopped_and_told_of(
    running: RunningLog, family: LoggedFamily, tmp_path: Path, options: SpawnOptions
) -> None:
    last = await announced(family, "child", options)
    fresh: list[UUID] = []

    async def message() -> None:
        fresh.append(await goes_on(family, last))

    registry = Overtaken(running, message)
    answer = await stopping(running, registry, tmp_path).stop_session(
        await session_of(running, last), OPERATOR, "enough"
    )
    run = await registry.run(fresh[0])
    assert run is not None
    assert (run.stage, run.outcome, run.stop_requested_by) == ("ended", "stopped", "operator")
    assert answer.body["runId"] == str(fresh[0])
    assert answer.body["wasOver"] is False
    closed = (await session_of(running, last)).stage == "closed"
    assert (answer.body["closed"], closed) == (options.mode == "session",) * 2


async def test_a_run_that_is_over_before_its_stop_and_goes_on_is_stopped_as_the_next_one(
    running: RunningLog, family: LoggedFamily, tmp_path: Path
) -> None:
    await family.begin("child")
    fresh: list[UUID] = []

    async def over_and_on() -> None:
        await family.end("child")
        await family.announce("child")
        fresh.append(await goes_on(family, family.run("child")))

    registry = Overtaken(running, over_and_on)
    await stopping(running, registry, tmp_path).stop_session(
        await session_of(running, family.run("child")), OPERATOR, None
    )
    run = await registry.run(fresh[0])
    assert run is not None
    assert (run.stage, run.outcome) == ("ended", "stopped")
    assert family.run("child").outcome == "success"
