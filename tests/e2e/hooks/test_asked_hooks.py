"""Threads that hooks bind for children and engines that prepare for them, also after a kill."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.builders.submitted_transcripts import KEPT, entries_of, tell
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked import (
    ASKING,
    AT_THE_THREAD,
    BOUND,
    ORIGIN,
    TELLING,
    name_of,
    threaded,
)
from tests.support.servers.server import Server
from tests.support.tiers import nightly_but

NOT_BOUND = (
    "Unable to create or bind a thread for this subagent session. Session mode is unavailable for"
    " this target."
)
STEPS = ("thread_binding", "context_engine")
UNBOUND, ROLLED_BACK = "undo:thread_binding:done", "undo:context_engine:done"
NO_RIGHTS = Reply(body={"status": "error", "error": "  no rights here "})


def refused(server: Server, body: dict[str, Any], rule: str, text: str) -> str:
    """Spawn, which a step refuses in these words. Return the run's id."""
    answer = server.spawn(**body)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert (problem["rule"], problem["detail"]) == (rule, text)
    run_id = str(problem["runId"])
    (refusal,) = server.payloads(run_id, "SpawnRefused")
    assert refusal["step"] == rule
    require_no_children(server, body)
    return run_id


def require_no_children(server: Server, body: dict[str, Any]) -> None:
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0


def asked(outside: HookServer, run_id: str) -> list[tuple[str, str]]:
    """Return the calls about a run: the hook, and the suffix of its key."""
    calls = [(call.hook, call.key.partition(":")) for call in outside.calls()]
    return [(hook, key) for hook, (of, _, key) in calls if of == run_id]


def stop(server: Server, run_id: str) -> None:
    assert server.http.post(f"/v1/runs/{run_id}/stop", json={"reason": "enough"}).is_success


@pytest.mark.kill
def test_child_is_bound_and_its_result_goes_to_the_thread(
    server: Server, outside: HookServer
) -> None:
    run_id = server.accepted(**threaded("bound", label="scout"))
    story = server.wait_steps(run_id, "hook:subagentEnded:done", "RunAnnounced")
    child = server.run(run_id)["childSessionKey"]
    assert story[3:8] == [
        *(f"{event}:{step}" for step in STEPS for event in ("StepBegun", "StepTaken")),
        "SessionCreated",
    ]
    assert [text for text in story if text.startswith("hook:")] == [
        f"hook:{hook}:done" for hook in TELLING
    ]
    hooks = [*ASKING, *TELLING]
    assert asked(outside, run_id) == list(zip(hooks, [*STEPS, *TELLING], strict=True))
    ctx = {"runId": run_id, "childSessionKey": child, "requesterSessionKey": "agent:main:bound"}
    for call in outside.calls():
        assert call.body["ctx"] == ctx
        assert call.headers["X-Own"] == "known"
    spawning, engine, spawned, ended = (call.event for call in outside.calls())
    spawn = {"childSessionKey": child, "agentId": "plain", "label": "scout", "mode": "run"}
    spawn |= {"requester": ORIGIN, "threadRequested": True}
    assert spawning == spawn
    assert engine["contextMode"] == "isolated"
    assert spawned == {**spawn, "runId": run_id}
    assert (ended["reason"], ended["outcome"]) == ("subagent-complete", "ok")
    (item,) = server.inbox("agent:main:bound")
    assert item["origin"] == AT_THE_THREAD
    decisions = [rule for rule in server.explained(run_id) if rule["rule"] in STEPS]
    assert [decision["text"] for decision in decisions] == [
        "a thread was bound for the child",
        "the context engine prepared the child",
    ]


