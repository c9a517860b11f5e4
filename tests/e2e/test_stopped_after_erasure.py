"""Sessions whose texts were erased are stopped like others, but for the words."""

from collections.abc import Iterator

import pytest

from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import BOUND
from tests.support.servers.talking_server import Talking, staying

pytestmark = pytest.mark.server


@pytest.fixture
def server(one_talking: Talking, outside: HookServer) -> Iterator[Talking]:
    outside.forget()
    outside.replies("subagentSpawning", Reply(said=BOUND))
    yield one_talking
    outside.let_go()


def erase(server: Talking, run_id: str) -> None:
    server.erase_session(server.run(run_id)["sessionId"])


def test_a_session_that_waits_for_messages_is_closed(server: Talking) -> None:
    first = server.asked_for(staying("erased"))
    server.said(first)
    erase(server, first)
    key = server.run(first)["childSessionKey"]
    answer = server.closes(key)
    assert (answer["closed"], answer["wasOver"]) == (True, True)
    server.comes_to(first, "RunArchived")
    assert server.session(key)["stage"] == "closed"
    refused = server.send(first, "and then?")
    assert (refused.status_code, refused.json()["code"]) == (409, "session_closed")


def test_a_run_at_work_and_those_beside_it_are_stopped(server: Talking) -> None:
    requester = "agent:main:erased-at-work"
    runs = [
        server.asked_for(
            {"requester": {"sessionKey": requester}, "agentId": "lingerer", "label": f"at-{name}"}
        )
        for name in ("work", "rest")
    ]
    server.began(runs[0])
    erase(server, runs[0])
    stopped = server.http.post(f"/v1/sessions/{requester}/stop", json={"reason": "enough"})
    assert stopped.status_code == 200, stopped.text
    for run_id in runs:
        assert server.run(run_id, "announced")["outcome"] == "stopped"


def test_a_run_that_is_erased_while_it_waits_ends_and_says_how(server: Talking) -> None:
    requester = {"sessionKey": "agent:main:erased-while-it-waits"}
    held = server.asked_for({"requester": requester, "agentId": "lingerer", "label": "held"})
    server.began(held)
    late = server.asked_for({"requester": requester, "agentId": "talker", "dependsOn": ["held"]})
    assert server.run(late)["status"] == "waiting"
    erase(server, late)
    (server.folder / f"{held}.go").touch()
    assert server.run(late, "announced")["outcome"] == "error"
    events = server.http.get(f"/v1/runs/{late}/events").json()["items"]
    (ended,) = [one["payload"] for one in events if one["type"] == "RunEnded"]
    assert (ended["reason"], ended["error"]) == ("erased", None)
    assert "RunStarted" not in server.events(late)
