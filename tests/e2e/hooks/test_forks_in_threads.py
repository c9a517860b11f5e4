"""A child in a thread begins with its requester's conversation unless its place says otherwise."""

from typing import Any

import pytest

from domain.context.fork import INBOX_NOTE, NO_TRANSCRIPT_WARNING, OTHER_AGENT_WARNING
from tests.support.builders.submitted_transcripts import KEPT, entries_of, tell
from tests.support.http.mcp import McpCaller
from tests.support.servers.hook_server import HookServer
from tests.support.servers.hooked import ORIGIN, threaded
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

SLACK = {"channel": "slack", "to": "C1"}


def in_a_thread(name: str, origin: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A request that says nothing of its context."""
    requester = {"sessionKey": f"agent:main:{name}", **origin}
    body = threaded(name, agentId="main", requester=requester)
    return {**body, "context": None, **more}


def told(server: Server, name: str, **more: Any) -> None:
    assert tell(server.http, f"agent:main:{name}", **more).status_code == 200


def spawned(
    server: Server, outside: HookServer, body: dict[str, Any]
) -> tuple[dict[str, Any], str]:
    """The answer to a spawn, and the context that its engine was told of."""
    answer = server.spawn(**body)
    assert answer.status_code == 201, answer.text
    run_id = answer.json()["runId"]
    mode = server.run(run_id, "announced")["contextMode"]
    (call,) = [
        one
        for one in outside.calls("prepareSubagentSpawn")
        if one.event["childSessionKey"] == answer.json()["childSessionKey"]
    ]
    assert call.event["contextMode"] == mode
    return dict(answer.json()), mode


def test_a_child_in_a_thread_begins_with_the_conversation(
    server: Server, outside: HookServer
) -> None:
    told(server, "talk")
    answer, mode = spawned(server, outside, in_a_thread("talk", ORIGIN))
    assert (mode, answer["warnings"], answer["note"]) == ("fork", [], INBOX_NOTE)
    entries = entries_of(server.http, answer["runId"])
    assert entries[1 : len(KEPT) + 1] == KEPT
    story = [one for one in server.steps(answer["runId"]) if one.startswith("Step")]
    assert story == [
        f"{event}:{step}"
        for step in ("thread_binding", "context_fork", "context_engine")
        for event in ("StepBegun", "StepTaken")
    ]


@pytest.mark.parametrize(
    ("name", "origin", "more", "mode"),
    [
        ("channel", SLACK, {}, "isolated"),
        ("account", {**SLACK, "accountId": "ours"}, {}, "fork"),
        ("asked", SLACK, {"context": "fork"}, "fork"),
        ("declined", ORIGIN, {"context": "isolated"}, "isolated"),
        ("nowhere", {"to": "C1"}, {}, "isolated"),
    ],
)
def test_its_place_and_its_request_say_otherwise(
    server: Server,
    outside: HookServer,
    name: str,
    origin: dict[str, Any],
    more: dict[str, Any],
    mode: str,
) -> None:
    told(server, name)
    answer, found = spawned(server, outside, in_a_thread(name, origin, **more))
    assert (found, answer["warnings"]) == (mode, [])


def test_a_conversation_that_nobody_asked_for_and_that_cannot_be_is_a_warning(
    server: Server, outside: HookServer
) -> None:
    answer, mode = spawned(server, outside, in_a_thread("silent", ORIGIN))
    assert (mode, answer["warnings"]) == ("isolated", [NO_TRANSCRIPT_WARNING])
    told(server, "another-agent")
    answer, mode = spawned(server, outside, in_a_thread("another-agent", ORIGIN, agentId="plain"))
    assert (mode, answer["warnings"]) == ("isolated", [OTHER_AGENT_WARNING])
    told(server, "large", totalTokens=100_001)
    answer, mode = spawned(server, outside, in_a_thread("large", ORIGIN))
    assert (mode, answer["warnings"]) == ("isolated", [])
    assert "Parent context is too large to fork (100001/100000 tokens)" in answer["note"]


def test_nobody_is_asked_for_a_thread_when_a_conversation_cannot_be_taken_over(
    server: Server, outside: HookServer
) -> None:
    before = len(outside.calls())
    for name, agent_id in (("none", "main"), ("foreign", "plain")):
        body = in_a_thread(name, ORIGIN, agentId=agent_id, context="fork")
        answer = server.spawn(**body)
        assert (answer.status_code, answer.json()["rule"]) == (422, "context_fork")
    assert len(outside.calls()) == before


def test_a_child_in_a_thread_is_respawned_in_a_thread_of_its_own(
    server: Server, outside: HookServer
) -> None:
    told(server, "anew")
    answer, _ = spawned(server, outside, in_a_thread("anew", ORIGIN, mode="session"))
    path = f"/v1/runs/{answer['runId']}/respawn"
    again = server.http.post(path, json={"transcript": {"upTo": 2}, "changes": {"label": "anew"}})
    assert again.status_code == 201, again.text
    assert again.json()["mode"] == "session"
    run = server.run(again.json()["runId"], "announced")
    assert (run["mode"], run["respawnedFrom"]) == ("session", answer["runId"])
    assert run["childSessionKey"] != answer["childSessionKey"]
    asked = [
        one.event["childSessionKey"]
        for one in outside.calls("subagentSpawning")
        if one.event["childSessionKey"] == run["childSessionKey"]
    ]
    assert asked == [run["childSessionKey"]]
    # What that one began with is the first of its own transcript.
    entries = entries_of(server.http, run["runId"])
    assert entries[0][1]["entries"] == 2
    assert entries[2] == KEPT[0]


def test_a_model_is_offered_a_thread_where_a_hook_binds_one(server: Server) -> None:
    tools = McpCaller(server.url, server.token).ask("tools/list")["result"]["tools"]
    (spawn,) = [one["inputSchema"] for one in tools if one["name"] == "sessions_spawn"]
    assert spawn["properties"]["thread"] == {"type": "boolean"}
    assert spawn["properties"]["mode"]["enum"] == ["run", "session"]
