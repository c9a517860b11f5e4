"""Messages that race each other, a stop and the time to be put away, also on two servers."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import httpx2
import pytest

from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import BOUND, threaded
from tests.support.servers.talking_server import Talking, ends_of, staying
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.kill

RACERS = 20
ROUNDS, ROUNDS_OF_THE_GATE = 6, 2


@pytest.fixture
def server(one_talking: Talking, outside: HookServer) -> Iterator[Talking]:
    outside.forget()
    outside.replies("subagentSpawning", Reply(said=BOUND))
    one_talking.alive()
    yield one_talking
    outside.let_go()


@pytest.fixture(scope="module")
def twin(one_talking: Talking) -> Iterator[Talking]:
    """Another server on the same log."""
    with one_talking.twin() as other:
        yield other


def raced(*acts: Any) -> list[httpx2.Response]:
    """The answers to requests that are sent at the same moment."""
    barrier = Barrier(len(acts))

    def act(one: Any) -> httpx2.Response:
        barrier.wait(30)
        answer: httpx2.Response = one()
        return answer

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(act, acts))


def one_was_taken(server: Talking, key: str, first: str, answers: list[httpx2.Response]) -> str:
    """Of messages to a session at rest one was taken, and the others wait; gives its run."""
    codes = Counter(one.status_code for one in answers)
    assert codes == {201: 1, 202: len(answers) - 1}
    (taken,) = [one.json()["runId"] for one in answers if one.status_code == 201]
    assert server.runs_of(key) == [taken, first]
    waiting = [one.json()["runId"] for one in answers if one.status_code == 202]
    queue = [one["runId"] for one in server.session(key)["queue"]]
    assert sorted(queue) == sorted(waiting)
    places = [one.json()["place"] for one in answers if one.status_code == 202]
    assert sorted(places) == list(range(1, len(answers)))
    return str(taken)


def test_of_many_messages_at_once_one_is_taken_and_the_others_wait(server: Talking) -> None:
    first = server.asked_for(staying("racing", agentId="lingerer"))
    server.began(first)
    server.let_go(first)
    key = server.run(first, "announced")["childSessionKey"]
    answers = raced(
        *(lambda n=n: server.send(first, f"message {n}", key=f"racer-{n}") for n in range(RACERS))
    )
    taken = one_was_taken(server, key, first, answers)
    server.began(taken)
    assert server.session(key)["runId"] == taken
    # Each has its answer under its key, the one that was taken and those that wait.
    for number, answer in enumerate(answers):
        again = server.send(first, f"message {number}", key=f"racer-{number}")
        assert (again.status_code, again.json()) == (answer.status_code, answer.json())
    (number,) = [n for n, one in enumerate(answers) if one.status_code == 201]
    assert server.run(taken)["task"] == f"message {number}"
    server.closes(key)
    for run_id in (taken, first):
        assert server.run(run_id, "archived")["stage"] == "archived"
    assert server.runs_of(key) == [taken, first]
    assert server.session("agent:main:racing")["activeChildren"] == 0


def test_of_many_messages_to_two_servers_one_is_taken(server: Talking, twin: Talking) -> None:
    first = server.asked_for(staying("two", agentId="lingerer"))
    server.began(first)
    server.let_go(first)
    key = twin.run(first, "announced")["childSessionKey"]
    both = (server, twin)
    answers = raced(*(lambda n=n: both[n % 2].send(first, f"message {n}") for n in range(RACERS)))
    taken = one_was_taken(server, key, first, answers)
    server.began(taken)
    # Whoever holds the run: there is room for one more, and for no other.
    assert twin.send(first, "the last one").status_code == 202
    for one in both:
        answer = one.send(first, "not now")
        assert (answer.status_code, answer.json()["code"]) == (409, "queue_full")
    assert server.closes(key)["runId"] == taken
    for run_id in (taken, first):
        assert twin.run(run_id, "archived")["stage"] == "archived"
    assert twin.session(key)["queue"] == []
    assert twin.send(first, "too late").json()["code"] == "session_closed"


def test_the_same_message_to_two_servers_is_one(server: Talking, twin: Talking) -> None:
    first = server.asked_for(staying("same"))
    key = server.run(first, "announced")["childSessionKey"]
    both = (server, twin)
    answers = raced(*(lambda n=n: both[n % 2].send(first, "once", key="same") for n in range(8)))
    taken = {one.json()["runId"] for one in answers if one.status_code == 201}
    assert len(taken) == 1
    assert {one.status_code for one in answers} <= {201, 409}
    refused = {one.json()["code"] for one in answers if one.status_code == 409}
    assert refused <= {"idempotency_in_flight"}
    (run_id,) = taken
    server.said(run_id)
    assert server.runs_of(key) == [run_id, first]


@pytest.mark.parametrize("number", nightly_but(range(ROUNDS), range(ROUNDS_OF_THE_GATE)))
def test_a_message_and_a_stop_leave_a_closed_session_with_nothing_at_work(
    server: Talking, outside: HookServer, number: int
) -> None:
    name = f"stopped-{number}"
    first = server.asked_for(staying(name))
    key = server.run(first, "announced")["childSessionKey"]
    sent, stopped = raced(
        lambda: server.send(first, "and then?"),
        lambda: server.http.post(f"/v1/sessions/{key}/stop", json={}),
    )
    assert stopped.status_code == 200
    assert stopped.json()["closed"] is True
    runs = server.runs_of(key)
    if sent.status_code == 201:
        # It was faster, and so it was stopped, unless it was over by then.
        assert runs == [sent.json()["runId"], first]
    else:
        assert (sent.status_code, sent.json()["code"]) == (409, "session_closed")
        assert runs == [first]
    assert stopped.json()["runId"] == runs[0]
    for run_id in runs:
        assert server.run(run_id, "archived")["stage"] == "archived"
    session = server.session(key)
    assert (session["stage"], session["pendingDescendants"]) == ("closed", 0)
    assert server.session(f"agent:main:{name}")["activeChildren"] == 0
    server.comes_to(runs[0], "hook:subagentEnded:done")
    assert len(ends_of(outside, key)) == 1


@pytest.mark.parametrize("number", nightly_but(range(ROUNDS), range(ROUNDS_OF_THE_GATE)))
def test_a_message_to_a_session_that_is_put_away_at_once_is_taken_or_is_too_late(
    server: Talking, number: int
) -> None:
    name = f"deleted-{number}"
    first = server.asked_for(threaded(name, agentId="talker", cleanup="delete"))
    key = server.run(first)["childSessionKey"]
    sent = server.send(first, "and then?")
    if sent.status_code in (201, 202):
        second = server.taken(sent.json()["runId"])
        assert server.said(second)["history"]
        assert server.runs_of(key) == [second, first]
    else:
        assert (sent.status_code, sent.json()["code"]) == (409, "session_closed")
        assert server.runs_of(key) == [first]
    runs = server.runs_of(key)
    for run_id in runs:
        assert server.run(run_id, "archived")["outcome"] == "success"
    assert server.session(key)["stage"] == "closed"
    assert server.session(f"agent:main:{name}")["activeChildren"] == 0


def test_a_message_to_the_server_that_lives_goes_on_where_the_other_was_killed(
    server: Talking, twin: Talking
) -> None:
    first = server.asked_for(staying("orphan", agentId="lingerer"))
    server.began(first)
    server.let_go(first)
    key = server.run(first, "announced")["childSessionKey"]
    server.is_to_die("after MessageReceived")
    server.send_aside(first, "and then?", key="orphan").answer()
    server.has_died()
    told = twin.send(first, "and then?", key="orphan")
    assert (told.status_code, told.headers["Idempotent-Replayed"]) == (201, "true")
    second = told.json()["runId"]
    twin.began(second)
    twin.let_go(second)
    assert twin.run(second, "announced")["outcome"] == "success"
    assert twin.closes(key)["runId"] == second
    for run_id in (second, first):
        assert twin.run(run_id, "archived")["stage"] == "archived"
