"""A script may say a secret that it has from elsewhere: no event and no error holds it."""

from typing import Any
from uuid import UUID

import pytest

from application.context.scripts import ContextGatherer, GatheredContext
from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from application.ports.scripts import Mask, ScriptFinished, ScriptRun
from domain.configuration.configuration import Configuration
from domain.configuration.context_scripts import ContextScript
from domain.context.script_output import ScriptReading
from infrastructure.outbound.identity.identifiers import RandomIdentities
from tests.support.builders.configurations import load_values
from tests.support.builders.scripts import reading_again
from tests.support.builders.storytelling import requested, run_id, run_of

SECRET = "S3cret-of-a-variable"


class Ends:
    """Every script ends like this."""

    def __init__(self, finished: ScriptFinished) -> None:
        self._finished = finished

    async def run(self, request: ScriptRun) -> ScriptFinished:
        return self._finished


class Known:
    """Knows this secret."""

    def mask_for(self, pinned: PinnedConfiguration) -> Mask:
        return lambda text: text.replace(SECRET, "[redacted]")


async def ended(finished: ScriptFinished, *agents: str) -> tuple[GatheredContext, dict[UUID, str]]:
    """What was gathered, and the texts that were kept."""
    script: dict[str, Any] = {"id": "s", "uri": "/s", "agentIdOverrideKey": "agent"}
    listed = {"defaults": {"subagents": {"contextScripts": {"run": [script]}}}}
    loaded = load_values({"agents": {**listed, "list": [{"id": id} for id in ("main", *agents)]}})
    pinned = PinnedConfiguration(1, loaded.configuration, loaded.stored)
    text_store = TextStore(run_id(1), b"key", RandomIdentities().event_id)
    gathering = ContextGatherer(Ends(finished), secrets=Known())
    agent = pinned.configuration.effective_agent("main")
    told = await gathering.gather(run_of(requested()), agent, "task", pinned, text_store)
    return told, {one.ref.id: one.text for one in text_store.contents}


async def gathered(proposed: str, *agents: str) -> GatheredContext:
    said = f'{{"agent": "{proposed}"}}'.encode()
    return (await ended(ScriptFinished(raw=said, exit_code=0), *agents))[0]


@pytest.mark.parametrize(
    "finished",
    [
        ScriptFinished(exit_code=3, error=f"Script exited with code 3: {SECRET}"),
        ScriptFinished(exit_code=0, raw=f'{{"error": "no {SECRET} here"}}'.encode()),
    ],
    ids=["a program that complains", "an output that reports it"],
)
async def test_the_error_of_a_script_is_kept_without_secrets(finished: ScriptFinished) -> None:
    told, texts = await ended(finished)
    (receipt,) = told.receipts
    assert receipt.error is not None
    error = texts[receipt.error.id]
    assert "[redacted]" in error
    assert SECRET not in error
    if receipt.output is not None:
        script = ContextScript(id="s", uri="/s")
        mask = Known().mask_for(PinnedConfiguration(1, Configuration(), {}))
        again = reading_again(receipt, script, texts[receipt.output.id], error, mask)
        assert again == ScriptReading(error=error)


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
