"""Threads that hooks bind for children and engines that prepare for them, also after a kill."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked import (
    ASKING,
    AT_THE_THREAD,
    BOUND,
    ORIGIN,
    TELLING,
    threaded,
)
from tests.support.servers.server import Server
from tests.support.tiers import nightly_but

NO_THREADS = (
    "thread=true is only available on channels that expose thread bindings (e.g. Discord threads,"
    " Slack threads, Telegram forum topics). This request is not running on a channel that can bind"
    " a subagent thread. Retry without thread=true, or re-run sessions_spawn from a channel that"
    " supports threads."
)
NOT_BOUND = (
    "Unable to create or bind a thread for this subagent session. Session mode is unavailable for"
    " this target."
)
NOT_PREPARED = "Failed to prepare thread binding for this subagent session."
ENGINE = "Context engine subagent preparation failed: "


@pytest.mark.kill
def test_a_child_is_bound_to_a_thread_and_its_result_goes_there(
    server: Server, outside: HookServer
) -> None:
    run_id = server.accepted(**threaded("bound", label="scout"))
    story = server.wait_steps(run_id, "hook:subagentEnded:done", "RunAnnounced")
    child = server.run(run_id)["childSessionKey"]
    assert story[:9] == [
        "SpawnRequested",
        "ScriptsResolved",
        "PreparationStarted",
        "StepBegun:thread_binding",
        "StepTaken:thread_binding",
        "StepBegun:context_engine",
        "StepTaken:context_engine",
        "SessionCreated",
        "RunQueued",
    ]
    assert [one for one in story if one.startswith("hook:")] == [
        "hook:subagentSpawned:done",
        "hook:subagentEnded:done",
    ]
    assert [call.hook for call in outside.calls()] == [
        "subagentSpawning",
        "prepareSubagentSpawn",
        "subagentSpawned",
        "subagentEnded",
    ]
    spawning, engine, spawned, ended = outside.calls()
    spawn = {"childSessionKey": child, "agentId": "plain", "label": "scout", "mode": "run"}
    ctx = {"runId": run_id, "childSessionKey": child, "requesterSessionKey": "agent:main:bound"}
    assert spawning.event == {**spawn, "requester": ORIGIN, "threadRequested": True}
    assert all(call.body["ctx"] == ctx for call in outside.calls())
    assert engine.event["parentSessionKey"] == "agent:main:bound"
    assert engine.event["contextMode"] == "isolated"
    assert spawned.event == {
        **spawn,
        "runId": run_id,
        "requester": ORIGIN,
        "threadRequested": True,
    }
    assert isinstance(ended.event.pop("endedAt"), int)
    facts = {one: ended.event[one] for one in ("reason", "outcome", "accountId", "targetKind")}
    assert facts == {
        "reason": "subagent-complete",
        "outcome": "ok",
        "accountId": "acct",
        "targetKind": "subagent",
    }
    names = ("thread_binding", "context_engine", "subagentSpawned", "subagentEnded")
    assert [call.key for call in outside.calls()] == [f"{run_id}:{name}" for name in names]
    assert all(call.headers["X-Own"] == "known" for call in outside.calls())
    (item,) = server.inbox("agent:main:bound")
    assert item["origin"] == AT_THE_THREAD
    assert [one[:2] for one in explained(server, run_id)] == [
        ("thread_binding", "a thread is bound for the child"),
        ("context_engine", "the context engine prepared the child"),
    ]


def explained(server: Server, run_id: str) -> list[tuple[str, str, str]]:
    """Name, text and result of the steps for which a hook is asked."""
    decisions = server.http.get(f"/v1/runs/{run_id}/explain").json()["decisions"]
    asked = ("thread_binding", "context_engine")
    lines = [one for one in decisions if one["rule"] in asked]
    events = {one["position"] for one in lines if one["result"] == "passed"}
    items = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    assert events <= {one["position"] for one in items if one["type"] == "StepTaken"}
    return [(one["rule"], one["text"], one["result"]) for one in lines]


def refused(server: Server, body: dict[str, Any], rule: str, text: str) -> str:
    """Spawn, which a step refuses in these words. Return the run's id."""
    answer = server.spawn(**body)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert (problem["rule"], problem["detail"]) == (rule, text)
    run_id = str(problem["runId"])
    assert ("childSessionKey" in problem) is ("PreparationStarted" in server.steps(run_id))
    (refusal,) = server.payloads(run_id, "SpawnRefused")
    assert refusal["step"] == rule
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0
    return run_id


