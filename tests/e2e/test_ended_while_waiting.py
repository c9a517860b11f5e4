"""A run that ends because one that it waits for failed: requester and hooks are told why."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import BOUND, threaded
from tests.support.servers.talking_server import Talking, staying

pytestmark = pytest.mark.server


@pytest.fixture
def server(one_talking: Talking, outside: HookServer) -> Iterator[Talking]:
    outside.forget()
    outside.replies("subagentSpawning", Reply(said=BOUND))
    yield one_talking
    outside.let_go()


def ended_in_vain(server: Talking, name: str, body: dict[str, Any]) -> tuple[str, str]:
    """A run with this request, once it ended because what it waited for was stopped; and its text
    in the record."""
    held = server.asked_for(threaded(name, agentId="lingerer", label="held", thread=False))
    server.began(held)
    late = server.asked_for({**body, "dependsOn": ["held"]})
    assert server.run(late)["status"] == "waiting"
    assert server.http.post(f"/v1/runs/{held}/stop", json={"reason": "enough"}).is_success
    run = server.run(late, "announced")
    assert (run["outcome"], run["startedAt"]) == ("error", None)
    text = f'it was not started: "held" (run {held}), which it depends on, was stopped'
    assert run["error"] == text
    return late, text


def told(server: Talking, name: str, run_id: str) -> list[str]:
    """The texts in the inbox about a run."""
    inbox = server.inbox(f"agent:main:{name}")
    return [one["text"] for one in inbox if one["runId"] == run_id]


def test_a_run_in_a_thread_is_announced_told_of_and_put_away(
    server: Talking, outside: HookServer
) -> None:
    late, text = ended_in_vain(server, "waits", threaded("waits", cleanup="delete"))
    story = server.comes_to(late, "RunArchived")
    assert "RunQueued" not in story
    assert "RunStarted" not in story
    assert "hook:subagentSpawned:done" not in story
    (announced,) = told(server, "waits", late)
    assert text in announced
    assert "Status: error" in announced
    # Whoever bound the thread is told once that there is no child.
    ends = [one for one in outside.calls("subagentEnded") if one.event["runId"] == late]
    assert len(ends) == 1


def test_a_run_without_a_thread_is_told_of_with_its_error(
    server: Talking, outside: HookServer
) -> None:
    body = threaded("plainly", thread=False, cleanup="delete")
    late, text = ended_in_vain(server, "plainly", body)
    server.comes_to(late, "hook:subagentEnded:done", "RunArchived")
    assert [one for one in outside.calls("subagentSpawned") if one.event["runId"] == late] == []
    (ended,) = [one for one in outside.calls("subagentEnded") if one.event["runId"] == late]
    assert (ended.event["outcome"], ended.event["error"]) == ("error", text)


def test_whose_runtime_would_have_brought_the_result_is_announced_all_the_same(
    server: Talking,
) -> None:
    late, text = ended_in_vain(server, "carries", staying("carries", agentId="carrier"))
    (announced,) = told(server, "carries", late)
    assert text in announced


def test_a_session_that_stays_takes_messages_afterwards(server: Talking) -> None:
    late, _ = ended_in_vain(server, "stays", staying("stays"))
    again = server.goes_on(late, "and now?")
    assert server.said(again)["message"].endswith("and now?")
    assert server.said(again)["history"] == []
