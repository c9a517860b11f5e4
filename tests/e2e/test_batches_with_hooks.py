"""Threads and contexts for a batch: asked for each run once, and undone when one is refused."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import ASKING, BOUND, Hooked, all_of, hooked_on, threaded

pytestmark = pytest.mark.server

NO_RIGHTS = Reply(said={"status": "error", "error": "no rights here"})


@pytest.fixture(scope="module")
def server(databases: Databases, outside: HookServer) -> Iterator[Hooked]:
    hooks = all_of(outside)
    with hooked_on(databases, hooks) as server:
        yield server


@pytest.fixture(autouse=True)
def anew(outside: HookServer) -> Iterator[None]:
    outside.forget()
    outside.replies("subagentSpawning", Reply(said=BOUND))
    yield
    outside.let_go()


def batch(name: str) -> dict[str, Any]:
    """Three children in threads."""
    return {**threaded(name), "task": ["a", "b", "c"], "parallel": True, "label": name}


def runs_of(server: Hooked, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs of the request's session, in their order."""
    query = {"requester": body["requester"]["sessionKey"]}
    items = server.http.get("/v1/runs", params=query).json()["items"]
    return sorted(items, key=lambda one: str(one["label"]))


def must_be_asked_once(outside: HookServer, hook: str) -> None:
    """No key was used twice."""
    keys = Counter(call.key for call in outside.calls(hook))
    assert set(keys.values()) <= {1}, keys


def test_each_child_of_a_batch_gets_a_thread(server: Hooked, outside: HookServer) -> None:
    answer = server.spawn(**batch("each-a-thread"))
    assert answer.status_code == 201, answer.text
    for one in answer.json()["runs"]:
        assert "StepTaken:thread_binding" in server.steps(one["runId"])
        server.run(one["runId"], "announced")
    for hook in ASKING:
        assert len(outside.calls(hook)) == 3
        must_be_asked_once(outside, hook)


@pytest.mark.parametrize(
    ("hook", "reply", "rule"),
    [
        ("subagentSpawning", NO_RIGHTS, "thread_binding"),
        ("prepareSubagentSpawn", Reply(503), "context_engine"),
    ],
)
def test_what_was_made_for_the_others_is_undone(
    server: Hooked, outside: HookServer, hook: str, reply: Reply, rule: str
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
        server.comes_to(one["runId"], *undone)
        assert server.run(one["runId"])["undoing"] == []
    must_be_asked_once(outside, hook)


def test_a_hook_that_hangs_does_not_hold_up_the_refusal(
    server: Hooked, outside: HookServer
) -> None:
    held = Reply(said=BOUND, is_held=True)
    outside.replies("subagentSpawning", held, NO_RIGHTS, held)
    body = batch("one-hangs")
    assert server.spawn(**body).json()["rule"] == "thread_binding"
    outside.let_go()
    for one in runs_of(server, body):
        if "StepBegun:thread_binding" in server.steps(one["runId"]):
            server.comes_to(one["runId"], "undo:thread_binding:done")