@pytest.mark.kill
@pytest.mark.parametrize(
    ("reply", "text", "may_be_bound"),
    [
        (NO_RIGHTS, "no rights here", False),
        (Reply(body={"status": "ok", "threadBindingReady": False}), NOT_BOUND, False),
        (Reply(500), "Thread bind failed: the hook answered HTTP 500", True),
        (Reply(is_held=True), "Thread bind failed: the hook did not answer in 2 s", True),
    ],
    ids=["error", "not-ready", "500", "slow"],
)
def test_spawn_whose_thread_is_not_bound_is_refused(
    server: Server,
    outside: HookServer,
    request: pytest.FixtureRequest,
    reply: Reply,
    text: str,
    may_be_bound: bool,
) -> None:
    outside.replies("subagentSpawning", reply)
    name = f"unbound-{request.node.callspec.id}"
    run_id = refused(server, threaded(name), "thread_binding", text)
    server.wait_steps(run_id, UNBOUND)
    (undone,) = server.payloads(run_id, "EffectAttempted")
    assert undone["outcome"] == ("undone" if may_be_bound else "nothing_there")
    result = [("subagentEnded", "thread_binding:undo")] if may_be_bound else []
    assert asked(outside, run_id) == [("subagentSpawning", "thread_binding"), *result]
    for call in outside.calls("subagentEnded"):
        assert (call.event["reason"], call.event["error"]) == (
            *("spawn-failed", "Session failed to start"),
        )


@pytest.mark.kill
def test_channel_without_threads_is_not_asked(server: Server, outside: HookServer) -> None:
    body = threaded("quiet")
    body["requester"]["channel"] = "quiet"
    problem = server.spawn(**body).json()
    assert problem["rule"] == "thread_binding"
    assert problem["detail"].startswith("thread=true is only available on channels that expose")
    assert outside.calls() == []


@pytest.mark.kill
def test_unprepared_engine_undoes_the_thread(server: Server, outside: HookServer) -> None:
    outside.replies("prepareSubagentSpawn", Reply(503))
    outside.replies("rollbackSubagentSpawn", Reply(410))
    text = "Context engine subagent preparation failed: the hook answered HTTP 503"
    run_id = refused(server, threaded("engine"), "context_engine", text)
    server.wait_steps(run_id, UNBOUND)
    undone = server.payloads(run_id, "EffectAttempted")
    hows = {run["name"]: run["outcome"] for run in undone}
    assert hows == {"context_engine": "nothing_there", "thread_binding": "undone"}
    assert asked(outside, run_id)[2:] == [
        ("rollbackSubagentSpawn", "context_engine:undo"),
        ("subagentEnded", "thread_binding:undo"),
    ]


@pytest.mark.kill
def test_preparation_is_rolled_back_if_child_never_starts(
    server: Server, outside: HookServer
) -> None:
    outside.replies("prepareSubagentSpawn", Reply(204), Reply(body={"rollback": "take-back-7"}))
    outside.replies("rollbackSubagentSpawn", Reply(500), Reply(204))
    first = server.accepted(**threaded("in-the-way", agentId="waiter", thread=False))
    server.began(first)
    run_id = server.accepted(**threaded("rolled-back", runTimeoutSeconds=9))
    stop(server, run_id)
    server.let_go(first)
    story = server.wait_steps(run_id, UNBOUND, "hook:subagentSpawned:done")
    assert "undo:context_engine:failed" in story
    _, prepare = outside.calls("prepareSubagentSpawn")
    for call in outside.calls("rollbackSubagentSpawn"):
        assert call.key == f"{run_id}:context_engine:undo"
        assert call.event == {**prepare.event, "preparation": "take-back-7"}
    # The end is announced once.
    keys = [call.key for call in outside.calls("subagentEnded") if run_id in call.key]
    assert keys == [f"{run_id}:thread_binding:undo"]
    server.run(first, "announced")


@pytest.fixture
def patient_hooks(server: Server, outside: HookServer) -> Iterator[None]:
    hooks = outside.hooks(*ASKING, timeoutSeconds=60)
    with server.configured(lambda config: config["spawnlog"]["hooks"].update(hooks)):
        yield


@pytest.mark.server
@pytest.mark.parametrize(("hook", "step"), [*zip(ASKING, STEPS, strict=True)])
def test_stopped_spawn_is_answered_while_hook_is_asked(
    server: Server, outside: HookServer, patient_hooks: None, hook: str, step: str
) -> None:
    outside.replies(hook, Reply(body=BOUND, is_held=True))
    body = threaded(f"stopped-at-{step}".replace("_", "-"))
    aside = server.spawn_in_background(**body)
    outside.called(hook)
    run_id = server.preparing(body["requester"]["sessionKey"])
    stopped = time.monotonic()
    stop(server, run_id)
    answer = aside.answer()
    assert time.monotonic() - stopped < 20
    assert answer is not None
    assert (answer.status_code, answer.json()["rule"]) == (422, "stopped")
    require_no_children(server, body)
    # The hook may still be working, so the undo comes later.
    assert server.steps(run_id)[-2:] == [f"StepBegun:{step}", "SpawnRefused"]
    assert step in {item["step"] for item in server.run(run_id)["undoing"]}
    outside.let_go()