def stopped_in_its_lane(server: Server, body: dict[str, Any]) -> str:
    """Spawn a child that is stopped before it could start. Return the run's id."""
    name = f"{body['requester']['sessionKey'][11:]}-first"
    first = server.accepted(**threaded(name, agentId="waiter", thread=False))
    server.began(first)
    run_id = server.accepted(**body)
    assert server.http.post(f"/v1/runs/{run_id}/stop", json={"reason": "enough"}).is_success
    server.let_go(first)
    server.run(first, "announced")
    return run_id


@pytest.mark.kill
@pytest.mark.parametrize(
    ("reply", "text", "tells_of_it"),
    [
        (Reply(204), NO_THREADS, False),
        (Reply(said={"status": "error", "error": "  no rights here "}), "no rights here", False),
        (Reply(said={"status": "error", "error": "  "}), NOT_PREPARED, False),
        (Reply(said={"status": "ok", "threadBindingReady": False}), NOT_BOUND, False),
        (Reply(said={"status": "busy"}), NOT_BOUND, False),
        (Reply(500), "Thread bind failed: the hook answered HTTP 500", True),
        (Reply(is_held=True), "Thread bind failed: the hook did not answer in 2 s", True),
    ],
    ids=["nothing", "error", "blank error", "not ready", "not ok", "500", "slow"],
)
def test_a_spawn_whose_thread_is_not_bound_is_refused(
    server: Server,
    outside: HookServer,
    request: pytest.FixtureRequest,
    reply: Reply,
    text: str,
    tells_of_it: bool,
) -> None:
    outside.replies("subagentSpawning", reply)
    name = f"unbound-{request.node.callspec.id}".replace(" ", "-")
    run_id = refused(server, threaded(name), "thread_binding", text)
    server.wait_steps(run_id, "undo:thread_binding:done")
    (undone,) = server.payloads(run_id, "EffectAttempted")
    assert undone["outcome"] == ("undone" if tells_of_it else "nothing_there")
    told = [(call.hook, call.key) for call in outside.calls()]
    spawning = ("subagentSpawning", f"{run_id}:thread_binding")
    failed = ("subagentEnded", f"{run_id}:thread_binding:undo")
    assert told == [spawning, failed] if tells_of_it else [spawning]
    if tells_of_it:
        event = outside.calls("subagentEnded")[0].event
        assert (event["reason"], event["outcome"]) == ("spawn-failed", "error")
        assert (event["error"], event["sendFarewell"]) == ("Session failed to start", True)


@pytest.mark.kill
def test_a_channel_may_bind_no_sub_agents(server: Server, outside: HookServer) -> None:
    body = threaded("quiet")
    body["requester"]["channel"] = "quiet"
    run_id = refused(server, body, "thread_binding", NO_THREADS)
    assert outside.calls() == []
    assert server.steps(run_id)[-1] == "SpawnRefused"


@pytest.mark.kill
def test_an_engine_that_does_not_prepare_undoes_the_thread(
    server: Server, outside: HookServer
) -> None:
    outside.replies("prepareSubagentSpawn", Reply(503))
    outside.replies("rollbackSubagentSpawn", Reply(410))
    text = f"{ENGINE}the hook answered HTTP 503"
    run_id = refused(server, threaded("engine"), "context_engine", text)
    server.wait_steps(run_id, "undo:thread_binding:done")
    assert explained(server, run_id) == [
        ("thread_binding", "a thread is bound for the child", "passed"),
        ("context_engine", "the context engine did not prepare the child", "refused"),
    ]
    undone = server.payloads(run_id, "EffectAttempted")
    hows = {one["name"]: one["outcome"] for one in undone}
    assert hows == {"context_engine": "nothing_there", "thread_binding": "undone"}
    assert [(call.hook, call.key.partition(":")[2]) for call in outside.calls()] == [
        ("subagentSpawning", "thread_binding"),
        ("prepareSubagentSpawn", "context_engine"),
        ("rollbackSubagentSpawn", "context_engine:undo"),
        ("subagentEnded", "thread_binding:undo"),
    ]
    assert outside.calls("subagentEnded")[0].event["accountId"] == "acct"


