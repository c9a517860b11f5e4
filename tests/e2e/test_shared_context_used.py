"""Agents that are real processes and answer from what is shared with them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.running_server import RunningServer, command, configuration

pytestmark = pytest.mark.slow

MAIN = "infrastructure.inbound.command_line.main"

READS_ITS_PROMPT = r"""
import os, re, sys
prompt = sys.stdin.read()
shared = dict(re.findall(r'^- (\w+): "(.*)"$', prompt.split("[Shared Context]:")[1], re.MULTILINE))
print("For", shared["targetAudience"], "I would", shared["projectGoal"].lower())
"""

SPAWNS_ANOTHER = r"""
import json, os, sys, urllib.request

told = json.load(sys.stdin)
url, token = os.environ["SPAWNLOG_URL"], os.environ["SPAWNLOG_TOKEN"]

def ask(method, path, body=None):
    request = urllib.request.Request(url + path, method=method)
    request.add_header("Authorization", "Bearer " + token)
    data = None
    if body is not None:
        request.add_header("Content-Type", "application/json")
        data = json.dumps(body).encode()
    with urllib.request.urlopen(request, data, timeout=20) as answer:
        return json.load(answer)

mine = ask("GET", "/v1/runs/" + os.environ["SPAWNLOG_RUN_ID"] + "/shared-context")
below = ask("POST", "/v1/spawns", {
    "requester": {"sessionKey": "current"},
    "task": "go on",
    "agentId": "reader",
    "sharedContext": {"targetAudience": "Testers"},
})
print(json.dumps({"given": told["sharedContext"], "read": mine["values"], "below": below["runId"]}))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("shared")
    agents = [
        {**command("reader", sys.executable, "-c", READS_ITS_PROMPT), "default": True},
        command("spawner", sys.executable, "-c", SPAWNS_ANOTHER, input="stdin-json"),
    ]
    for agent in agents:
        agent["subagents"] = {"allowAgents": ["*"]}
    with RunningServer(
        folder / "data", configuration(*agents, maxSpawnDepth=3, maxConcurrent=8)
    ) as running:
        yield running
    # What servers record of it is whole, and rows are what the events say.
    for order in ("verify", "rebuild"):
        where = ("--data-dir", str(folder / "data"))
        done = subprocess.run(
            [sys.executable, "-m", MAIN, "log", order, *where],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def spawned(server: RunningServer, agent: str, **body: Any) -> dict[str, Any]:
    requester = {"sessionKey": "agent:reader:main"}
    answer = server.spawn("answer", requester=requester, agentId=agent, **body)
    assert answer.status_code == 201, answer.text
    return server.run(answer.json()["runId"], "announced")


GOAL = {"projectGoal": "Build a modern web app", "targetAudience": "Developers"}


def test_a_childs_answer_shows_that_it_used_what_was_shared(server: RunningServer) -> None:
    run = spawned(server, "reader", sharedContext=GOAL)
    assert run["outcome"] == "success", run
    assert run["resultText"].strip() == "For Developers I would build a modern web app"
    later = spawned(server, "reader", sharedContext={"targetAudience": "Children"})
    assert later["resultText"].strip() == "For Children I would build a modern web app"


def test_a_child_reads_it_whole_and_its_own_children_inherit_it(server: RunningServer) -> None:
    session = "agent:reader:family"
    long = "x" * 5_000
    answer = server.spawn(
        "answer",
        requester={"sessionKey": session},
        agentId="spawner",
        sharedContext=GOAL | {"notes": {"long": long}},
    )
    assert answer.status_code == 201, answer.text
    run = server.run(answer.json()["runId"], "announced")
    assert run["outcome"] == "success", run
    said = json.loads(run["resultText"])
    assert said["given"] == said["read"] == GOAL | {"notes": {"long": long}}
    below = server.run(said["below"], "announced")
    assert below["resultText"].strip() == "For Testers I would build a modern web app"
    family = server.http.get(f"/v1/sessions/{session}/shared-context").json()["values"]
    assert family["targetAudience"] == "Developers"
