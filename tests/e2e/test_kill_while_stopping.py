"""kill -9 while many are being stopped: the same request, sent again, stops those that are left."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import BOUND, threaded
from tests.support.servers.running_server import wait_for
from tests.support.servers.talking_server import Talking, staying

pytestmark = pytest.mark.kill


@pytest.fixture
def server(one_talking: Talking, outside: HookServer) -> Iterator[Talking]:
    outside.forget()
    outside.replies("subagentSpawning", Reply(said=BOUND))
    one_talking.alive()
    yield one_talking
    outside.let_go()


def post(server: Talking, path: str, key: str) -> httpx2.Response:
    return server.http.post(path, json={}, headers={"Idempotency-Key": key})


def killed(server: Talking, moment: str, path: str, key: str) -> None:
    """It dies in the middle of a stop, and is started again."""
    server.is_to_die(moment)
    with contextlib.suppress(httpx2.TransportError):
        post(server, path, key)
    server.has_died()
    server.again()


def occupied(server: Talking, name: str) -> str:
    """The lane of depth 2 is taken by the child of somebody else, which is stopped by its id."""
    parent = server.asked_for(staying(name, agentId="boss", task="occupy"))
    child = str(server.run(parent, "ended")["resultText"])
    server.began(child)
    return child


def test_the_children_of_a_root_session_are_stopped_all_the_same(server: Talking) -> None:
    body = threaded("root-killed", agentId="waiter")
    first, second = server.asked_for(body), server.asked_for(body)
    server.began(first)
    path = "/v1/sessions/agent:main:root-killed/stop"
    killed(server, "after StopRequested", path, "root")
    told = post(server, path, "root")
    assert told.status_code == 200, told.text
    for run_id in (first, second):
        run = server.run(run_id, "announced")
        assert run["outcome"] == "stopped", run_id
    # Once it was answered, a repeat stops nobody any more.
    third = server.asked_for(body)
    server.began(third)
    again = post(server, path, "root")
    assert (again.content, again.headers["Idempotent-Replayed"]) == (told.content, "true")
    assert server.run(third)["stage"] == "started"
    server.let_go(third)
    assert server.run(third, "announced")["outcome"] == "success"


@pytest.mark.nightly
def test_those_below_a_session_are_stopped_all_the_same(server: Talking) -> None:
    other = occupied(server, "occupied")
    first = server.asked_for(staying("below", agentId="boss", task="wait"))
    below = str(server.run(first, "ended")["resultText"])
    assert server.run(below)["stage"] == "queued"
    key = server.run(first)["childSessionKey"]
    path = f"/v1/sessions/{key}/stop"
    killed(server, "after SessionClosed", path, "below")
    told = post(server, path, "below")
    assert (told.json()["closed"], told.json()["runId"]) == (True, first)
    assert server.run(below, "announced")["outcome"] == "stopped"
    assert server.run(first, "archived")["outcome"] == "success"
    assert server.run(other, "announced")["outcome"] in ("error", "success")


@pytest.mark.nightly
def test_those_below_a_run_are_stopped_all_the_same(server: Talking) -> None:
    other = occupied(server, "occupied-too")
    first = server.asked_for(staying("below-run", agentId="boss", task="wait"))
    below = str(server.run(first, "ended")["resultText"])
    assert server.run(below)["stage"] == "queued"
    path = f"/v1/runs/{first}/stop"
    # Its own stop changes nothing, that of the one below is not recorded.
    killed(server, "before RunEnded", path, "below-run")
    told = post(server, path, "below-run")
    assert told.json() == {"runId": first, "wasOver": True}
    assert server.run(below, "announced")["outcome"] == "stopped"
    server.run(other, "announced")


def test_a_session_that_is_half_put_away_takes_no_message(server: Talking) -> None:
    """It is about to be archived when the server dies, and nobody has come to it since."""
    body = threaded("half", agentId="boss", task="half", cleanup="delete")
    first = server.asked_for(body)
    below = str(server.run(first, "ended")["resultText"])
    server.note(f"{below}.began")
    server.is_to_die("before RunArchived")
    server.let_go(below)
    server.has_died()
    server.start()
    run = server.run(first)
    answer = server.send(first, "and then?")
    assert (answer.status_code, answer.json()["code"]) == (409, "session_closed")
    server.forget_the_dead(server.url)
    path = Path(server.run(first, "archived")["transcriptPath"])
    assert ".deleted." in path.name
    wait_for("the file", path.exists)
    assert server.runs_of(run["childSessionKey"]) == [first]