@pytest.mark.kill
def test_what_an_engine_prepared_is_rolled_back_when_the_child_never_starts(
    server: Server, outside: HookServer
) -> None:
    outside.replies("prepareSubagentSpawn", Reply(204), Reply(said={"rollback": "take-back-7"}))
    outside.replies("rollbackSubagentSpawn", Reply(500), Reply(204))
    run_id = stopped_in_its_lane(server, threaded("rolled-back", runTimeoutSeconds=9))
    story = server.wait_steps(run_id, "undo:thread_binding:done", "hook:subagentSpawned:done")
    assert "undo:context_engine:failed" in story
    _, prepare = outside.calls("prepareSubagentSpawn")
    first, second = outside.calls("rollbackSubagentSpawn")
    assert prepare.event["ttlMs"] == 9000
    assert first.event == {**prepare.event, "preparation": "take-back-7"}
    assert (first.key, first.event) == (second.key, second.event)
    assert first.path == prepare.path
    # Nobody is told twice that it is over.
    keys = [call.key for call in outside.calls("subagentEnded") if run_id in call.key]
    assert keys == [f"{run_id}:thread_binding:undo"]


@pytest.mark.kill
def test_an_engine_that_wants_no_rollback_is_not_asked_for_one(
    server: Server, outside: HookServer
) -> None:
    outside.replies("prepareSubagentSpawn", Reply(said={"rollback": False}))
    run_id = stopped_in_its_lane(server, threaded("kept", thread=False))
    server.wait_steps(run_id, "hook:subagentEnded:done")
    assert outside.calls("rollbackSubagentSpawn") == []
    (ended,) = (call for call in outside.calls("subagentEnded") if run_id in call.key)
    assert (ended.event["reason"], ended.event["outcome"]) == ("subagent-killed", "killed")


@pytest.mark.kill
def test_a_spawn_that_is_stopped_while_its_thread_is_bound_gives_it_up(
    server: Server, outside: HookServer
) -> None:
    outside.replies("subagentSpawning", Reply(said=BOUND, is_held=True))
    body = threaded("given-up")
    aside = server.spawn_in_background(**body)
    (spawning,) = outside.called("subagentSpawning")
    run_id = server.preparing(body["requester"]["sessionKey"])
    assert server.http.post(f"/v1/runs/{run_id}/stop", json={}).is_success
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0
    outside.let_go()
    answer = aside.answer()
    assert answer is not None
    assert (answer.status_code, answer.json()["rule"]) == (422, "stopped")
    story = server.wait_steps(run_id, "undo:thread_binding:done")
    assert story[-3:] == ["StepBegun:thread_binding", "SpawnRefused", "undo:thread_binding:done"]
    # It may have been bound, so it is told once the hook can answer no more.
    assert [call.key for call in outside.calls()] == [
        spawning.key,
        f"{run_id}:thread_binding:undo",
    ]


HOOK_SECONDS = 60
AT_ONCE_SECONDS = 20.0


@pytest.fixture
def patient_hooks(server: Server, outside: HookServer) -> Iterator[None]:
    hooks = outside.hooks(*ASKING, timeoutSeconds=HOOK_SECONDS)
    with server.configured(lambda config: config["spawnlog"]["hooks"].update(hooks)):
        yield


