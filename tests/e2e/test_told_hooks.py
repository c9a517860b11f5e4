"""Hooks that are told of children, and that say where results go."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import BOUND, ORIGIN, Hooked, all_of, hooked_on, threaded
from tests.support.servers.running_server import wait_for

pytestmark = pytest.mark.kill

SLACK = {"channel": "slack", "to": "C1"}


@pytest.fixture(scope="module")
def one_hooked(databases: Databases, outside: HookServer) -> Iterator[Hooked]:
    target = outside.hooks("subagentDeliveryTarget", timeoutSeconds=1)
    with hooked_on(databases, all_of(outside) | target) as server:
        yield server


@pytest.fixture
def server(one_hooked: Hooked, outside: HookServer) -> Iterator[Hooked]:
    outside.forget()
    outside.replies("subagentSpawning", Reply(said=BOUND))
    yield one_hooked
    outside.let_go()


def test_a_child_that_fails_is_told_with_its_error(server: Hooked, outside: HookServer) -> None:
    run_id = server.asked_for(threaded("failing", agentId="failing", thread=False))
    server.comes_to(run_id, "hook:subagentEnded:done")
    (ended,) = outside.calls("subagentEnded")
    event = {one: ended.event[one] for one in ("reason", "outcome", "error")}
    assert event == {
        "reason": "subagent-error",
        "outcome": "error",
        "error": "the harbour is closed",
    }


def test_a_hook_that_fails_is_told_again_until_it_takes_it(
    server: Hooked, outside: HookServer
) -> None:
    outside.replies("subagentSpawned", Reply(500), Reply(is_held=True), Reply(204))
    run_id = server.asked_for(threaded("again", thread=False))
    story = server.comes_to(run_id, "hook:subagentEnded:done")
    assert [one for one in story if one.startswith("hook:")] == [
        "hook:subagentSpawned:failed",
        "hook:subagentSpawned:failed",
        "hook:subagentSpawned:done",
        "hook:subagentEnded:done",
    ]
    told = server.recorded(run_id, "EffectAttempted")[2]
    assert (told["attempt"], told["statusCode"]) == (3, 204)
    calls = outside.calls("subagentSpawned")
    assert [call.key for call in calls] == [f"{run_id}:subagentSpawned"] * 3
    assert calls[0].event["threadRequested"] is False


def test_a_hook_that_goes_on_failing_is_parked_and_fails_nothing(
    server: Hooked, outside: HookServer
) -> None:
    outside.replies("subagentSpawned", Reply(500, b"why"))
    run_id = server.asked_for(threaded("parked", thread=False))
    assert server.run(run_id, "announced")["outcome"] == "success"
    story = server.comes_to(run_id, "hook:subagentSpawned:parked", "hook:subagentEnded:done")
    assert story.count("hook:subagentSpawned:failed") == 3
    (parked,) = server.recorded(run_id, "EffectParked")
    assert (parked["attempts"], parked["reason"]) == (3, "attempts")
    assert (
        "hook subagentSpawned: the hook answered HTTP 500; there is no further attempt"
        in server.log()
    )


def test_a_child_that_is_stopped_is_told_as_killed(server: Hooked, outside: HookServer) -> None:
    run_id = server.asked_for(threaded("stopped", agentId="waiter"))
    server.note(f"{run_id}.began")
    server.http.post(f"/v1/runs/{run_id}/stop", json={"reason": "enough"})
    server.comes_to(run_id, "hook:subagentEnded:done")
    (ended,) = outside.calls("subagentEnded")
    event = {one: ended.event[one] for one in ("reason", "outcome", "error")}
    assert event == {"reason": "subagent-killed", "outcome": "killed", "error": "enough"}


@pytest.mark.parametrize(
    ("reply", "origin"),
    [
        (
            Reply(said={"origin": {"to": " elsewhere ", "x": 1}}),
            {"channel": "discord", "accountId": "acct", "to": "elsewhere", "threadId": 7},
        ),
        (
            Reply(said={"origin": {"channel": "slack", "to": "C1"}}),
            {"channel": "slack", "to": "C1"},
        ),
        (Reply(said={"origin": {"channel": "webchat"}}), ORIGIN),
        (Reply(204), ORIGIN),
        (Reply(500), ORIGIN),
        (Reply(is_held=True), ORIGIN),
    ],
    ids=["merged", "another channel", "internal", "nothing", "500", "slow"],
)
def test_a_hook_says_where_a_result_goes(
    server: Hooked,
    outside: HookServer,
    request: pytest.FixtureRequest,
    reply: Reply,
    origin: dict[str, Any],
) -> None:
    outside.replies("subagentDeliveryTarget", reply)
    key = f"target-{request.node.callspec.id}".replace(" ", "-")
    run_id = server.asked_for(threaded(key, thread=False))
    server.run(run_id, "announced")
    (item,) = wait_for("the announcement", lambda: server.inbox(f"agent:main:{key}"))
    assert item["origin"] == origin
    (call,) = outside.calls("subagentDeliveryTarget")
    child = server.run(run_id)["childSessionKey"]
    assert call.event == {
        "childSessionKey": child,
        "requesterSessionKey": f"agent:main:{key}",
        "requesterOrigin": ORIGIN,
        "childRunId": run_id,
        "spawnMode": "run",
        "expectsCompletionMessage": True,
    }


def test_nobody_is_asked_where_the_result_of_a_stopped_or_unexpected_run_goes(
    server: Hooked, outside: HookServer
) -> None:
    run_id = server.asked_for(threaded("unexpected", thread=False, expectsCompletionMessage=False))
    story = server.comes_to(run_id, "hook:subagentEnded:done", "RunAnnounced")
    assert outside.calls("subagentDeliveryTarget") == []
    # Nobody waits for an announcement, so the end is told at once.
    assert story.index("RunEnded") < story.index("hook:subagentEnded:done")
