"""A script that proposes an agent whose credentials cannot be had proposes nobody."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from application.context.scripts import ContextGatherer
from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from application.ports.credentials import Credential
from application.ports.scripts import ScriptFinished, ScriptRun
from domain.configuration.configuration import Configuration, EffectiveAgent
from domain.plan.credentials import NOTHING_FOUND, FoundCredentials, MissingCredential
from tests.support.builders.storytelling import requested, run_of
from tests.support.models.log_invariants import stored_and_read


class Proposing:
    """Each script proposes the agent that it is called like."""

    async def run(self, request: ScriptRun) -> ScriptFinished:
        output = f'{{"message": "m", "agentId": "{request.script.id}"}}'
        return ScriptFinished(raw=output.encode(), exit_code=0, duration_ms=1)


class WithoutThoseOf:
    """Credentials, which these agents are without; `asked` is after whom was asked."""

    def __init__(self, *agents: str) -> None:
        self._agents = agents
        self.asked: list[str] = []

    async def found(self, pinned: PinnedConfiguration, agent: EffectiveAgent) -> FoundCredentials:
        self.asked.append(agent.id)
        if agent.id not in self._agents:
            return NOTHING_FOUND
        return FoundCredentials(missing=(MissingCredential("KEY", "KEY is not set", True),))

    async def environment(
        self, pinned: PinnedConfiguration, agent_id: str
    ) -> Mapping[str, Credential]:
        raise AssertionError("nothing is started")


def pinned(**priorities: int) -> PinnedConfiguration:
    scripts: list[dict[str, Any]] = [
        {"id": name, "uri": "x", "format": "json", "priority": priority}
        | {"returnKey": "message", "agentIdOverrideKey": "agentId"}
        for name, priority in priorities.items()
    ]
    agents = {
        "list": [{"id": "main"}, {"id": "best"}, {"id": "second"}],
        "defaults": {"subagents": {"contextScripts": {"run": scripts}}},
    }
    return PinnedConfiguration(1, Configuration.model_validate({"agents": agents}), {})


@pytest.mark.parametrize(
    ("without", "taken", "asked", "verdicts"),
    [
        ((), "best", ["best"], ["winner", "lower_priority", "not_configured"]),
        (
            ("best",),
            "second",
            ["best", "second"],
            ["credentials_missing", "winner", "not_configured"],
        ),
        (
            ("best", "second"),
            None,
            ["best", "second"],
            ["credentials_missing", "credentials_missing", "not_configured"],
        ),
    ],
)
async def test_the_best_that_has_its_credentials_is_taken(
    without: tuple[str, ...], taken: str | None, asked: list[str], verdicts: list[str]
) -> None:
    credentials = WithoutThoseOf(*without)
    scripts = pinned(best=3, second=2, ghost=1)
    gathered = await ContextGatherer(Proposing(), credentials).gather(
        run_of(requested()),
        scripts.configuration.effective_agent("main"),
        "task",
        scripts,
        TextStore(uuid4(), bytes(32), uuid4),
    )
    assert gathered.override_to == taken
    assert credentials.asked == asked
    assert [one.verdict for one in gathered.candidates] == verdicts
    # The priorities of the file are whole numbers.
    for fact in (*gathered.candidates, *gathered.receipts):
        stored_and_read(fact)
