"""A child that is bound to a thread stays: messages continue its session until that is stopped."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import AT_THE_THREAD, BOUND
from tests.support.servers.talking_server import Talking, staying

pytestmark = pytest.mark.server


@pytest.fixture
def server(one_talking: Talking, outside: HookServer) -> Iterator[Talking]:
    outside.forget()
    outside.replies("subagentSpawning", Reply(said=BOUND))
    yield one_talking
    outside.let_go()


def test_a_session_goes_on_with_messages_until_it_is_stopped(
    server: Talking, outside: HookServer
) -> None:
    first = server.asked_for(staying("reader", task="the first chapter"))
    assert server.said(first)["persistent"]
    child = server.run(first)["childSessionKey"]
    assert server.session(child)["stage"] == "open"
    second = server.goes_on(first, "the second chapter")
    said = server.said(second)
    assert (said["message"], len(said["history"])) == ("the second chapter", 1)
    # Any run of the session will do.
    third = server.goes_on(first, "the third chapter")
    assert server.said(third)["history"][1:] == ["the second chapter"]
    run = server.run(third)
    assert (run["continues"], run["childSessionKey"]) == (second, child)
    assert server.steps(third)[:4] == [
        "MessageReceived",
        "ContinuationPlanned",
        "RunQueued",
        "RunClaimed",
    ]
    items = server.inbox("agent:main:reader")
    assert [one["runId"] for one in items] == [first, second, third]
    assert server.session("agent:main:reader")["activeChildren"] == 0
    assert [call.hook for call in outside.calls()].count("subagentSpawned") == 1
    assert not outside.calls("subagentEnded")
    assert server.closes(child)["closed"]
    for run_id in (third, second, first):
        server.comes_to(run_id, "RunArchived")
    (ended,) = outside.calls("subagentEnded")
    assert (ended.event["runId"], ended.event["reason"]) == (third, "session-delete")
    assert server.session(child)["stage"] == "closed"
    answer = server.send(first, "too late")
    assert (answer.status_code, answer.json()["code"]) == (409, "session_closed")
    assert items[0]["origin"] == AT_THE_THREAD


def test_a_session_that_nobody_speaks_to_is_closed_when_its_idle_hours_are_over(
    server: Talking,
) -> None:
    with server.configured(closes_when_idle):
        first = server.asked_for(staying("idle"))
        run = server.run(first, "archived")
    assert server.session(run["childSessionKey"])["stage"] == "closed"
    assert server.send(first, "too late").json()["code"] == "session_closed"


def closes_when_idle(config: dict[str, Any]) -> None:
    """After a second."""
    bindings = config.setdefault("session", {}).setdefault("threadBindings", {})
    bindings["idleHours"] = 1 / 3600