@pytest.mark.kill
def test_stopped_spawn_gives_up_its_thread(server: Server, outside: HookServer) -> None:
    outside.replies("subagentSpawning", Reply(body=BOUND, is_held=True))
    body = threaded("given-up")
    aside = server.spawn_in_background(**body)
    outside.called("subagentSpawning")
    run_id = server.preparing(body["requester"]["sessionKey"])
    stop(server, run_id)
    outside.let_go()
    aside.answer()
    assert server.wait_steps(run_id, UNBOUND)[-2:] == ["SpawnRefused", UNBOUND]
    # The thread may be bound, so its end is reported after the hook's deadline.
    assert asked(outside, run_id)[1:] == [("subagentEnded", "thread_binding:undo")]


@pytest.mark.server
def test_child_in_thread_begins_with_conversation(server: Server, outside: HookServer) -> None:
    session = "agent:main:talk"
    assert tell(server.http, session).status_code == 200
    body = threaded("talk", agentId="main", mode="session", context=None)
    answer = server.spawn(**body).json()
    assert answer["warnings"] == []
    first = server.run(answer["runId"], "announced")
    assert first["contextMode"] == "fork"
    (call,) = outside.calls("prepareSubagentSpawn")
    assert call.event["contextMode"] == "fork"
    assert entries_of(server.http, first["runId"])[1 : len(KEPT) + 1] == KEPT
    story = [step for step in server.steps(first["runId"]) if step.startswith("StepTaken")]
    assert story == [f"StepTaken:{item}" for item in (STEPS[0], "context_fork", STEPS[1])]
    # A respawn has its own thread, and starts with the same input as the original.
    again = server.http.post(
        f"/v1/runs/{first['runId']}/respawn", json={"transcript": {"upTo": 2}}
    ).json()
    run = server.run(again["runId"], "announced")
    assert (run["mode"], run["respawnedFrom"]) == ("session", first["runId"])
    children = [call.event["childSessionKey"] for call in outside.calls("subagentSpawning")]
    assert children == [first["childSessionKey"], run["childSessionKey"]]
    assert entries_of(server.http, run["runId"])[2] == KEPT[0]


@pytest.mark.server
def test_no_thread_is_asked_for_if_conversation_cannot_be_taken(
    server: Server, outside: HookServer
) -> None:
    answer = server.spawn(**threaded("none", agentId="main", context="fork"))
    assert (answer.status_code, answer.json()["rule"]) == (422, "context_fork")
    assert outside.calls() == []


# Batches.


def batch(name: str) -> dict[str, Any]:
    """Return a request for three children in threads."""
    return {**threaded(name), "task": ["a", "b", "c"], "parallel": True, "label": name}


