"""What a family shares, criterion by criterion: agents are real processes, and answer from it."""

import json
import sys
from typing import Any

import pytest

from tests.support.servers.configurations import agent, command
from tests.support.servers.server import Serve, Server

pytestmark = pytest.mark.server

# Answers from what its prompt says that is shared.
READER = r"""
import re, sys
prompt = sys.stdin.read().partition("[Subagent Context]")[0]
head, _, section = prompt.partition("[Shared Context]:\n")
shared = dict(re.findall(r'^- (\w+): (.*)$', section, re.MULTILINE))
print("For", shared.get("targetAudience", "(nobody)"), "I would", shared.get("projectGoal", "rest"))
"""
# Answers with its input.
ECHO = "import sys; print(sys.stdin.read())"
# Reads with its own token what it was given, tries to write where it may not, and spawns another.
SPAWNER = r"""
import json, os, sys, urllib.error, urllib.request

told = json.load(sys.stdin)
url, token = os.environ["SPAWNLOG_URL"], os.environ["SPAWNLOG_TOKEN"]

def ask(method, path, body=None, **headers):
    request = urllib.request.Request(url + path, method=method, headers=headers)
    request.add_header("Authorization", "Bearer " + token)
    data = None
    if body is not None:
        request.add_header("Content-Type", "application/json")
        data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, data, timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code

above = "/v1/sessions/" + os.environ["SPAWNLOG_REQUESTER_SESSION_KEY"] + "/shared-context"
mine = ask("GET", "/v1/runs/" + os.environ["SPAWNLOG_RUN_ID"] + "/shared-context")
below = ask("POST", "/v1/spawns", {
    "requester": {"sessionKey": "current"},
    "task": "go on",
    "agentId": "reader",
    "sharedContext": {"targetAudience": "Testers"},
})
print(json.dumps({
    "given": told["sharedContext"],
    "read": mine["values"],
    "wrote": ask("PATCH", above, {"projectGoal": "Mine"}, **{"If-Match": "*"}),
    "below": below["runId"],
}))
"""
# The first example of the specification, which shares what its text names.
GOAL = {
    "projectGoal": "Build a modern web app",
    "targetAudience": "Developers",
    "constraints": ["budget", "timeline"],
}
SHOWN = (
    '\n\n[Shared Context]:\n- projectGoal: "Build a modern web app"\n- targetAudience: "Developers"'
)


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    agents = [
        agent("reader", command(sys.executable, "-c", READER), default=True),
        agent("echo", command(sys.executable, "-c", ECHO)),
        agent("json", command(sys.executable, "-c", ECHO, input="stdin-json")),
        agent("spawner", command(sys.executable, "-c", SPAWNER, input="stdin-json")),
    ]
    return serve(*agents, maxSpawnDepth=3, maxConcurrent=8)


def announced(
    server: Server, session: str, agent: str = "reader", task: str = "answer", **body: Any
) -> dict[str, Any]:
    requester = {"sessionKey": f"agent:reader:{session}"}
    answer = server.spawn(task, requester=requester, agentId=agent, **body)
    assert answer.status_code == 201, answer.text
    run = server.run(answer.json()["runId"], "announced")
    assert run["outcome"] == "success", run
    return run


def family(server: Server, session: str) -> dict[str, Any]:
    answer = server.http.get(f"/v1/sessions/agent:reader:{session}/shared-context")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_shared_context_can_be_passed_to_a_spawn(server: Server) -> None:
    run = announced(
        server,
        "passed",
        task="Research the best AI frameworks",
        label="researcher",
        sharedContext=GOAL,
    )
    assert run["label"] == "researcher"
    assert family(server, "passed")["values"] == GOAL


def test_the_subagent_receives_it_in_its_execution(server: Server) -> None:
    told = json.loads(announced(server, "received", "json", sharedContext=GOAL)["resultText"])
    assert told["sharedContext"] == GOAL
    assert list(told["sharedContext"]) == list(GOAL)


