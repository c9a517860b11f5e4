"""Runs that wait for others: what they are told of an end, and a server that resumes them."""

from typing import Any

import pytest

from tests.support.servers.hook_server import HookServer
from tests.support.servers.hooked import reply, staying, threaded
from tests.support.servers.server import Server


def ended_in_vain(server: Server, name: str, body: dict[str, Any]) -> tuple[str, str]:
    """A run with this request, once it ended because what it waited for was stopped; and its text
    in the record."""
    held = server.accepted(**threaded(name, agentId="lingerer", label="held", thread=False))
    server.began(held)
    late = server.accepted(**{**body, "dependsOn": ["held"]})
    assert server.run(late)["status"] == "waiting"
    assert server.http.post(f"/v1/runs/{held}/stop", json={"reason": "enough"}).is_success
    run = server.run(late, "announced")
    assert (run["outcome"], run["startedAt"]) == ("error", None)
    text = f'it was not started: "held" (run {held}), which it depends on, was stopped'
    assert run["error"] == text
    return late, text


def told(server: Server, name: str, run_id: str) -> list[str]:
    """The texts in the inbox about a run."""
    inbox = server.inbox(f"agent:main:{name}")
    return [one["text"] for one in inbox if one["runId"] == run_id]


@pytest.mark.server
def test_a_run_in_a_thread_is_announced_told_of_and_put_away(
    server: Server, outside: HookServer
) -> None:
    late, text = ended_in_vain(server, "waits", threaded("waits", cleanup="delete"))
    story = server.wait_steps(late, "RunArchived")
    assert "RunQueued" not in story
    assert "RunStarted" not in story
    assert "hook:subagentSpawned:done" not in story
    (announced,) = told(server, "waits", late)
    assert text in announced
    assert "Status: error" in announced
    # Whoever bound the thread is told once that there is no child.
    ends = [one for one in outside.calls("subagentEnded") if one.event["runId"] == late]
    assert len(ends) == 1


@pytest.mark.server
def test_a_run_without_a_thread_is_told_of_with_its_error(
    server: Server, outside: HookServer
) -> None:
    body = threaded("plainly", thread=False, cleanup="delete")
    late, text = ended_in_vain(server, "plainly", body)
    server.wait_steps(late, "hook:subagentEnded:done", "RunArchived")
    assert [one for one in outside.calls("subagentSpawned") if one.event["runId"] == late] == []
    (ended,) = [one for one in outside.calls("subagentEnded") if one.event["runId"] == late]
    assert (ended.event["outcome"], ended.event["error"]) == ("error", text)


@pytest.mark.server
def test_whose_runtime_would_have_brought_the_result_is_announced_all_the_same(
    server: Server,
) -> None:
    late, text = ended_in_vain(server, "carries", staying("carries", agentId="carrier"))
    (announced,) = told(server, "carries", late)
    assert text in announced


@pytest.mark.server
def test_a_session_that_stays_takes_messages_afterwards(server: Server) -> None:
    late, _ = ended_in_vain(server, "stays", staying("stays"))
    again = server.continued(late, "and now?")
    assert reply(server, again)["message"].endswith("and now?")
    assert reply(server, again)["history"] == []


def accepted_without_thread(
    server: Server, name: str, label: str, agent_id: str = "plain", **more: Any
) -> str:
    return server.accepted(**threaded(name, agentId=agent_id, label=label, thread=False, **more))


@pytest.mark.server
def test_what_ended_with_its_server_is_settled_by_the_next_one(server: Server) -> None:
    held = accepted_without_thread(server, "shut", "held", "lingerer")
    server.began(held)
    vain = accepted_without_thread(server, "shut", "vain", dependsOn=["held"])
    behind = accepted_without_thread(server, "shut", "behind", dependsOn=["vain"])
    any_end = accepted_without_thread(
        server, "shut", "any", dependsOn=[{"run": "held", "require": "ended"}]
    )
    server.stop()
    with server.twin() as other:
        assert other.run(held, "announced")["error"].startswith("interrupted")
        assert other.run(vain, "announced")["error"] == (
            f'it was not started: "held" (run {held}), which it depends on, ended as error'
        )
        assert f'"vain" (run {vain})' in other.run(behind, "announced")["error"]
        assert other.run(any_end, "announced")["outcome"] == "success"
        assert other.session("agent:main:shut")["activeChildren"] == 0
        told = {one["runId"] for one in other.inbox("agent:main:shut")}
        assert told == {held, vain, behind, any_end}


@pytest.mark.server
def test_nobody_waits_for_ever_with_one_slot_for_all(server: Server) -> None:
    """Those in line hold no slot that one before them needs, whoever was asked for first."""
    held = accepted_without_thread(server, "slot", "r0", "lingerer")
    server.began(held)
    runs = [held]
    for number in range(1, 5):
        runs.append(
            accepted_without_thread(server, "slot", f"r{number}", dependsOn=[f"r{number - 1}"])
        )
    # It is in line for the one slot before any of those that wait.
    beside = accepted_without_thread(server, "slot-beside", "beside")
    server.let_go(held)
    ends = [server.run(run_id, "announced") for run_id in (*runs, beside)]
    assert {one["outcome"] for one in ends} == {"success"}
    started = [one["startedAt"] for one in ends[:-1]]
    assert started == sorted(started)