@pytest.mark.server
@pytest.mark.parametrize(
    ("hook", "step"),
    [*zip(ASKING, ("thread_binding", "context_engine"), strict=True)],
)
def test_a_spawn_that_is_stopped_while_a_hook_is_asked_is_answered_at_once(
    server: Server, outside: HookServer, patient_hooks: None, hook: str, step: str
) -> None:
    outside.replies(hook, Reply(said=BOUND, is_held=True))
    body = threaded(f"stopped-at-{step}".replace("_", "-"))
    aside = server.spawn_in_background(**body)
    outside.called(hook)
    run_id = server.preparing(body["requester"]["sessionKey"])
    stopped = time.monotonic()
    assert server.http.post(f"/v1/runs/{run_id}/stop", json={}).is_success
    answer = aside.answer()
    assert time.monotonic() - stopped < AT_ONCE_SECONDS
    assert answer is not None
    assert (answer.status_code, answer.json()["rule"]) == (422, "stopped")
    # Whoever was asked may still be at it, so it is undone later.
    assert server.steps(run_id)[-2:] == [f"StepBegun:{step}", "SpawnRefused"]
    undoing: list[dict[str, Any]] = server.run(run_id)["undoing"]
    assert step in {one["step"] for one in undoing}
    outside.let_go()


NO_RIGHTS = Reply(said={"status": "error", "error": "no rights here"})


def batch(name: str) -> dict[str, Any]:
    """Three children in threads."""
    return {**threaded(name), "task": ["a", "b", "c"], "parallel": True, "label": name}


