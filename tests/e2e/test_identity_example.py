"""The identity script of the specification, word for word: `tests/data/inject-identity.sh`.

What it calls is on the PATH of the server; what it reads is in `agents/` beside it.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.folders import api_key, write_profiles
from tests.support.builders.launches import program
from tests.support.servers.data_directories import new_place
from tests.support.servers.preloaded import ROOT
from tests.support.servers.running_server import RunningServer, configuration, scripted

pytestmark = pytest.mark.server

CHARTER = '## Charter\n\nYou are the High "Steward": äöü \\ $HOME `id`.'
SOUL = "## Soul\n\nYou are the main agent."
KEY = "key-of-the-main-agent"

# As `jq -Rs .` does: the whole input as one JSON string.
_JQ = f"""#!{sys.executable} -IS
import json, sys
assert sys.argv[1:] == ["-Rs", "."]
print(json.dumps(sys.stdin.buffer.read().decode("utf-8"), ensure_ascii=False))
"""
_TOPOLOGY = {
    "jq": _JQ,
    "is_registered": '#!/bin/sh\n[ "$1" = main-agent ]\n',
    "is_alias": '#!/bin/sh\n[ "$1" = steward ]\n',
    "resolve_parent": "#!/bin/sh\necho main-agent\n",
}
_CHILD = """
import json, os, pathlib, sys
name = os.environ["SPAWNLOG_RUN_ID"] + ".json"
key = os.environ["MAIN_API_KEY"]
pathlib.Path(sys.argv[1], name).write_text(json.dumps({"read": sys.stdin.read(), "key": key}))
print("done")
"""


class Identities(RunningServer):
    """A server with the script of the specification, configured as the specification does."""

    def __init__(self, data_dir: Path, folder: Path, database_url: str) -> None:
        self.notes = folder / "notes"
        self.notes.mkdir(parents=True)
        script = program(
            folder / "scripts" / "inject-identity.sh",
            (ROOT / "tests" / "data" / "inject-identity.sh").read_text("utf-8"),
        )
        for name, text in (("steward/charter.md", CHARTER), ("main-agent/SOUL.md", SOUL)):
            path = script.parent / "agents" / name
            path.parent.mkdir(parents=True)
            path.write_text(text + "\n", "utf-8")
        for name, text in _TOPOLOGY.items():
            program(folder / "bin" / name, text)
        write_profiles(folder / "keys", {"main:default": api_key("main", KEY)})
        super().__init__(
            data_dir,
            self._agents(folder, script),
            database_url=database_url,
            environment={"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
        )

    def _agents(self, folder: Path, script: Path) -> dict[str, Any]:
        entry = {
            "id": "my-identity-script",
            "uri": str(script),
            "format": "arguments",
            "priority": 100,
            "position": "prepend",
            "log": True,
            "errorHandling": "continue",
            "returnKey": "message",
            "agentIdOverrideKey": "targetAgentId",
            "argMap": {"targetAgentId": "targetAgentId"},
        }
        command = [sys.executable, "-I", "-S", "-c", _CHILD, str(self.notes)]
        runtime = {"type": "command", "command": command, "input": "stdin-text"}
        main_agent = {
            "id": "main-agent",
            "agentDir": str(folder / "keys"),
            "runtime": runtime,
            "subagents": {"model": "main/large", "thinking": "high"},
        }
        return configuration(
            {**scripted("main"), "default": True}, main_agent, contextScripts={"run": [entry]}
        )

    def announced(self, agent_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """A run that is over, and what its child was given."""
        answer = self.spawn("Review the architecture", agentId=agent_id)
        assert answer.status_code == 201, answer.text
        run = self.run(answer.json()["runId"], "announced")
        return run, json.loads((self.notes / f"{run['runId']}.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def server(module_database_url: str) -> Iterator[Identities]:
    with new_place() as place:
        data_dir = place / "data"
        with Identities(data_dir, place / "own", module_database_url) as identities:
            yield identities


def test_an_alias_runs_as_its_parent_with_its_charter_before_the_task(server: Identities) -> None:
    run, given = server.announced("steward")
    assert (run["requestedAgentId"], run["agentId"]) == ("steward", "main-agent")
    assert run["childSessionKey"].startswith("agent:main-agent:subagent:")
    assert server.events(run["runId"])[1:3] == ["ScriptsResolved", "AgentOverridden"]
    prompt = server.http.get(f"/v1/runs/{run['runId']}/prompt").json()
    # The line end is that of `echo`, which the script puts behind the charter.
    assert prompt["message"].endswith(f"\n\n{CHARTER}\n\n\nReview the architecture")
    sources = [part["source"] for part in prompt["parts"] if part["of"] == "message"]
    assert sources[-3:] == ["script:my-identity-script", "separator", "task"]
    assert given["read"].endswith(prompt["message"])
    # The credentials are those of the parent, and so are the model and how it thinks.
    assert given["key"] == KEY
    assert (run["modelProvider"], run["model"], run["thinking"]) == ("main", "large", "high")
    assert "[context-script] my-identity-script (" in server.log()


def test_a_registered_agent_is_confirmed_and_has_its_soul(server: Identities) -> None:
    run, given = server.announced("main-agent")
    assert run["agentId"] == "main-agent"
    assert "AgentOverridden" not in server.events(run["runId"])
    assert given["read"].endswith(f"{SOUL}\n\n\nReview the architecture")


def test_an_agent_that_nobody_knows_gets_nothing_and_is_refused(server: Identities) -> None:
    answer = server.spawn("Review the architecture", agentId="stranger")
    assert (answer.status_code, answer.json()["rule"]) == (422, "agent_unknown")
    (resolved,) = [
        one
        for one in server.http.get(f"/v1/runs/{answer.json()['runId']}/events").json()["items"]
        if one["type"] == "ScriptsResolved"
    ]
    (receipt,) = resolved["payload"]["receipts"]
    assert (receipt["outcome"], receipt["exitCode"], receipt["outputBytes"]) == ("empty", 0, 0)
