"""Threads that are bound for children, and engines that prepare for them."""

from collections.abc import Iterator

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import (
    AT_THE_THREAD,
    BOUND,
    ORIGIN,
    Hooked,
    all_of,
    hooked_on,
    threaded,
)

pytestmark = pytest.mark.kill

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


@pytest.fixture(scope="module")
def one_hooked(databases: Databases, outside: HookServer) -> Iterator[Hooked]:
    channels = {"quiet": {"threadBindings": {"spawnSessions": False}}}
    hooks = all_of(outside, headers={"X-Own": "known"})
    with hooked_on(databases, hooks, channels=channels) as server:
        yield server


@pytest.fixture
def server(one_hooked: Hooked, outside: HookServer) -> Iterator[Hooked]:
    outside.forget()
    outside.replies("subagentSpawning", Reply(said=BOUND))
    yield one_hooked
    outside.let_go()


def test_a_child_is_bound_to_a_thread_and_its_result_goes_there(
    server: Hooked, outside: HookServer
) -> None:
    run_id = server.asked_for(threaded("bound", label="scout"))
    story = server.comes_to(run_id, "hook:subagentEnded:done", "RunAnnounced")
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


def explained(server: Hooked, run_id: str) -> list[tuple[str, str, str]]:
    """Name, text and result of the steps for which a hook is asked."""
    decisions = server.http.get(f"/v1/runs/{run_id}/explain").json()["decisions"]
    asked = ("thread_binding", "context_engine")
    lines = [one for one in decisions if one["rule"] in asked]
    events = {one["position"] for one in lines if one["result"] == "passed"}
    items = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    assert events <= {one["position"] for one in items if one["type"] == "StepTaken"}
    return [(one["rule"], one["text"], one["result"]) for one in lines]


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
    server: Hooked,
    outside: HookServer,
    request: pytest.FixtureRequest,
    reply: Reply,
    text: str,
    tells_of_it: bool,
) -> None:
    outside.replies("subagentSpawning", reply)
    name = f"unbound-{request.node.callspec.id}".replace(" ", "-")
    run_id = server.refused(threaded(name), "thread_binding", text)
    server.comes_to(run_id, "undo:thread_binding:done")
    (undone,) = server.recorded(run_id, "EffectAttempted")
    assert undone["outcome"] == ("undone" if tells_of_it else "nothing_there")
    told = [(call.hook, call.key) for call in outside.calls()]
    spawning = ("subagentSpawning", f"{run_id}:thread_binding")
    failed = ("subagentEnded", f"{run_id}:thread_binding:undo")
    assert told == [spawning, failed] if tells_of_it else [spawning]
    if tells_of_it:
        event = outside.calls("subagentEnded")[0].event
        assert (event["reason"], event["outcome"]) == ("spawn-failed", "error")
        assert (event["error"], event["sendFarewell"]) == ("Session failed to start", True)


def test_a_channel_may_bind_no_sub_agents(server: Hooked, outside: HookServer) -> None:
    body = threaded("quiet")
    body["requester"]["channel"] = "quiet"
    run_id = server.refused(body, "thread_binding", NO_THREADS)
    assert outside.calls() == []
    assert server.steps(run_id)[-1] == "SpawnRefused"


def test_an_engine_that_does_not_prepare_undoes_the_thread(
    server: Hooked, outside: HookServer
) -> None:
    outside.replies("prepareSubagentSpawn", Reply(503))
    outside.replies("rollbackSubagentSpawn", Reply(410))
    text = f"{ENGINE}the hook answered HTTP 503"
    run_id = server.refused(threaded("engine"), "context_engine", text)
    server.comes_to(run_id, "undo:thread_binding:done")
    assert explained(server, run_id) == [
        ("thread_binding", "a thread is bound for the child", "passed"),
        ("context_engine", "the context engine did not prepare the child", "refused"),
    ]
    undone = server.recorded(run_id, "EffectAttempted")
    hows = {one["name"]: one["outcome"] for one in undone}
    assert hows == {"context_engine": "nothing_there", "thread_binding": "undone"}
    assert [(call.hook, call.key.partition(":")[2]) for call in outside.calls()] == [
        ("subagentSpawning", "thread_binding"),
        ("prepareSubagentSpawn", "context_engine"),
        ("rollbackSubagentSpawn", "context_engine:undo"),
        ("subagentEnded", "thread_binding:undo"),
    ]
    assert outside.calls("subagentEnded")[0].event["accountId"] == "acct"


def test_what_an_engine_prepared_is_rolled_back_when_the_child_never_starts(
    server: Hooked, outside: HookServer
) -> None:
    outside.replies("prepareSubagentSpawn", Reply(204), Reply(said={"rollback": "take-back-7"}))
    outside.replies("rollbackSubagentSpawn", Reply(500), Reply(204))
    run_id = server.stopped_in_its_lane(threaded("rolled-back", runTimeoutSeconds=9))
    story = server.comes_to(run_id, "undo:thread_binding:done", "hook:subagentSpawned:done")
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


def test_an_engine_that_wants_no_rollback_is_not_asked_for_one(
    server: Hooked, outside: HookServer
) -> None:
    outside.replies("prepareSubagentSpawn", Reply(said={"rollback": False}))
    run_id = server.stopped_in_its_lane(threaded("kept", thread=False))
    server.comes_to(run_id, "hook:subagentEnded:done")
    assert outside.calls("rollbackSubagentSpawn") == []
    (ended,) = (call for call in outside.calls("subagentEnded") if run_id in call.key)
    assert (ended.event["reason"], ended.event["outcome"]) == ("subagent-killed", "killed")


def test_a_spawn_that_is_stopped_while_its_thread_is_bound_gives_it_up(
    server: Hooked, outside: HookServer
) -> None:
    outside.replies("subagentSpawning", Reply(said=BOUND, is_held=True))
    body = threaded("given-up")
    aside = server.spawned_aside(**body)
    (spawning,) = outside.called("subagentSpawning")
    run_id = server.being_prepared(body["requester"]["sessionKey"])
    assert server.http.post(f"/v1/runs/{run_id}/stop", json={}).is_success
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0
    outside.let_go()
    answer = aside.answer()
    assert answer is not None
    assert (answer.status_code, answer.json()["rule"]) == (422, "stopped")
    story = server.comes_to(run_id, "undo:thread_binding:done")
    assert story[-3:] == ["StepBegun:thread_binding", "SpawnRefused", "undo:thread_binding:done"]
    # It may have been bound, so it is told once the hook can answer no more.
    assert [call.key for call in outside.calls()] == [
        spawning.key,
        f"{run_id}:thread_binding:undo",
    ]
