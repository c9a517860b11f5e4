"""The configuration in force at the time, in an explanation and for a session's agent."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from application.log.envelope import Actor
from application.ports.configurations import PinnedConfiguration, RevisionErasedError
from application.queries.access import Caller, require_agent_access
from application.queries.errors import QueryError
from application.queries.explain import explanation_of
from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError, ConfigurationProblem
from domain.event_types import AnyEvent
from tests.support.builders.explained_spawns import ADMITTED, plan_facts
from tests.support.builders.run_histories import created, resolved
from tests.support.builders.storytelling import requested, run_of

ROOT = "${HARBOUR}/work"


class Told:
    """A log, texts and configurations with one spawn in them."""

    def __init__(self, events: Sequence[AnyEvent], failure: Exception | None) -> None:
        provenance = SimpleNamespace(config_revision=1)
        self._events = [
            SimpleNamespace(
                envelope=SimpleNamespace(position=at, provenance=provenance), event=event
            )
            for at, event in enumerate(events, start=1)
        ]
        self._failure = failure
        self.log = self.contents = self.configurations = self
        self.asked_for: list[int] = []

    async def read(self, **_: Any) -> Any:
        return self._events

    async def previews(self, _: Any) -> dict[Any, str]:
        return {}

    async def is_kept(self, revision: int) -> bool:
        return True

    async def at(self, revision: int) -> PinnedConfiguration:
        self.asked_for.append(revision)
        if self._failure is not None:
            raise self._failure
        configuration = Configuration.model_validate({"spawnlog": {"workspaceRoots": [ROOT]}})
        return PinnedConfiguration(revision, configuration, {})


@pytest.mark.parametrize(
    ("failure", "roots"),
    [
        (None, [ROOT]),
        (RevisionErasedError("gone"), None),
        (ConfigurationError([ConfigurationProblem("of a newer program", "kept revision")]), None),
    ],
)
async def test_lists_are_of_the_run_revision(
    failure: Exception | None, roots: list[str] | None
) -> None:
    events = requested(), ADMITTED, resolved(), created(facts=plan_facts())
    run = run_of(events[0], events[2], events[3])
    work: Any = Told(events, failure)
    result = await explanation_of(work, run, until=9, full=False)
    (workspace,) = [decision for decision in result.decisions if decision.rule == "workspace"]
    assert workspace.compared is not None
    assert workspace.compared["workspaceRoots"] == roots
    assert work.asked_for == [run.config_revision]


CONFIGURED = {"agents": {"list": [{"id": "ops"}, {"id": "lab"}]}}


def may_assert(agent_id: str, *patterns: str, **session: str) -> bool:
    configuration = Configuration.model_validate({**CONFIGURED, "session": session})
    caller = Caller(actor=Actor(kind="token"), scopes=frozenset({"spawn"}), patterns=patterns)
    try:
        require_agent_access(caller, agent_id, configuration)
    except QueryError:
        return False
    return True


@pytest.mark.parametrize("main_key", ["main", " Desk : Left"])
def test_main_session_asserts_its_agent(main_key: str) -> None:
    key = "agent:lab:main" if main_key == "main" else "agent:lab:desk:left"
    assert may_assert("lab", key, mainKey=main_key)
    assert may_assert("lab", "agent:lab:*", mainKey=main_key)
    assert not may_assert("ops", "agent:lab:*", mainKey=main_key)


def test_global_session_asserts_no_agent() -> None:
    assert not may_assert("lab", "global", scope="global")
    assert may_assert("lab", "agent:lab:main", scope="global")
