"""Hooks that are told of children and that say where results go, also those that hang."""

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.attached_files import ATTACHED
from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked import ORIGIN, hooked, threaded
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server, serving
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

SLACK = {"channel": "slack", "to": "C1"}


@pytest.fixture(scope="module", autouse=True)
def asked_for_targets(one_server: Server, one_outside: HookServer) -> Iterator[None]:
    hook = one_outside.hooks("subagentDeliveryTarget", timeoutSeconds=1)
    one_server.ensure_running()
    with one_server.configured(lambda config: config["spawnlog"]["hooks"].update(hook)):
        yield


@pytest.mark.kill
def test_a_child_that_fails_is_told_with_its_error(server: Server, outside: HookServer) -> None:
    run_id = server.accepted(**threaded("failing", agentId="failing", thread=False))
    server.wait_steps(run_id, "hook:subagentEnded:done")
    (ended,) = outside.calls("subagentEnded")
    event = {one: ended.event[one] for one in ("reason", "outcome", "error")}
    assert event == {
        "reason": "subagent-error",
        "outcome": "error",
        "error": "the harbour is closed",
    }


@pytest.mark.kill
def test_a_hook_that_fails_is_told_again_until_it_takes_it(
    server: Server, outside: HookServer
) -> None:
    outside.replies("subagentSpawned", Reply(500), Reply(is_held=True), Reply(204))
    run_id = server.accepted(**threaded("again", thread=False))
    story = server.wait_steps(run_id, "hook:subagentEnded:done")
    assert [one for one in story if one.startswith("hook:")] == [
        "hook:subagentSpawned:failed",
        "hook:subagentSpawned:failed",
        "hook:subagentSpawned:done",
        "hook:subagentEnded:done",
    ]
    told = server.payloads(run_id, "EffectAttempted")[2]
    assert (told["attempt"], told["statusCode"]) == (3, 204)
    calls = outside.calls("subagentSpawned")
    assert [call.key for call in calls] == [f"{run_id}:subagentSpawned"] * 3
    assert calls[0].event["threadRequested"] is False


@pytest.mark.kill
def test_a_hook_that_goes_on_failing_is_parked_and_fails_nothing(
    server: Server, outside: HookServer
) -> None:
    outside.replies("subagentSpawned", Reply(500, b"why"))
    run_id = server.accepted(**threaded("parked", thread=False))
    assert server.run(run_id, "announced")["outcome"] == "success"
    story = server.wait_steps(run_id, "hook:subagentSpawned:parked", "hook:subagentEnded:done")
    assert story.count("hook:subagentSpawned:failed") == 3
    (parked,) = server.payloads(run_id, "EffectParked")
    assert (parked["attempts"], parked["reason"]) == (3, "attempts")
    assert (
        "hook subagentSpawned: the hook answered HTTP 500; there is no further attempt"
        in server.log()
    )


@pytest.mark.kill
def test_a_child_that_is_stopped_is_told_as_killed(server: Server, outside: HookServer) -> None:
    run_id = server.accepted(**threaded("stopped", agentId="waiter"))
    server.note(f"{run_id}.began")
    server.http.post(f"/v1/runs/{run_id}/stop", json={"reason": "enough"})
    server.wait_steps(run_id, "hook:subagentEnded:done")
    (ended,) = outside.calls("subagentEnded")
    event = {one: ended.event[one] for one in ("reason", "outcome", "error")}
    assert event == {"reason": "subagent-killed", "outcome": "killed", "error": "enough"}


@pytest.mark.kill
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
    server: Server,
    outside: HookServer,
    request: pytest.FixtureRequest,
    reply: Reply,
    origin: dict[str, Any],
) -> None:
    outside.replies("subagentDeliveryTarget", reply)
    key = f"target-{request.node.callspec.id}".replace(" ", "-")
    run_id = server.accepted(**threaded(key, thread=False))
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


@pytest.mark.kill
def test_nobody_is_asked_where_the_result_of_a_stopped_or_unexpected_run_goes(
    server: Server, outside: HookServer
) -> None:
    run_id = server.accepted(**threaded("unexpected", thread=False, expectsCompletionMessage=False))
    story = server.wait_steps(run_id, "hook:subagentEnded:done", "RunAnnounced")
    assert outside.calls("subagentDeliveryTarget") == []
    # Nobody waits for an announcement, so the end is told at once.
    assert story.index("RunEnded") < story.index("hook:subagentEnded:done")


HOOK_SECONDS = 60
TOLD = "subagentSpawned"
ASKED = "subagentDeliveryTarget"
LEASE = timedelta(seconds=QUICK_LEASE_SECONDS)


