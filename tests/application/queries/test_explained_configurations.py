"""What an explanation tells of the configuration when its revision cannot be read any more."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from application.ports.configurations import PinnedConfiguration, RevisionErased
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
            SimpleNamespace(envelope=SimpleNamespace(position=at, provenance=provenance), event=one)
            for at, one in enumerate(events, start=1)
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
        (RevisionErased("gone"), None),
        (ConfigurationError([ConfigurationProblem("of a newer program", "kept revision")]), None),
    ],
)
async def test_lists_are_of_the_run_revision(
    failure: Exception | None, roots: list[str] | None
) -> None:
    events = requested(), ADMITTED, resolved(), created(facts=plan_facts())
    run = run_of(events[0], events[2], events[3])
    work: Any = Told(events, failure)
    told = await explanation_of(work, run, until=9, full=False)
    (workspace,) = [one for one in told.decisions if one.rule == "workspace"]
    assert workspace.compared is not None
    assert workspace.compared["workspaceRoots"] == roots
    assert work.asked_for == [run.config_revision]
