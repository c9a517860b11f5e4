"""Who asked for a spawn hears at once that it was stopped, however long a hook may still take."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import ASKING, BOUND, Hooked, hooked_on, threaded

pytestmark = pytest.mark.server

HOOK_SECONDS = 60
AT_ONCE_SECONDS = 20.0


@pytest.fixture(scope="module")
def server(databases: Databases, outside: HookServer) -> Iterator[Hooked]:
    hooks = outside.hooks(*ASKING, timeoutSeconds=HOOK_SECONDS)
    with hooked_on(databases, hooks) as server:
        yield server


@pytest.mark.parametrize(
    ("hook", "step"),
    [*zip(ASKING, ("thread_binding", "context_engine"), strict=True)],
)
def test_a_spawn_that_is_stopped_while_a_hook_is_asked_is_answered_at_once(
    server: Hooked, outside: HookServer, hook: str, step: str
) -> None:
    outside.forget()
    outside.replies("subagentSpawning", Reply(said=BOUND))
    outside.replies(hook, Reply(said=BOUND, is_held=True))
    body = threaded(f"stopped-at-{step}".replace("_", "-"))
    aside = server.spawned_aside(**body)
    outside.called(hook)
    run_id = server.being_prepared(body["requester"]["sessionKey"])
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
