"""A spawn is decided under the last revision on the log, even by a process that lags behind."""

from pathlib import Path
from typing import Any

import pytest

from application.concurrency.flushes import Flushes
from application.coordination.holder import Holder
from application.log.envelope import Actor
from application.log.event_log import LogUnavailable
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.spawn.prepare import RunPreparer
from application.spawn.service import SpawnResult, SpawnService
from domain.run.events import SessionCreated, SpawnRefused, SpawnRequested
from domain.run.state import Run
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders.configurations import load_values
from tests.support.builders.run_preparers import NoPlaces, preparing_on
from tests.support.builders.spawn_plans import resolved_spawn
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations

OPERATOR = Actor(kind="token", token="operator")


class Process:
    """What one server process has, as far as spawns need it."""

    def __init__(self, running: RunningLog, folder: Path) -> None:
        contents, identities = PostgresContents(running.pool), RandomIdentities()
        self.folder, self.pool = folder, running.pool
        self.configurations = ServerConfigurations(running, folder / "workspaces")
        registry = PostgresRegistry(running.pool)
        self.work = UnitOfWork(running.log, identities, registry, contents, self.configurations)
        self.preparing = preparing_on(
            self.work, self.configurations.workspaces, running.pool, folder
        )
        self.spawning = SpawnService(
            self.work, self.preparing, NoPlaces(), Holder(lambda: "server"), Flushes()
        )

    async def activate(self, *, session: dict[str, str] | None = None, **subagents: Any) -> int:
        """Make this the active configuration; gives its revision."""
        defaults = {"runtime": {"type": "scripted"}, "subagents": subagents}
        values = {"agents": {"defaults": defaults}, "session": session or {}}
        loaded = load_values(values, folder=self.folder)
        return await self.configurations.activate(loaded, OPERATOR)

    async def spawn(self, pinned: PinnedConfiguration, **changes: Any) -> SpawnResult:
        """A child of the root, by a request that was read under this revision."""
        request = resolved_spawn(**changes)
        return await self.spawning.spawn(request, OPERATOR, None, lambda: True, pinned=pinned)


@pytest.fixture
def ahead(running: RunningLog, tmp_path: Path) -> Process:
    return Process(running, tmp_path)


@pytest.fixture
def behind(running: RunningLog, tmp_path: Path) -> Process:
    """Another process, which was not told of what the first one activated."""
    return Process(running, tmp_path)


async def test_a_limit_that_was_lowered_elsewhere_holds_for_who_has_not_heard_of_it(
    running: RunningLog, ahead: Process, behind: Process
) -> None:
    await behind.activate(maxChildrenPerAgent=2)
    pinned = behind.configurations.current()
    assert (await behind.spawn(pinned)).answer.kind == "accepted"
    assert await ahead.activate(maxChildrenPerAgent=1) == 2
    assert behind.configurations.current().revision == 1
    refused = await behind.spawn(pinned)
    assert refused.answer.kind == "forbidden"
    assert (refused.answer.body["rule"], refused.answer.body["limit"]) == ("active_children", 1)
    assert refused.run.config_revision == 2
    requests = [one for one in await running.events() if isinstance(one.event, SpawnRequested)]
    assert [one.envelope.provenance.config_revision for one in requests] == [1, 2]


async def test_a_limit_that_was_raised_elsewhere_holds_as_well(
    ahead: Process, behind: Process
) -> None:
    await behind.activate(maxChildrenPerAgent=1)
    pinned = behind.configurations.current()
    assert (await behind.spawn(pinned)).answer.kind == "accepted"
    await ahead.activate(maxChildrenPerAgent=2)
    accepted = await behind.spawn(pinned)
    assert (accepted.answer.kind, accepted.run.config_revision) == ("accepted", 2)


@pytest.mark.parametrize("session", [{"mainKey": "work"}, {"scope": "global"}])
async def test_a_request_whose_key_would_stand_for_another_session_is_to_be_asked_again(
    running: RunningLog, ahead: Process, behind: Process, session: dict[str, str]
) -> None:
    await behind.activate()
    pinned = behind.configurations.current()
    await ahead.activate(session=session)
    before = await running.log.head()
    with pytest.raises(LogUnavailable, match="configuration changed while the request was read"):
        await behind.spawn(pinned)
    assert await running.log.head() == before


