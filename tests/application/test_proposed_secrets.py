"""A script may propose, as an agent, a secret that it has from elsewhere: no event holds it."""

from typing import Any

import pytest

from application.context_gathering import ContextGathering, Gathered
from application.keeping import Keeper
from application.ports.configurations import PinnedConfiguration
from application.ports.scripts import Mask, ScriptFinished, ScriptRun
from infrastructure.outbound.configuration.loading import load_values
from infrastructure.outbound.identities import RandomIdentities
from tests.support.storytelling import requested, run_id, run_of

SECRET = "S3cret-of-a-variable"


class Proposes:
    """Every script proposes this agent."""

    def __init__(self, agent: str) -> None:
        self._agent = agent

    async def run(self, request: ScriptRun) -> ScriptFinished:
        return ScriptFinished(raw=f'{{"agent": "{self._agent}"}}'.encode(), exit_code=0)


class Known:
    """Knows this secret."""

    def mask_for(self, pinned: PinnedConfiguration) -> Mask:
        return lambda text: text.replace(SECRET, "[redacted]")


async def gathered(proposed: str, *agents: str) -> Gathered:
    script: dict[str, Any] = {"id": "s", "uri": "/s", "agentIdOverrideKey": "agent"}
    listed = {"defaults": {"subagents": {"contextScripts": {"run": [script]}}}}
    loaded = load_values({"agents": {**listed, "list": [{"id": id} for id in ("main", *agents)]}})
    pinned = PinnedConfiguration(1, loaded.configuration, loaded.stored)
    keeper = Keeper(run_id(1), b"key", RandomIdentities().event_id)
    gathering = ContextGathering(Proposes(proposed), secrets=Known())
    return await gathering.gather(run_of(requested()), "task", pinned, keeper)


@pytest.mark.parametrize("proposed", [SECRET, f"x{SECRET}-y"])
async def test_a_secret_that_is_proposed_as_an_agent_stands_in_no_event(proposed: str) -> None:
    told = await gathered(proposed)
    (receipt,), (candidate,) = told.receipts, told.candidates
    assert (receipt.outcome, receipt.candidate) == ("injected", None)
    assert (candidate.agent_id, candidate.verdict) == (None, "not_configured")
    assert "s3cret" not in f"{receipt!r} {candidate!r}".lower()


async def test_an_agent_is_named_whatever_the_secrets_are() -> None:
    told = await gathered(SECRET, SECRET.lower())
    assert told.override_to == SECRET.lower()
    assert told.receipts[0].candidate == SECRET
    assert told.candidates[0].agent_id == SECRET.lower()


async def test_what_is_no_secret_is_told() -> None:
    told = await gathered("nobody")
    assert told.receipts[0].candidate == told.candidates[0].agent_id == "nobody"