def runs_of(server: Server, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the runs of the request's session, in the order of its tasks."""
    runs = server.runs(requester=body["requester"]["sessionKey"])
    return sorted(runs, key=lambda run: str(run["label"]))


@pytest.mark.server
@pytest.mark.parametrize(
    ("hook", "reply", "rule"),
    [
        ("subagentSpawning", NO_RIGHTS, "thread_binding"),
        ("prepareSubagentSpawn", Reply(503), "context_engine"),
    ],
)
def test_refused_task_undoes_what_was_made_for_others(
    server: Server, outside: HookServer, hook: str, reply: Reply, rule: str
) -> None:
    good = Reply(body=BOUND) if hook == "subagentSpawning" else Reply(204)
    outside.replies(hook, good, reply, good)
    body = batch(f"one-without-{rule}".replace("_", "-"))
    problem = server.spawn(**body).json()
    assert problem["rule"] == rule
    runs = runs_of(server, body)
    assert Counter(run["rule"] for run in runs) == {rule: 1, "batch": 2}
    require_no_children(server, body)
    for item in runs:
        begun = [name for name in server.steps(item["runId"]) if name.startswith("StepBegun:")]
        undone = [f"undo:{name.removeprefix('StepBegun:')}:done" for name in begun]
        server.wait_steps(item["runId"], *undone)
        assert server.run(item["runId"])["undoing"] == []
    assert set(Counter(call.key for call in outside.calls(hook)).values()) == {1}


@pytest.mark.server
def test_hanging_hook_does_not_hold_up_refusal(server: Server, outside: HookServer) -> None:
    held = Reply(body=BOUND, is_held=True)
    outside.replies("subagentSpawning", held, NO_RIGHTS, held)
    body = batch("one-hangs")
    assert server.spawn(**body).json()["rule"] == "thread_binding"
    outside.let_go()
    for run in runs_of(server, body):
        if "StepBegun:thread_binding" in server.steps(run["runId"]):
            server.wait_steps(run["runId"], UNBOUND)


# Killed.

MADE = [
    *(
        f"{when} {mark}:{step}"
        for step in STEPS
        for mark in ("StepBegun", "step", "StepTaken")
        for when in ("before", "after")
    ),
    "after SessionCreated",
]


def around(mark: str, names: tuple[str, ...]) -> list[str]:
    """Return the moments before and after something is done and recorded."""
    return [
        f"{when} {recorded}{mark}:{name}"
        for name in names
        for when in ("before", "after")
        for recorded in ("", "EffectAttempted:")
    ]


def require_called(outside: HookServer, run_id: str, expected: dict[str, str]) -> None:
    """Require that each of these hooks was called with its key alone, at most twice, and no other
    was."""
    counted = Counter(asked(outside, run_id))
    assert dict(counted.keys()) == expected
    assert len(counted) == len(expected)
    assert max(counted.values()) <= 2, counted
    events = {call.key: call.event for call in outside.calls()}
    assert all(call.event == events[call.key] for call in outside.calls())


@pytest.mark.kill
@pytest.mark.parametrize(
    "moment",
    nightly_but(
        [*MADE, *around("hook", TELLING)], ["after step:context_engine", "after hook:subagentEnded"]
    ),
)
def test_killed_spawn_asks_and_tells_once(server: Server, outside: HookServer, moment: str) -> None:
    body = threaded(name_of(moment))
    server.die_during(moment, key=moment, **body)
    server.restart()
    answer = server.spawn_again(key=moment, **body)
    assert answer.status_code == 201, answer.text
    run_id = str(answer.json()["runId"])
    story = server.wait_steps(run_id, "hook:subagentEnded:done")
    assert Counter(text for text in story if text.startswith(("StepTaken", "hook:", "undo:"))) == {
        **{f"StepTaken:{step}": 1 for step in STEPS},
        **{f"hook:{hook}:done": 1 for hook in TELLING},
    }
    asking = dict(zip(ASKING, STEPS, strict=True))
    require_called(outside, run_id, asking | {hook: hook for hook in TELLING})
    require_no_children(server, body)
    (item,) = server.inbox(body["requester"]["sessionKey"])
    assert item["origin"] == AT_THE_THREAD


@pytest.mark.kill
@pytest.mark.parametrize(
    "moment", nightly_but(around("undo", STEPS), ["after undo:thread_binding"])
)
def test_killed_refusal_undoes_once(server: Server, outside: HookServer, moment: str) -> None:
    outside.replies("prepareSubagentSpawn", Reply(500))
    body = threaded(name_of(moment))
    server.die_during(moment, key=moment, **body)
    server.restart()
    answer = server.spawn_again(key=moment, **body)
    assert (answer.status_code, answer.json()["rule"]) == (422, "context_engine")
    run_id = str(answer.json()["runId"])
    assert server.wait_steps(run_id, UNBOUND, ROLLED_BACK)[-2:] == [ROLLED_BACK, UNBOUND]
    asking = dict(zip(ASKING, STEPS, strict=True))
    undoing = {
        "rollbackSubagentSpawn": "context_engine:undo",
        "subagentEnded": "thread_binding:undo",
    }
    require_called(outside, run_id, asking | undoing)
    require_no_children(server, body)
