"""A token without the scope `content` sees previews in lists, and no other text.

Every recorded text begins with its kind, then fills a preview, then has an end. The test calls
every operation and every tool with a token that has all other scopes.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from infrastructure.inbound.mcp.tools.catalogue import TOOLS
from tests.support.http import operations
from tests.support.http.described_answers import document
from tests.support.http.mcp import McpCaller
from tests.support.http.streams import StreamReader
from tests.support.http.wire import client_of
from tests.support.servers.configurations import agent, command, configuration, scripted
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

REQUESTER = "agent:main:canary"
TOKENS = {
    "blind": ["spawn", "read", "control", "worker"],
    "seeing": ["spawn", "read", "control", "worker", "content"],
}
SECRETS = {name: f"a-token-called-{name}" for name in TOKENS}
SCRIPT = """#!/bin/sh
case "$1" in
  label=scripted) echo "{said}" ;;
  label=broken) echo "{failed}" >&2; exit 1 ;;
esac
"""
_MARK = re.compile(r"(?:BEGIN|END)-[a-z]+")
OPERATIONS = {
    operation["operationId"]: (path, method)
    for path, operations in document()["paths"].items()
    for method, operation in operations.items()
}
KINDS = (
    "task", "result", "error", "script", "scriptfailure", "transcript", "tool", "preamble",
    "shared", "address", "provided", "queued", "reason", "configuration",
    "progress",
)  # fmt: skip


def canary(kind: str) -> str:
    """Return a text of this kind that no preview shows whole."""
    return f"BEGIN-{kind} {'and more ' * 30}END-{kind}"


def marks_in(text: str) -> set[str]:
    """Return the beginnings and ends of canaries that an answer shows."""
    return set(_MARK.findall(text))


@dataclass(frozen=True)
class Story:
    """A server with one text of each kind on record, and the runs that have them."""

    server: Server
    runs: Mapping[str, str]
    children: Mapping[str, str]
    head: int

    def client(self, name: str) -> httpx2.Client:
        return client_of(self.server.url, SECRETS[name])

    def caller(self, name: str) -> McpCaller:
        return McpCaller(self.server.url, SECRETS[name], session=REQUESTER, tasks=True)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("texts")
    script = folder / "canary.sh"
    script.write_text(SCRIPT.format(said=canary("script"), failed=canary("scriptfailure")), "utf-8")
    script.chmod(0o755)
    steps = [
        {"message": canary("transcript")},
        {"tool": {"name": "find", "input": {"q": "x"}, "output": canary("tool")}},
    ]
    progress = json.dumps({"type": "progress", "text": canary("progress")})
    config = configuration(
        agent("main", scripted(steps=steps, result=canary("result")), default=True),
        _without_result(agent("failing", scripted(outcome="error", error=canary("error")))),
        agent("slow", scripted(steps=[{"afterMs": 300_000}])),
        agent("telling", command("sh", "-c", f"echo '{progress}'; exec sleep 300", output="jsonl")),
        {"id": "outside", "runtime": {"type": "external"}},
        maxSpawnDepth=2,
        maxChildrenPerAgent=20,
        maxConcurrent=50,
        contextScripts={
            "run": [{"id": "canary", "uri": str(script), "argMap": {"label": "label"}}]
        },
    )
    config["notes"] = {"text": canary("configuration")}
    config["tools"] = {"sessions_spawn": {"attachments": {"enabled": True}}}
    config["spawnlog"] |= {
        "drainSeconds": 0,
        "tokens": [
            {"id": name, "token": f"${{{name.upper()}}}", "scopes": scopes, "sessions": ["*"]}
            for name, scopes in TOKENS.items()
        ],
    }
    environment = {name.upper(): secret for name, secret in SECRETS.items()}
    with Server(folder / "data", config, environment=environment) as server:
        yield _told(server)


def _without_result(agent: dict[str, Any]) -> dict[str, Any]:
    agent["runtime"].pop("result")
    return agent


def _told(server: Server) -> Story:
    runs: dict[str, str] = {}
    children: dict[str, str] = {}

    def spawned(name: str, **body: Any) -> None:
        requester = {"sessionKey": REQUESTER, "channel": "mail", "to": canary("address")}
        answer = server.spawn(canary("task"), requester=requester, label=name, **body).json()
        runs[name] = answer["runId"]
        if answer.get("childSessionKey"):
            children[name] = answer["childSessionKey"]

    def posted(method: str, path: str, body: dict[str, Any]) -> None:
        answer = server.http.request(method, path, json=body)
        assert answer.is_success, answer.text

    posted("PUT", f"/v1/sessions/{REQUESTER}/transcript", {
        "entries": [{"kind": "message", "role": "user", "text": canary("provided")}]
    })  # fmt: skip
    files = [{"name": "BEGIN-file.txt", "content": canary("attached")}]
    spawned(
        "done",
        contextPreamble=canary("preamble"),
        attachments=files,
        context="fork",
        sharedContext={"goal": canary("shared")},
    )
    spawned("failed", agentId="failing")
    spawned("scripted", model="BEGIN-argument is no model")
    spawned("broken", thinking="BEGIN-argument")
    spawned("refused", model="BEGIN-argument is no model", agentId="nobody")
    spawned("slow", agentId="slow")
    spawned("stopped", agentId="slow")
    spawned("outside", agentId="outside")
    spawned("telling", agentId="telling")
    for name in ("done", "failed", "scripted", "broken"):
        server.run(runs[name], "announced")
    server.run(runs["slow"], "started")
    posted("POST", f"/v1/runs/{runs['slow']}/messages", {"message": canary("queued")})
    posted("PUT", f"/v1/sessions/{children['slow']}/preamble", {"preamble": canary("preamble")})
    wait_for("its progress", lambda: server.run(runs["telling"])["progress"])
    posted("POST", f"/v1/runs/{runs['stopped']}/stop", {"reason": canary("reason")})
    server.run(runs["stopped"], "announced")
    head = int(server.http.get("/v1/events", params={"limit": 1}).json()["head"])
    return Story(server, runs, children, head)


Question = tuple[dict[str, str], dict[str, Any], Any]
"""Path parameters, query parameters, and the body; None for no body."""


def questions(story: Story, operation: str) -> list[Question]:
    """Return the requests with which an operation is asked. The bodies hold no canary."""
    path, _ = OPERATIONS[operation]
    body = BODIES.get(operation)
    queries = QUERIES.get(operation, [{}])
    places: list[dict[str, str]] = [{}]
    if "{runId}" in path:
        places = [{"runId": run_id} for run_id in story.runs.values()]
    if "{key}" in path:
        places = [{"key": key} for key in (REQUESTER, *story.children.values())]
    if "{id}" in path:
        places = [{**place, "id": story.runs["done"]} for place in places]
    if "{revision}" in path:
        places = [{"revision": "1"}]
    return [
        (place, {name: _filled_in(story, value) for name, value in query.items()}, body)
        for place in places
        for query in queries
    ]


def _filled_in(story: Story, value: Any) -> Any:
    """Return a value with the names in it replaced by ids of the story."""
    if isinstance(value, list):
        return [_filled_in(story, item) for item in value]
    if not isinstance(value, str):
        return value
    return value.format(head=story.head, slow_session=story.children["slow"], **story.runs)


QUERIES: Mapping[str, Sequence[dict[str, str]]] = {
    "listRuns": [{}, {"q": "BEGIN-task", "totals": "true"}, {"at": "pos:{head}"}],
    "getRun": [{}, {"at": "pos:{head}"}, {"version": "1"}],
    "getRunTranscript": [{"tools": "true"}],
    "compareRuns": [{"with": "{failed}"}],
    "getDiff": [
        {"from": "pos:1", "to": "pos:{head}"},
        {"from": "pos:1", "to": "pos:{head}", "runId": "{done}"},
        {"from": "pos:1", "to": "pos:{head}", "session": REQUESTER},
        {"from": "pos:1", "to": "pos:{head}", "tree": REQUESTER},
    ],
    "listEvents": [{"limit": "500"}],
    "getMoment": [{"at": "pos:{head}", "around": "10"}],
    "findEvents": [
        {"field": "status", "changes": "true", "runId": "{done}"},
        {"types": "SpawnRequested"},
    ],
    "listAgents": [{"requester": REQUESTER}],
}
BODIES: Mapping[str, Any] = {
    **operations.BODIES,
    "spawn": {"requester": {"sessionKey": REQUESTER}, "task": "another", "agentId": "nobody"},
    "respawn": {"changes": {"agentId": "nobody"}},
    "whatIf": {
        "patch": [{"op": "add", "path": "/agents/defaults/subagents/allowAgents", "value": []}]
    },
}
# Operations that change something come last, stops after all others.
ORDER = sorted(
    OPERATIONS,
    key=lambda operation: (
        operation.startswith("stop"),
        operation in BODIES,
        OPERATIONS[operation][1] == "delete",
    ),
)
LISTED = {"BEGIN-task", "BEGIN-error", "BEGIN-argument"}
ANNOUNCED = {"BEGIN-result", "BEGIN-error", "BEGIN-reason"}
SHOWN: Mapping[str, set[str]] = {
    "listRuns": LISTED,
    "getRun": LISTED,
    "getRunHistory": LISTED,
    "compareRuns": LISTED,
    "getDiff": LISTED,
    "getSessionTree": LISTED,
    "getSummary": {"BEGIN-error"},
    "explainRun": {"BEGIN-argument"},
    "getSession": {"BEGIN-queued"},
    "listAnnouncements": ANNOUNCED,
    "listLedger": ANNOUNCED,
    # The executor of an external run gets the child's input.
    "claimRun": {
        f"{end}-{kind}" for end in ("BEGIN", "END") for kind in ("task", "shared", "address")
    },
}
"""Previews that each operation shows to a token without `content`; others show none."""
TOOL_ARGUMENTS: Mapping[str, Sequence[dict[str, Any]]] = {
    "sessions_spawn": [{"task": "another", "agentId": "nobody"}],
    "subagents": [
        {"action": "list"},
        {"action": "info", "target": "{done}"},
        {"action": "info", "target": "{failed}"},
        {"action": "log", "target": "{done}"},
    ],
    "subagents_wait": [{"targets": ["{done}", "{failed}"]}, {"timeoutSeconds": 0}],
    "sessions_list": [{}, {"messageLimit": 5}],
    "sessions_send": [{"label": "failed", "message": "another", "timeoutSeconds": 30}],
    "session_status": [{}, {"sessionKey": "{slow_session}"}],
    "runs_explain": [{"runId": "{scripted}"}, {"runId": "{refused}"}],
    "runs_at": [{"at": "pos:{head}"}, {"at": "pos:{head}", "runId": "{done}"}],
}
SHOWN_BY_TOOLS: Mapping[str, set[str]] = {
    "subagents": LISTED,
    "subagents_wait": {*LISTED, *ANNOUNCED},
    "sessions_list": LISTED,
    "sessions_send": {"BEGIN-error"},
    "session_status": {"BEGIN-queued"},
    "runs_explain": {"BEGIN-argument"},
    "runs_at": LISTED,
    "resources": LISTED,
    "tasks": {*LISTED, *ANNOUNCED},
}
"""Previews that MCP tools, resources and tasks show."""


def answers_of(story: Story, http: httpx2.Client, operation: str) -> str:
    """Return the texts of all answers of an operation."""
    path, method = OPERATIONS[operation]
    texts = []
    for place, query, body in questions(story, operation):
        answer = http.request(method, path.format(**place), params=query, json=body)
        assert answer.status_code < 500 or operation == "getReadiness", answer.text
        texts.append(answer.text)
    return "\n".join(texts)


def marks_of_tools(story: Story, name: str) -> dict[str, set[str]]:
    """Return the marks that each tool shows to a token, and resources and tasks too."""
    caller = story.caller(name)
    found: dict[str, set[str]] = {}

    def ask(subject: str, method: str, params: dict[str, Any]) -> None:
        found.setdefault(subject, set()).update(marks_in(json.dumps(caller.ask(method, params))))

    ask("resources", "resources/list", {})
    for run_id in story.runs.values():
        for ending in ("", "/prompt", "/transcript"):
            ask("resources", "resources/read", {"uri": f"spawnlog://runs/{run_id}{ending}"})
        ask("tasks", "tasks/get", {"taskId": run_id})
    for tool in TOOLS:
        for arguments in TOOL_ARGUMENTS.get(tool.name, [{}]):
            given = {key: _filled_in(story, value) for key, value in arguments.items()}
            ask(tool.name, "tools/call", {"name": tool.name, "arguments": given})
    return found


def beyond(seen: Mapping[str, set[str]], permitted: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the marks that were seen and are not permitted, by operation or tool."""
    found = {name: marks - permitted.get(name, set()) for name, marks in seen.items()}
    return {name: marks for name, marks in found.items() if marks}


