"""What context scripts said for an earlier run is read again where the scripts are the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from application.context.recorded_scripts import (
    NothingRecorded,
    RecordedOutput,
    RecordedScripts,
)
from application.context.scripts import ContextGatherer, GatheredContext
from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from application.ports.scripts import ScriptFinished, ScriptRun
from domain.configuration.context_scripts import ContextScript
from domain.context.script_output import encode_output, output_bytes
from domain.run.facts import RespawnFacts, ScriptReceipt
from domain.values.refusals import ConfigurationMoved
from infrastructure.outbound.identity.identifiers import RandomIdentities
from tests.support.builders.configurations import load_values
from tests.support.builders.script_receipts import receipt
from tests.support.builders.storytelling import requested, run_id, run_of

EARLIER = run_id(9)


def script(name: str, **more: Any) -> ContextScript:
    return ContextScript.model_validate({"id": name, "uri": f"/{name}", **more})


def on_record(
    *outcomes: tuple[str, Literal["injected", "empty", "failed", "skipped"]], **more: Any
) -> RecordedScripts:
    return RecordedScripts(
        EARLIER,
        3,
        {name: script(name, **more) for name, _ in outcomes},
        {name: receipt(name, outcome) for name, outcome in outcomes},
    )


def test_only_those_that_were_called_and_read_alike_are_used_again() -> None:
    recorded = on_record(("who", "injected"), ("late", "skipped"))
    for same in (
        {},
        {"priority": 9},
        {"position": "prepend"},
        {"timeoutSeconds": 3},
        {"log": True},
    ):
        assert [one.id for one in recorded.must_have([script("who", **same)])] == ["who"]
    others: tuple[dict[str, Any], ...] = (
        {"uri": "/other"},
        {"format": "json"},
        {"method": "POST"},
        {"argMap": {"a": "task"}},
        {"returnKey": "a"},
        {"errorKey": "a"},
        {"agentIdOverrideKey": "a"},
    )
    for other in others:
        with pytest.raises(NothingRecorded, match=r'"who" is another one now than under .* 3'):
            recorded.must_have([script("who", **other)])
    with pytest.raises(NothingRecorded, match='"new" did not run for it'):
        recorded.must_have([script("new")])
    with pytest.raises(NothingRecorded, match='"late" was skipped there'):
        recorded.must_have([script("who"), script("late")])


def test_what_a_failure_stops_need_not_be_on_record() -> None:
    recorded = on_record(("who", "failed"), ("late", "skipped"), error_handling="stop")
    stopping = script("who", errorHandling="stop")
    assert [one.id for one in recorded.must_have([stopping, script("late")])] == ["who"]
    with pytest.raises(NothingRecorded, match='"late" was skipped'):
        recorded.must_have([script("who"), script("late")])


@pytest.mark.parametrize("raw", [b"", b"plain\n", b"\xff\x00", "grün".encode(), b"a\0b"])
def test_an_output_comes_back_byte_by_byte(raw: bytes) -> None:
    assert output_bytes(*encode_output(raw)) == raw


def test_an_output_of_the_first_version_is_its_text() -> None:
    assert output_bytes("grün", None) == "grün".encode()


class Nobody:
    """Runs nothing."""

    async def run(self, request: ScriptRun) -> ScriptFinished:
        raise AssertionError(f"{request.script.id} was run")


@dataclass(frozen=True)
class Reused:
    """What came of it, and the texts that it refers to."""

    gathered: GatheredContext
    texts: Mapping[Any, str]

    def receipt(self, name: str) -> ScriptReceipt:
        return next(one for one in self.gathered.receipts if one.id == name)

    def injected(self, name: str) -> str | None:
        ref = self.receipt(name).injected
        return self.texts[ref.id] if ref is not None else None


async def reused(recorded: Mapping[str, RecordedOutput], *listed: dict[str, Any]) -> Reused:
    scripts = {"subagents": {"contextScripts": {"run": list(listed)}}}
    agents = {"defaults": scripts, "list": [{"id": "main"}, {"id": "other"}]}
    loaded = load_values({"agents": agents})
    pinned = PinnedConfiguration(4, loaded.configuration, loaded.stored)
    store = TextStore(run_id(1), b"key", RandomIdentities().event_id)
    run = run_of(requested(respawn=RespawnFacts(run_id=EARLIER, scripts="recorded")))
    agent = pinned.configuration.effective_agent("main")
    gathered = await ContextGatherer(Nobody()).reuse(run, agent, recorded, pinned, store)
    return Reused(gathered, {one.ref.id: one.text for one in store.contents})


async def test_outputs_are_read_as_they_would_have_been_and_nothing_is_run() -> None:
    said = b'{"message": "you are other", "agent": "other"}'
    recorded = {
        "who": RecordedOutput(receipt("who", "injected", exit_code=0), said, None),
        "sad": RecordedOutput(receipt("sad", "failed", exit_code=3), b"half", "it failed"),
        "mute": RecordedOutput(receipt("mute", "empty", exit_code=0), b"", None),
    }
    listed = [{"id": name, "uri": f"/{name}", "agentIdOverrideKey": "agent"} for name in recorded]
    found = await reused(recorded, *listed, {"id": "late", "uri": "/late", "priority": -1})
    outcomes = {one.id: one.outcome for one in found.gathered.receipts}
    assert outcomes == {"who": "injected", "sad": "failed", "mute": "empty", "late": "skipped"}
    assert found.injected("who") == "you are other"
    assert found.gathered.override_to == "other"
    assert [one.verdict for one in found.gathered.candidates] == ["winner"]
    sad = found.receipt("sad")
    assert sad.error is not None
    assert (found.texts[sad.error.id], sad.exit_code, sad.output_bytes) == ("it failed", 3, 4)
    whose = {one.id: one.reused_from for one in found.gathered.receipts}
    assert whose == {"who": EARLIER, "sad": EARLIER, "mute": EARLIER, "late": None}
    # No time passed.
    assert {one.duration_ms for one in found.gathered.receipts} == {0}


async def test_who_is_proposed_is_judged_as_things_are_now() -> None:
    said = b'{"message": "m", "agent": "gone"}'
    recorded = {"who": RecordedOutput(receipt("who", "injected", exit_code=0), said, None)}
    listed = {"id": "who", "uri": "/who", "agentIdOverrideKey": "agent"}
    found = await reused(recorded, listed)
    assert found.gathered.override_to is None
    assert [one.verdict for one in found.gathered.candidates] == ["not_configured"]


def test_a_revision_that_was_chosen_is_no_older_one() -> None:
    loaded = load_values({})
    pinned = PinnedConfiguration(2, loaded.configuration, loaded.stored)
    with pytest.raises(ConfigurationMoved):
        pinned.must_be_current(3)
    pinned.chosen().must_be_current(3)
    assert pinned.chosen().session_naming == pinned.session_naming
