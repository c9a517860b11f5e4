"""Decisions with real scripts are replayed from their receipts and texts alone."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from application.context.scripts import ContextGatherer, evaluated_candidates
from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from domain.context.agent_override import OverrideCandidate, choose_override
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.scripts.by_uri import ScriptsByUri
from infrastructure.outbound.scripts.http import HttpScripts
from infrastructure.outbound.scripts.local import LocalFileScripts
from tests.support.builders.configurations import load_values
from tests.support.builders.launches import SERVER, program
from tests.support.builders.scripts import raw_output, reading_again, source_in
from tests.support.builders.storytelling import requested, run_id, run_of
from tests.support.servers.script_server import ScriptServer, answer

OUTPUTS = {
    "plain": b"  text \n",
    "bytes": b"a\xff\0b",
    "names": json.dumps({"message": "m", "agent": "other"}).encode(),
    "nobody": json.dumps({"message": ["x"], "agent": "nobody"}).encode(),
    "reports": json.dumps({"error": {"message": "no"}, "agent": "other"}).encode(),
    "silent": b"",
}
ENDS = {"fails": "cat names; exit 3", "hangs": "cat reports; exec sleep 600"}


@pytest.fixture
async def urls() -> AsyncIterator[ScriptServer]:
    async with ScriptServer() as server:
        yield server


def scripts(folder: Path, urls: ScriptServer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, output in OUTPUTS.items():
        (folder / name).write_bytes(output)
        program(folder / f"{name}.sh", f"#!/bin/sh\nexec cat {name}\n")
        found.append({"id": name, "uri": f"{name}.sh"})
        found.append({"id": f"url-{name}", "uri": urls.at(f"/{name}", answer(output))})
    for name, line in ENDS.items():
        program(folder / f"{name}.sh", f"#!/bin/sh\n{line}\n")
        found.append({"id": name, "uri": f"{name}.sh", "timeoutSeconds": 0.3})
    refusing = answer(OUTPUTS["names"], "500 No")
    found.append({"id": "url-refuses", "uri": urls.at("/refuses", refusing)})
    return [
        {**script, "agentIdOverrideKey": "agent", "priority": number % 3}
        for number, script in enumerate(found)
    ]


async def test_a_decision_is_made_again_from_its_record(
    launcher: ProcessLauncher, tmp_path: Path, urls: ScriptServer
) -> None:
    listed = {"defaults": {"subagents": {"contextScripts": {"run": scripts(tmp_path, urls)}}}}
    loaded = load_values({"agents": {**listed, "list": [{"id": "main"}, {"id": "other"}]}})
    pinned = PinnedConfiguration(1, loaded.configuration, loaded.stored)
    text_store = TextStore(run_id(1), b"key", RandomIdentities().event_id)
    source = source_in(tmp_path)
    remote = HttpScripts(source)
    served = ScriptsByUri(LocalFileScripts(launcher, source, server=SERVER), remote)
    spawn, agent = run_of(requested()), pinned.configuration.effective_agent("main")
    result = await ContextGatherer(served).gather(spawn, agent, "task", pinned, text_store)

    texts = {content.ref.id: content.text for content in text_store.contents}
    configured = {context_script.id: context_script for context_script in agent.context_scripts}
    proposed = []
    for receipt in result.receipts:
        script = configured[receipt.id]
        output = texts[receipt.output.id] if receipt.output else ""
        error = texts[receipt.error.id] if receipt.error else None
        raw = raw_output(output, receipt.output_encoding)
        assert len(raw) == receipt.output_bytes
        assert receipt.output_hmac == (text_store.hash(raw) if raw else None)
        if raw and receipt.id.removeprefix("url-") in OUTPUTS:
            assert raw == OUTPUTS[receipt.id.removeprefix("url-")]
        reading = reading_again(receipt, script, output, error)
        never_read = receipt.id in (*ENDS, "url-refuses")
        assert (reading is None) is never_read
        if reading is None:
            continue
        injected = texts[receipt.injected.id] if receipt.injected else None
        assert (reading.content, reading.error) == (injected, error)
        if reading.override is not None:
            proposed.append(OverrideCandidate(script.id, script.priority, reading.override))
    choice = choose_override("main", proposed, pinned.configuration.agent_ids())
    assert evaluated_candidates(choice) == result.candidates
    assert choice.agent_id == result.override_to == "other"
    assert len(result.candidates) == 4
