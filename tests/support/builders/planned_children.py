"""Planned children: a run, a configuration, and workspaces."""

from pathlib import Path
from typing import Any

from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import Configuration, EffectiveAgent
from domain.plan.child import PlannedChild, RefusedChild
from domain.plan.credentials import NOTHING_FOUND, FoundCredentials
from domain.run.facts import SpawnOptions
from domain.run.state import Run
from tests.support.builders.facts import fact_of
from tests.support.builders.run_histories import resolved
from tests.support.builders.spawn_plans import plan_spawn
from tests.support.builders.storytelling import requested, requester, run_of

SCRIPTED = {"type": "scripted"}
BOXED = {"sandbox": {"mode": "all"}}


class Workspaces:
    """Implements `Workspaces`: creates folders in one place and refuses the given ones."""

    def __init__(self, folder: Path, unusable: OSError | None = None) -> None:
        self.folder = folder
        self.unusable = unusable
        self.asked: list[tuple[str, str | None, str | None]] = []

    def workspace_of(
        self,
        pinned: PinnedConfiguration,
        agent: EffectiveAgent,
        *,
        recorded: str | None = None,
        requested: str | None = None,
    ) -> str:
        self.asked.append((agent.id, recorded, requested))
        if self.unusable is not None:
            raise self.unusable
        if requested or recorded:
            return str(requested or recorded)
        made = self.folder / agent.id
        made.mkdir(exist_ok=True)
        return str(made)


def configuration(*agents: dict[str, Any], **defaults: Any) -> Configuration:
    return Configuration.model_validate(
        {"agents": {"list": agents, "defaults": {"runtime": SCRIPTED, **defaults}}}
    )


def asked(agent_id: str = "main", asks: dict[str, Any] | None = None, **changes: Any) -> Run:
    """Return a run whose scripts have run. `asks` describes the requester."""
    options = fact_of(SpawnOptions, changes.pop("options", {}))
    event = requested(
        requested_agent_id=agent_id, requester=requester(**(asks or {})), options=options, **changes
    )
    return run_of(event, resolved())


def decided(
    workspaces: Workspaces,
    run: Run,
    configured: Configuration,
    credentials: FoundCredentials = NOTHING_FOUND,
    **texts: str,
) -> PlannedChild | RefusedChild:
    """Return the plan, or its refusal. `texts` are those stored beside the log."""
    pinned = PinnedConfiguration(1, configured, {})
    return plan_spawn(run, pinned, workspaces, credentials=credentials, **texts)


def plan_of(
    workspaces: Workspaces,
    run: Run,
    configured: Configuration,
    credentials: FoundCredentials = NOTHING_FOUND,
    **texts: str,
) -> PlannedChild:
    """Return the plan; assert that it is not refused."""
    made = decided(workspaces, run, configured, credentials, **texts)
    assert isinstance(made, PlannedChild), made
    return made


def unfit(
    workspaces: Workspaces,
    run: Run,
    configured: Configuration,
    credentials: FoundCredentials = NOTHING_FOUND,
    **texts: str,
) -> RefusedChild:
    """Return the refusal; assert that there is one."""
    made = decided(workspaces, run, configured, credentials, **texts)
    assert isinstance(made, RefusedChild), made
    return made