def runs_of(server: Server, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs of the request's session, in their order."""
    query = {"requester": body["requester"]["sessionKey"]}
    items = server.http.get("/v1/runs", params=query).json()["items"]
    return sorted(items, key=lambda one: str(one["label"]))


def must_be_asked_once(outside: HookServer, hook: str) -> None:
    """No key was used twice."""
    keys = Counter(call.key for call in outside.calls(hook))
    assert set(keys.values()) <= {1}, keys


@pytest.mark.server
def test_each_child_of_a_batch_gets_a_thread(server: Server, outside: HookServer) -> None:
    answer = server.spawn(**batch("each-a-thread"))
    assert answer.status_code == 201, answer.text
    for one in answer.json()["runs"]:
        assert "StepTaken:thread_binding" in server.steps(one["runId"])
        server.run(one["runId"], "announced")
    for hook in ASKING:
        assert len(outside.calls(hook)) == 3
        must_be_asked_once(outside, hook)


@pytest.mark.server
@pytest.mark.parametrize(
    ("hook", "reply", "rule"),
    [
        ("subagentSpawning", NO_RIGHTS, "thread_binding"),
        ("prepareSubagentSpawn", Reply(503), "context_engine"),
    ],
)
def test_what_was_made_for_the_others_is_undone(
    server: Server, outside: HookServer, hook: str, reply: Reply, rule: str
) -> None:
    good = Reply(said=BOUND) if hook == "subagentSpawning" else Reply(204)
    outside.replies(hook, good, reply, good)
    body = batch(f"one-without-{rule}".replace("_", "-"))
    answer = server.spawn(**body)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["rule"] == rule
    runs = runs_of(server, body)
    assert Counter(one["rule"] for one in runs) == {rule: 1, "batch": 2}
    (culprit,) = [one for one in runs if one["rule"] == rule]
    assert problem["runId"] == culprit["runId"]
    assert problem["errors"][0]["pointer"] == f"/task/{runs.index(culprit)}"
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0
    for one in runs:
        begun = [name for name in server.steps(one["runId"]) if name.startswith("StepBegun:")]
        undone = [f"undo:{name.removeprefix('StepBegun:')}:done" for name in begun]
        server.wait_steps(one["runId"], *undone)
        assert server.run(one["runId"])["undoing"] == []
    must_be_asked_once(outside, hook)


@pytest.mark.server
def test_a_hook_that_hangs_does_not_hold_up_the_refusal(
    server: Server, outside: HookServer
) -> None:
    held = Reply(said=BOUND, is_held=True)
    outside.replies("subagentSpawning", held, NO_RIGHTS, held)
    body = batch("one-hangs")
    assert server.spawn(**body).json()["rule"] == "thread_binding"
    outside.let_go()
    for one in runs_of(server, body):
        if "StepBegun:thread_binding" in server.steps(one["runId"]):
            server.wait_steps(one["runId"], "undo:thread_binding:done")


STEPS = ("thread_binding", "context_engine")
MADE = [
    *(
        f"{moment}:{step}"
        for step in STEPS
        for moment in (
            "before StepBegun",
            "after StepBegun",
            "before step",
            "after step",
            "before StepTaken",
            "after StepTaken",
        )
    ),
    "after SessionCreated",
]
WHEN = ("before", "after")
TELLING_MOMENTS = [
    f"{moment}:{hook}"
    for hook in TELLING
    for moment in (f"{when} {what}hook" for when in WHEN for what in ("", "EffectAttempted:"))
]
UNDOING = [
    f"{moment}:{step}"
    for step in reversed(STEPS)
    for moment in (f"{when} {what}undo" for when in WHEN for what in ("", "EffectAttempted:"))
]


def called_once(outside: HookServer, run_id: str, expected: dict[str, str]) -> None:
    """Each of these hooks was called with its key alone, and at most twice; no other was."""
    calls = [call for call in outside.calls() if call.key.startswith(run_id)]
    assert {call.hook: call.key.removeprefix(f"{run_id}:") for call in calls} == expected
    counted = Counter((call.hook, call.key) for call in calls)
    assert len(counted) == len(expected)
    assert max(counted.values()) <= 2, counted
    events = {call.key: call.event for call in calls}
    assert all(call.event == events[call.key] for call in calls)


def name_of(moment: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in moment.lower())


def require_told(server: Server, outside: HookServer, moment: str) -> None:
    """The same request is accepted, and all is told."""
    body = threaded(name_of(moment))
    answer = server.spawn_again(key=moment, **body)
    assert answer.status_code == 201, answer.text
    run_id = str(answer.json()["runId"])
    story = server.wait_steps(run_id, "hook:subagentEnded:done")
    assert Counter(one for one in story if one.startswith(("StepTaken", "hook:"))) == {
        **{f"StepTaken:{step}": 1 for step in STEPS},
        **{f"hook:{hook}:done": 1 for hook in TELLING},
    }
    assert not [one for one in story if one.startswith("undo:")]
    called_once(
        outside,
        run_id,
        {
            "subagentSpawning": "thread_binding",
            "prepareSubagentSpawn": "context_engine",
            **{hook: hook for hook in TELLING},
        },
    )
    key = body["requester"]["sessionKey"]
    assert server.session(key)["activeChildren"] == 0
    (item,) = server.inbox(key)
    assert item["origin"] == AT_THE_THREAD


@pytest.mark.kill
@pytest.mark.parametrize(
    "moment",
    nightly_but(
        [*MADE, *TELLING_MOMENTS], ["after step:context_engine", "after hook:subagentEnded"]
    ),
)
def test_a_spawn_goes_on_when_its_server_is_killed_while_it_asks_or_tells(
    server: Server, outside: HookServer, moment: str
) -> None:
    server.die_during(moment, key=moment, **threaded(name_of(moment)))
    server.restart()
    require_told(server, outside, moment)


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(UNDOING, ["after undo:thread_binding"]))
def test_what_others_made_is_undone_when_the_server_is_killed_meanwhile(
    server: Server, outside: HookServer, moment: str
) -> None:
    outside.replies("prepareSubagentSpawn", Reply(500))
    body = threaded(name_of(moment))
    server.die_during(moment, key=moment, **body)
    server.restart()
    answer = server.spawn_again(key=moment, **body)
    assert (answer.status_code, answer.json()["rule"]) == (422, "context_engine")
    run_id = str(answer.json()["runId"])
    story = server.wait_steps(run_id, *(f"undo:{step}:done" for step in STEPS))
    assert story[-2:] == [f"undo:{step}:done" for step in reversed(STEPS)]
    called_once(
        outside,
        run_id,
        {
            "subagentSpawning": "thread_binding",
            "prepareSubagentSpawn": "context_engine",
            "rollbackSubagentSpawn": "context_engine:undo",
            "subagentEnded": "thread_binding:undo",
        },
    )
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0
