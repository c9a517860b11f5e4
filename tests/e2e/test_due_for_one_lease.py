"""What is due is claimed for one lease, which is prolonged: who died is replaced after that,
however long a hook may take, and who lives has nobody beside it."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import Hooked, hooked_on, threaded
from tests.support.servers.mortal_server import QUICK_LEASE_SECONDS
from tests.support.servers.preparing_server import Porter
from tests.support.servers.running_server import wait_for
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.kill

HOOK_SECONDS = 60
TOLD = "subagentSpawned"
ASKED = "subagentDeliveryTarget"
LEASE = timedelta(seconds=QUICK_LEASE_SECONDS)


@pytest.fixture(scope="module")
def one_hooked(databases: Databases, outside: HookServer) -> Iterator[Hooked]:
    hooks = outside.hooks(TOLD, ASKED, timeoutSeconds=HOOK_SECONDS)
    with hooked_on(databases, hooks) as server:
        yield server


@pytest.fixture
def server(one_hooked: Hooked, outside: HookServer) -> Iterator[Hooked]:
    outside.forget()
    one_hooked.alive()
    yield one_hooked
    outside.let_go()


def spawned(server: Hooked, name: str) -> str:
    return server.asked_for(threaded(name, thread=False))


def twin_of(server: Hooked) -> Porter:
    """Another server with the same configuration."""
    assert server.config is not None
    config = json.loads(server.config.read_text("utf-8"))
    twin = Porter(server.data_dir, server.folder, server.database_url, config=config, order="twin")
    twin.log_path = server.log_path.with_name("twin.log")
    return twin


def claimed_until(server: Hooked, run_id: str) -> datetime | None:
    rows = server.places.ask("SELECT until FROM work_claims WHERE run_id = %s", run_id)
    return rows[0][0] if rows else None


@pytest.mark.parametrize("hook", nightly_but([TOLD, ASKED], [ASKED]))
def test_another_takes_over_after_one_lease_however_long_the_hook_may_take(
    server: Hooked, outside: HookServer, hook: str
) -> None:
    outside.replies(hook, Reply(is_held=True))
    run_id = spawned(server, f"killed-{hook}")
    outside.called(hook)
    server.kill()
    outside.replies(hook, Reply())
    server.start()
    # Far less than the hook may take.
    first, second = outside.called(hook, 2)
    assert first.key == second.key
    server.comes_to(run_id, "hook:subagentSpawned:done", "RunAnnounced")
    assert len(outside.calls(hook)) == 2


@pytest.mark.parametrize("hook", nightly_but([TOLD, ASKED], [ASKED]))
def test_nobody_else_asks_while_an_answer_takes_longer_than_a_lease(
    server: Hooked, outside: HookServer, hook: str
) -> None:
    outside.replies(hook, Reply(is_held=True))
    run_id = spawned(server, f"slow-{hook}")
    outside.called(hook)
    first = wait_for("the claim", lambda: claimed_until(server, run_id))
    with twin_of(server):

        def is_prolonged() -> bool:
            until = claimed_until(server, run_id)
            return until is not None and until > first + 2 * LEASE

        wait_for("a claim of more than two leases", is_prolonged)
        assert len(outside.calls(hook)) == 1
        outside.let_go()
        server.comes_to(run_id, "hook:subagentSpawned:done", "RunAnnounced")
    assert len(outside.calls(hook)) == 1
