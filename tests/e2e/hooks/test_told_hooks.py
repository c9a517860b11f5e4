"""Hooks about children and delivery targets, also those that hang."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked import hooked, threaded
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server, serving
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill

TOLD = "subagentSpawned"
ASKED = "subagentDeliveryTarget"
LEASE = timedelta(seconds=QUICK_LEASE_SECONDS)
HOOK_SECONDS = 60


@pytest.fixture(scope="module", autouse=True)
def asked_for_targets(one_server: Server, one_outside: HookServer) -> Iterator[None]:
    hook = one_outside.hooks(ASKED, timeoutSeconds=1)
    one_server.ensure_running()
    with one_server.configured(lambda config: config["spawnlog"]["hooks"].update(hook)):
        yield


def spawned(server: Server, name: str, **body: object) -> str:
    """Spawn a child in no thread. Return its run."""
    return server.accepted(**threaded(name, thread=False, **body))


def test_failing_hook_is_told_again_until_it_takes_it(server: Server, outside: HookServer) -> None:
    outside.replies(TOLD, Reply(500), Reply(is_held=True), Reply(204))
    run_id = spawned(server, "again")
    story = server.wait_steps(run_id, "hook:subagentEnded:done")
    assert [text for text in story if text.startswith("hook:")] == [
        *[f"hook:{TOLD}:failed"] * 2,
        f"hook:{TOLD}:done",
        "hook:subagentEnded:done",
    ]
    third = server.payloads(run_id, "EffectAttempted")[2]
    assert (third["attempt"], third["statusCode"]) == (3, 204)
    assert [call.key for call in outside.calls(TOLD)] == [f"{run_id}:{TOLD}"] * 3


@pytest.mark.parametrize(
    ("reply", "to"),
    [
        (Reply(body={"origin": {"to": " elsewhere ", "x": 1}}), "elsewhere"),
        (Reply(is_held=True), "channel:1"),
    ],
    ids=["answers", "slow"],
)
def test_hook_says_where_result_goes(
    server: Server, outside: HookServer, request: pytest.FixtureRequest, reply: Reply, to: str
) -> None:
    outside.replies(ASKED, reply)
    name = f"target-{request.node.callspec.id}"
    run_id = spawned(server, name)
    server.run(run_id, "announced")
    (item,) = wait_for("the announcement", lambda: server.inbox(f"agent:main:{name}"))
    origin = {"channel": "discord", "accountId": "acct", "to": to, "threadId": 7}
    assert item["origin"] == origin
    (call,) = outside.calls(ASKED)
    assert (call.event["childRunId"], call.event["requesterOrigin"]) == (
        run_id,
        {**origin, "to": "channel:1"},
    )


@pytest.fixture
def patient_hooks(server: Server, outside: HookServer) -> Iterator[None]:
    hooks = outside.hooks(TOLD, ASKED, timeoutSeconds=HOOK_SECONDS)
    with server.configured(lambda config: config["spawnlog"]["hooks"].update(hooks)):
        yield


@pytest.mark.parametrize("hook", nightly_but([TOLD, ASKED], [ASKED]))
def test_other_server_takes_over_after_one_lease(
    server: Server, outside: HookServer, patient_hooks: None, hook: str
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
    server.wait_steps(run_id, f"hook:{TOLD}:done", "RunAnnounced")
    assert len(outside.calls(hook)) == 2


@pytest.mark.parametrize("hook", nightly_but([TOLD, ASKED], [ASKED]))
def test_nobody_else_asks_while_answer_takes_longer_than_lease(
    server: Server, outside: HookServer, patient_hooks: None, hook: str
) -> None:
    def claimed_until() -> datetime | None:
        query = "SELECT until FROM work_claims WHERE run_id = %s"
        rows = server.ask_database(query, run_id)
        return rows[0][0] if rows else None

    outside.replies(hook, Reply(is_held=True))
    run_id = spawned(server, f"slow-{hook}")
    outside.called(hook)
    first = wait_for("the claim", claimed_until)
    with server.twin():
        wait_for(
            "a claim of more than two leases",
            lambda: (until := claimed_until()) is not None and until > first + 2 * LEASE,
        )
        assert len(outside.calls(hook)) == 1
        outside.let_go()
        server.wait_steps(run_id, f"hook:{TOLD}:done", "RunAnnounced")
    assert len(outside.calls(hook)) == 1


def test_hanging_hook_holds_up_neither_other_runs_nor_end(
    databases: Databases, outside: HookServer
) -> None:
    hooks = outside.hooks(ASKED, timeoutSeconds=HOOK_SECONDS)
    outside.replies(ASKED, Reply(is_held=True))
    with serving(databases, lambda folder: hooked(folder, hooks), dies=True) as server:
        slow = spawned(server, "slow")
        outside.called(ASKED)
        outside.replies(ASKED, Reply(204))
        quick = spawned(server, "quick")
        assert server.run(quick, "announced")["outcome"] == "success"
        assert server.run(slow)["stage"] == "ended"
        assert server.stop() == 0
        assert "announce: due work is left for the next start" in server.log()


def test_run_that_waited_in_vain_is_told_of_once(server: Server, outside: HookServer) -> None:
    held = spawned(server, "waits", agentId="lingerer", label="held")
    server.began(held)
    late = server.accepted(**threaded("waits", cleanup="delete", dependsOn=["held"]))
    assert server.run(late)["status"] == "waiting"
    server.stop_run(held)
    story = server.wait_steps(late, "RunArchived")
    assert not {"RunQueued", "RunStarted", f"hook:{TOLD}:done"} & set(story)
    (text,) = [run["text"] for run in server.inbox("agent:main:waits") if run["runId"] == late]
    assert f'it was not started: its dependency "held" (run {held}) was stopped' in text
    # The hook that bound the thread is notified once that there is no child.
    ends = [call for call in outside.calls("subagentEnded") if call.event["runId"] == late]
    assert len(ends) == 1


def test_next_server_settles_those_that_wait(server: Server) -> None:
    held = spawned(server, "shut", label="held", agentId="lingerer")
    server.began(held)
    vain = spawned(server, "shut", label="vain", dependsOn=["held"])
    behind = spawned(server, "shut", label="behind", dependsOn=["vain"])
    ended = {"run": "held", "require": "ended"}
    any_end = spawned(server, "shut", label="any", dependsOn=[ended])
    server.stop()
    with server.twin() as second_server:
        assert second_server.run(held, "announced")["error"].startswith("interrupted")
        assert second_server.run(vain, "announced")["error"] == (
            f'it was not started: its dependency "held" (run {held}) ended as error'
        )
        assert f'"vain" (run {vain})' in second_server.run(behind, "announced")["error"]
        assert second_server.run(any_end, "announced")["outcome"] == "success"
        assert second_server.session("agent:main:shut")["activeChildren"] == 0
        run_ids = {run["runId"] for run in second_server.inbox("agent:main:shut")}
        assert run_ids == {held, vain, behind, any_end}