def test_operations_show_previews_alone_without_content(story: Story) -> None:
    whole: set[str] = set()
    with story.client("seeing") as http:
        for operation, (_, method) in OPERATIONS.items():
            if method == "get":
                whole |= marks_in(answers_of(story, http, operation))
    # A message that waits is shown whole once it is a run.
    assert {f"END-{kind}" for kind in KINDS} - whole == {"END-queued"}
    tools = marks_of_tools(story, "blind")
    assert not beyond(tools, SHOWN_BY_TOOLS)
    with StreamReader(story.server.url, "/v1/events?after=0", SECRETS["blind"]) as stream:
        frames = stream.until(lambda frame: int(frame.id or 0) >= story.head)
        assert not marks_in(str([frame.data for frame in frames]))
    with story.client("blind") as http:
        stream_of_entries = f"/v1/runs/{story.runs['telling']}/transcript"
        answer = http.get(stream_of_entries, headers={"Accept": "text/event-stream"})
        assert answer.status_code == 403
        seen = {operation: marks_in(answers_of(story, http, operation)) for operation in ORDER}
    assert not beyond(seen, SHOWN)
    assert seen["listRuns"] == LISTED


def test_run_without_content_keeps_what_is_no_text(story: Story) -> None:
    server, run_id = story.server, story.runs["done"]
    answer = server.http.post(
        f"/v1/runs/{run_id}/respawn", json={"changes": {"label": "again", "attachments": None}}
    )
    assert answer.status_code == 201, answer.text
    again = answer.json()["runId"]
    texts = {"task", "resultText", "stopReason", "requesterOrigin", "progress"}
    with story.client("seeing") as http, story.client("blind") as blind:
        whole = http.get(f"/v1/runs/{run_id}").json()
        shown = blind.get(f"/v1/runs/{run_id}").json()
        assert whole.keys() - shown.keys() == texts
        assert shown["respawns"] == whole["respawns"] == [again]
        assert shown["contextPreamble"] == whole["contextPreamble"]
        assert shown["taskPreview"] == canary("task")[:200]
        history = blind.get(f"/v1/runs/{run_id}/history").json()
        assert "contextPreamble" in history["setBy"]