def test_the_subagents_answer_shows_that_it_used_it(server: Server) -> None:
    first = announced(server, "used", sharedContext=GOAL)
    assert first["resultText"].strip() == 'For "Developers" I would "Build a modern web app"'
    later = announced(server, "used", sharedContext={"targetAudience": "Children"})
    assert later["resultText"].strip() == 'For "Children" I would "Build a modern web app"'
    other = announced(server, "unused")
    assert other["resultText"].strip() == "For (nobody) I would rest"


def test_it_is_accessible_in_the_registry(server: Server) -> None:
    run = announced(server, "registry", label="one", sharedContext=GOAL)
    of_the_run = server.http.get(f"/v1/runs/{run['runId']}/shared-context").json()
    of_the_family = family(server, "registry")
    assert of_the_run["values"] == of_the_family["values"] == GOAL
    for one in (of_the_run, of_the_family):
        source = one["sources"]["projectGoal"]
        assert (source["runId"], source["sessionKey"]) == (run["runId"], "agent:reader:registry")
    (started,) = of_the_family["startedWith"]
    assert (started["runId"], started["label"]) == (run["runId"], "one")
    assert started["version"] == of_the_family["version"]


def test_it_is_injected_into_the_system_prompt_in_the_form_of_the_specification(
    server: Server,
) -> None:
    two = {name: GOAL[name] for name in ("projectGoal", "targetAudience")}
    run = announced(server, "injected", "echo", sharedContext=two)
    kept = server.http.get(f"/v1/runs/{run['runId']}/prompt").json()
    assert kept["systemPrompt"].endswith(SHOWN)
    given = f"{kept['systemPrompt']}\n\n{kept['message']}"
    assert run["resultText"].strip() == given.strip()
    more = announced(server, "injected", "echo", sharedContext={"constraints": GOAL["constraints"]})
    kept = server.http.get(f"/v1/runs/{more['runId']}/prompt").json()
    assert kept["systemPrompt"].endswith(f'{SHOWN}\n- constraints: ["budget","timeline"]')


def test_later_subagents_of_the_session_have_it_and_those_of_another_do_not(
    server: Server,
) -> None:
    announced(server, "siblings", label="researcher", sharedContext=GOAL)
    later = announced(server, "siblings", "json", task="Design the UI", label="designer")
    assert json.loads(later["resultText"])["sharedContext"] == GOAL
    other = announced(server, "others", "json")
    assert json.loads(other["resultText"])["sharedContext"] == {}


def test_children_inherit_it_extend_it_and_cannot_change_that_of_their_parent(
    server: Server,
) -> None:
    shared = GOAL | {"notes": {"long": "x" * 5_000}}
    said = json.loads(announced(server, "inherited", "spawner", sharedContext=shared)["resultText"])
    assert said["given"] == said["read"] == shared
    assert said["wrote"] == 403
    below = server.run(said["below"], "announced")
    assert below["resultText"].strip() == 'For "Testers" I would "Build a modern web app"'
    given = server.http.get(f"/v1/runs/{said['below']}/shared-context").json()["values"]
    assert given == shared | {"targetAudience": "Testers"}
    assert family(server, "inherited")["values"] == shared


def test_a_spawn_without_it_is_as_it_was_before(server: Server) -> None:
    run = announced(server, "without", "echo")
    assert "[Shared Context]" not in run["resultText"]
    items = server.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
    types = [one["type"] for one in items]
    assert [one for one in types if not one.startswith("Step")] == [
        "SpawnRequested",
        "ScriptsResolved",
        "PreparationStarted",
        "SessionCreated",
        "RunQueued",
        "RunClaimed",
        "RunStarted",
        "RunEnded",
        "RunAnnounced",
    ]
    written = server.http.get(
        "/v1/events",
        params={
            "types": "SharedContextChanged,SharedContextInherited",
            "tree": "agent:reader:without",
            "after": 0,
        },
    )
    assert written.json()["items"] == []
    assert family(server, "without")["version"] == 0