async def test_what_a_plan_was_decided_from_is_recorded_with_it(
    running: RunningLog, ahead: Process
) -> None:
    await ahead.activate(thinking="low")
    pinned = ahead.configurations.current()
    spawned = await ahead.spawn(pinned, model="p/m", runTimeoutSeconds=-1.5)
    assert spawned.answer.kind == "accepted"
    (created,) = [
        one.event for one in await running.events() if isinstance(one.event, SessionCreated)
    ]
    facts = created.facts
    assert facts is not None
    assert (facts.agent_configured, facts.runtime) == (True, "scripted")
    assert facts.models is not None
    assert [(one.source, one.verdict) for one in facts.models] == [("argument", "taken")]
    assert facts.thinking is not None
    assert (facts.thinking.defaults_subagents, facts.thinking.taken_from) == (
        "low",
        "defaults_subagents",
    )
    assert facts.run_timeout is not None
    assert (facts.run_timeout.argument, created.plan.run_timeout_seconds) == (-1.5, 0)
    assert facts.workspace is not None
    assert facts.workspace.chosen == created.plan.workspace_dir


async def test_what_a_refusal_was_decided_from_is_recorded_as_far_as_it_came(
    running: RunningLog, ahead: Process
) -> None:
    await ahead.activate()
    pinned = ahead.configurations.current()
    refused = await ahead.spawn(pinned, sandbox="require")
    assert (refused.answer.kind, refused.answer.body["rule"]) == ("forbidden", "sandbox")
    (event,) = [one.event for one in await running.events() if isinstance(one.event, SpawnRefused)]
    assert event.facts is not None
    assert event.facts.sandbox is not None
    assert event.facts.sandbox.required is True
    assert event.facts.models is None


async def test_a_folder_that_a_request_names_is_kept_beside_the_log_until_it_is_taken(
    running: RunningLog, ahead: Process, tmp_path: Path
) -> None:
    await ahead.activate()
    pinned = ahead.configurations.current()
    refused = await ahead.spawn(pinned, requester={"workspaceDir": "/etc"})
    assert (refused.answer.kind, refused.answer.body["rule"]) == ("error", "workspace")
    (requested,) = [
        one.event for one in await running.events() if isinstance(one.event, SpawnRequested)
    ]
    assert requested.workspace_argument is not None
    assert '"/etc"' not in requested.to_json().decode()
    folder = tmp_path / "workspaces" / "main" / "shared"
    folder.mkdir(parents=True)
    accepted = await ahead.spawn(pinned, requester={"workspaceDir": str(folder)})
    assert accepted.run.plan is not None
    assert accepted.run.plan.workspace_dir == str(folder)
    assert accepted.run.plan.workspace_source == "requester"


async def test_a_preparation_that_goes_on_elsewhere_reads_the_folder_from_the_record(
    ahead: Process, behind: Process, tmp_path: Path
) -> None:
    await ahead.activate()
    folder = tmp_path / "workspaces" / "main" / "shared"
    folder.mkdir(parents=True)
    run = await _left_behind(ahead, str(folder))
    await behind.activate()
    (prepared,) = (await behind.preparing.prepare([run], lambda: False)).runs
    assert prepared.plan is not None
    assert prepared.plan.workspace_dir == str(folder)


async def _left_behind(process: Process, workspace: str) -> Run:
    """A run whose request is on record and whose preparation was never begun."""

    class Dying(RunPreparer):
        async def prepare(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("the process dies")

    preparing = preparing_on(
        process.work, process.configurations.workspaces, process.pool, process.folder, Dying
    )
    process.spawning = SpawnService(
        process.work, preparing, NoPlaces(), Holder(lambda: "server"), Flushes()
    )
    # What it shares has to be read, so there is something between the request and the child.
    shares = {"requester": {"workspaceDir": workspace}, "sharedContext": {"note": "look"}}
    with pytest.raises(RuntimeError, match="dies"):
        await process.spawn(process.configurations.current(), **shares)
    (last,) = await process.work.log.read(limit=1, types=("SpawnRequested",))
    assert isinstance(last.event, SpawnRequested)
    return await process.work.run(last.event.run_id)
