"""The identity script of the specification, unchanged: `tests/data/inject-identity.sh`.

Its commands are on the PATH of the server; its files are in `agents/` beside it.
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
from tests.support.servers.configurations import agent, configuration, python
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.preloaded import ROOT
from tests.support.servers.server import Server, serving

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


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Server]:
    """Yield a server with the script and the configuration of the specification."""
    with new_place() as place:
        environment = {"PATH": f"{place / 'bin'}:{os.environ['PATH']}"}

        def config(notes: Path) -> dict[str, Any]:
            return as_specified(place, notes)

        with serving(databases, config, environment=environment) as running:
            yield running


def as_specified(folder: Path, notes: Path) -> dict[str, Any]:
    """Return the configuration; its files are in `folder`."""
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
    main_agent = agent(
        "main-agent",
        python(_CHILD, notes, input="stdin-text"),
        agentDir=str(folder / "keys"),
        subagents={"model": "main/large", "thinking": "high"},
    )
    return configuration(agent("main", default=True), main_agent, contextScripts={"run": [entry]})


def given(server: Server, agent_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a run that is over, and the input of its child."""
    run = server.announced(agent_id, "Review the architecture")
    return run, json.loads(server.note(f"{run['runId']}.json"))


def test_an_alias_runs_as_its_parent_with_its_charter_before_the_task(server: Server) -> None:
    run, result = given(server, "steward")
    assert (run["requestedAgentId"], run["agentId"]) == ("steward", "main-agent")
    assert run["childSessionKey"].startswith("agent:main-agent:subagent:")
    assert server.events(run["runId"])[1:3] == ["ScriptsResolved", "AgentOverridden"]
    prompt = server.http.get(f"/v1/runs/{run['runId']}/prompt").json()
    # The script's `echo` adds the line end after the charter.
    assert prompt["message"].endswith(f"\n\n{CHARTER}\n\n\nReview the architecture")
    sources = [part["source"] for part in prompt["parts"] if part["of"] == "message"]
    assert sources[-3:] == ["script:my-identity-script", "separator", "task"]
    assert result["read"].endswith(prompt["message"])
    # The credentials are those of the parent, and so are the model and how it thinks.
    assert result["key"] == KEY
    assert (run["modelProvider"], run["model"], run["thinking"]) == ("main", "large", "high")
    assert "[context-script] my-identity-script (" in server.log()


def test_a_registered_agent_is_confirmed_and_has_its_soul(server: Server) -> None:
    run, result = given(server, "main-agent")
    assert run["agentId"] == "main-agent"
    assert "AgentOverridden" not in server.events(run["runId"])
    assert result["read"].endswith(f"{SOUL}\n\n\nReview the architecture")


def test_an_agent_that_nobody_knows_gets_nothing_and_is_refused(server: Server) -> None:
    answer = server.spawn("Review the architecture", agentId="stranger")
    assert (answer.status_code, answer.json()["rule"]) == (422, "agent_unknown")
    (resolved,) = [
        item
        for item in server.http.get(f"/v1/runs/{answer.json()['runId']}/events").json()["items"]
        if item["type"] == "ScriptsResolved"
    ]
    (receipt,) = resolved["payload"]["receipts"]
    assert (receipt["outcome"], receipt["exitCode"], receipt["outputBytes"]) == ("empty", 0, 0)
