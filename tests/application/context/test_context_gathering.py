"""Context scripts run one after the other, within one time for all, and each has its receipt."""

import asyncio
from typing import Any

import pytest

from application.context.scripts import ContextGatherer, GatheredContext
from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from application.ports.scripts import ScriptFinished, ScriptRun, ScriptRunner
from domain.configuration.context_scripts import SPAWN_VARIABLES
from domain.run.facts import SpawnOptions
from infrastructure.outbound.identity.identifiers import RandomIdentities
from tests.support.builders.configurations import load_values
from tests.support.builders.storytelling import requested, run_id, run_of


class Notes:
    """Notes who runs with how much time; `hangs` takes all of it, `fails` fails, `breaks` raises,
    any other proposes the agent that is named like it."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, float]] = []

    async def run(self, request: ScriptRun) -> ScriptFinished:
        name = request.script.id
        self.ran.append((name, request.timeout_seconds))
        if name.startswith("hangs"):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), request.timeout_seconds)
            return ScriptFinished(error="it took too long")
        if name == "fails":
            return ScriptFinished(raw=b'{"agent": "other"}', exit_code=3, error="it failed")
        if name == "breaks":
            raise RuntimeError(name)
        return ScriptFinished(raw=b'{"message": "m", "agent": "other"}', exit_code=0)


async def gathered(
    runner: ScriptRunner, *scripts: dict[str, Any], **settings: Any
) -> tuple[GatheredContext, dict[str, str]]:
    """What was gathered, and the error of each script that has one."""
    run = [{"uri": "/s", "agentIdOverrideKey": "agent", **one} for one in scripts]
    listed = {"defaults": {"subagents": {"contextScripts": {"run": run}}}}
    agents = {**listed, "list": [{"id": "main"}, {"id": "other"}]}
    loaded = load_values({"agents": agents, "spawnlog": settings})
    pinned = PinnedConfiguration(1, loaded.configuration, loaded.stored)
    text_store = TextStore(run_id(1), b"key", RandomIdentities().event_id)
    spawn, agent = run_of(requested()), pinned.configuration.effective_agent("main")
    told = await ContextGatherer(runner).gather(spawn, agent, "task", pinned, text_store)
    texts = {one.ref.id: one.text for one in text_store.contents}
    return told, {one.id: texts[one.error.id] for one in told.receipts if one.error is not None}


def outcomes(told: GatheredContext) -> dict[str, str]:
    return {one.id: one.outcome for one in told.receipts}


async def test_all_scripts_of_a_spawn_have_one_time_together() -> None:
    notes = Notes()
    told, errors = await gathered(
        notes,
        {"id": "hangs-1", "timeoutSeconds": 0.2},
        {"id": "hangs-2", "timeoutSeconds": 600},
        {"id": "late"},
        scriptsTotalSeconds=0.3,
    )
    (first, one), (second, other) = notes.ran
    assert (first, second, one) == ("hangs-1", "hangs-2", 0.2)
    assert 0 < other <= 0.1
    assert outcomes(told) == {"hangs-1": "failed", "hangs-2": "failed", "late": "skipped"}
    assert errors["late"] == "no time was left"
    assert told.override_to is None


async def test_usually_each_has_10_seconds_and_all_have_30() -> None:
    notes = Notes()
    await gathered(notes, {"id": "a"}, {"id": "b", "timeoutSeconds": 60})
    (_, first), (_, second) = notes.ran
    assert first == 10
    assert 29 < second <= 30


async def test_stop_keeps_what_was_given_before_and_skips_what_follows() -> None:
    notes = Notes()
    told, errors = await gathered(
        notes, {"id": "a"}, {"id": "fails", "errorHandling": "stop"}, {"id": "b"}
    )
    assert [name for name, _ in notes.ran] == ["a", "fails"]
    assert outcomes(told) == {"a": "injected", "fails": "failed", "b": "skipped"}
    assert errors == {"fails": "it failed", "b": "an earlier script stopped the rest"}
    assert [(one.script_id, one.verdict) for one in told.candidates] == [("a", "winner")]
    assert told.override_to == "other"


async def test_a_failure_is_passed_over_and_proposes_nobody() -> None:
    told, _ = await gathered(Notes(), {"id": "fails"}, {"id": "b"})
    assert outcomes(told) == {"fails": "failed", "b": "injected"}
    assert [one.script_id for one in told.candidates] == ["b"]
    assert told.receipts[0].candidate is None


async def test_a_runner_that_breaks_fails_no_spawn(caplog: pytest.LogCaptureFixture) -> None:
    told, errors = await gathered(Notes(), {"id": "breaks"}, {"id": "b"})
    assert outcomes(told) == {"breaks": "failed", "b": "injected"}
    assert errors["breaks"] == "Script could not be run; the server's log says why"
    assert "context script breaks" in caplog.text


class Hears:
    """Notes what every variable of the table is."""

    def __init__(self) -> None:
        self.told: dict[str, object] = {}

    async def run(self, request: ScriptRun) -> ScriptFinished:
        self.told = {name: request.variables.value_of(name) for name in SPAWN_VARIABLES}
        return ScriptFinished()


async def test_a_script_is_told_the_spawn_and_the_configuration_without_its_secrets() -> None:
    listed = {"defaults": {"subagents": {"contextScripts": {"run": [{"id": "s", "uri": "/s"}]}}}}
    env = {"A_TOKEN": "s3cret-of-the-file"}
    loaded = load_values({"agents": {**listed, "list": [{"id": "main"}]}, "env": env})
    pinned = PinnedConfiguration(1, loaded.configuration, loaded.stored)
    text_store = TextStore(run_id(1), b"key", RandomIdentities().event_id)
    hears = Hears()
    options = SpawnOptions(cleanup="delete")
    run = run_of(requested(requested_agent_id="steward", label="a label", options=options))
    agent = pinned.configuration.effective_agent("steward")
    await ContextGatherer(hears).gather(run, agent, "the task", pinned, text_store)
    cfg = hears.told.pop("cfg")
    assert hears.told == {
        "targetAgentId": "steward",
        "task": "the task",
        "label": "a label",
        "requesterAgentId": run.requester.agent_id,
        "requesterSessionKey": run.requester.session_key,
        "cleanup": "delete",
    }
    assert cfg == loaded.stored
    assert "s3cret" not in str(cfg)
    assert "/env/A_TOKEN" in str(cfg)