@pytest.fixture
def patient_hooks(server: Server, outside: HookServer) -> Iterator[None]:
    hooks = outside.hooks(TOLD, ASKED, timeoutSeconds=HOOK_SECONDS)
    with server.configured(lambda config: config["spawnlog"]["hooks"].update(hooks)):
        yield


def accepted_without_thread(server: Server, name: str) -> str:
    return server.accepted(**threaded(name, thread=False))


def claimed_until(server: Server, run_id: str) -> datetime | None:
    rows = server.ask_database("SELECT until FROM work_claims WHERE run_id = %s", run_id)
    return rows[0][0] if rows else None


@pytest.mark.kill
@pytest.mark.parametrize("hook", nightly_but([TOLD, ASKED], [ASKED]))
def test_another_takes_over_after_one_lease_however_long_the_hook_may_take(
    server: Server, outside: HookServer, patient_hooks: None, hook: str
) -> None:
    outside.replies(hook, Reply(is_held=True))
    run_id = accepted_without_thread(server, f"killed-{hook}")
    outside.called(hook)
    server.kill()
    outside.replies(hook, Reply())
    server.start()
    # Far less than the hook may take.
    first, second = outside.called(hook, 2)
    assert first.key == second.key
    server.wait_steps(run_id, "hook:subagentSpawned:done", "RunAnnounced")
    assert len(outside.calls(hook)) == 2


@pytest.mark.kill
@pytest.mark.parametrize("hook", nightly_but([TOLD, ASKED], [ASKED]))
def test_nobody_else_asks_while_an_answer_takes_longer_than_a_lease(
    server: Server, outside: HookServer, patient_hooks: None, hook: str
) -> None:
    outside.replies(hook, Reply(is_held=True))
    run_id = accepted_without_thread(server, f"slow-{hook}")
    outside.called(hook)
    first = wait_for("the claim", lambda: claimed_until(server, run_id))
    with server.twin():

        def is_prolonged() -> bool:
            until = claimed_until(server, run_id)
            return until is not None and until > first + 2 * LEASE

        wait_for("a claim of more than two leases", is_prolonged)
        assert len(outside.calls(hook)) == 1
        outside.let_go()
        server.wait_steps(run_id, "hook:subagentSpawned:done", "RunAnnounced")
    assert len(outside.calls(hook)) == 1


_UNASKED = """
import runpy, sys
from application.workers import due
due.DUE_BATCH = 1
due.DUE_SECONDS = 3600.0
module, sys.argv[1:] = sys.argv[3], sys.argv[4:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""The same program, which takes what is due one by one, and looks for it only when it is woken."""

TOOLS = {"sessions_spawn": {"attachments": {"enabled": True, "retainOnSessionKeep": False}}}


@pytest.fixture(
    params=nightly_but([[], ["subagentSpawned"]], [["subagentSpawned"]]), ids=["no hook", "a hook"]
)
def woken_server(
    request: pytest.FixtureRequest, databases: Databases, outside: HookServer
) -> Iterator[Server]:
    hooks = outside.hooks(*request.param, timeoutSeconds=60)

    def config(folder: Path) -> dict[str, Any]:
        return hooked(folder, hooks, tools=TOOLS)

    with serving(databases, config, prefix=(sys.executable, "-c", _UNASKED)) as running:
        yield running
        outside.let_go()


@pytest.mark.server
def test_files_are_removed_once_a_run_is_announced_whoever_hangs(
    woken_server: Server, outside: HookServer
) -> None:
    server = woken_server
    outside.replies("subagentSpawned", Reply(is_held=True), Reply())
    hangs = server.accepted(**threaded("hangs", thread=False))
    body = threaded("quick", thread=False, attachments=ATTACHED)
    quick = server.accepted(**body)
    server.wait_steps(quick, "RunAnnounced", "undo:attachments:done")
    assert "hook:subagentSpawned:done" not in server.steps(hangs)
    place = server.folder / "work" / ".openclaw" / "attachments" / quick
    wait_for("the files to be gone", lambda: not place.exists())


@pytest.mark.server
def test_a_hook_that_hangs_holds_up_neither_other_runs_nor_the_end(
    databases: Databases, outside: HookServer
) -> None:
    hooks = outside.hooks("subagentDeliveryTarget", timeoutSeconds=60)
    outside.replies("subagentDeliveryTarget", Reply(is_held=True))
    with serving(databases, lambda folder: hooked(folder, hooks), dies=True) as server:
        slow = server.accepted(**threaded("slow", thread=False))
        outside.called("subagentDeliveryTarget")
        outside.replies("subagentDeliveryTarget", Reply(204))
        quick = server.accepted(**threaded("quick", thread=False))
        assert server.run(quick, "announced")["outcome"] == "success"
        assert server.run(slow)["stage"] == "ended"
        assert server.stop() == 0
        assert "announce: what is due is left to the next start" in server.log()
