"""Messages that race each other, a stop or the archive, or whose server is killed."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx2
import pytest

from tests.support.servers.attached_files import ATTACHED, staged
from tests.support.servers.hook_server import HookServer
from tests.support.servers.hooked import ends_told, reply, staying, threaded
from tests.support.servers.server import Background, Server
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

RACERS = 20
ROUNDS, ROUNDS_OF_THE_GATE = 6, 2


@pytest.fixture
def twin(server: Server) -> Iterator[Server]:
    """Another server on the same log."""
    with server.twin() as other:
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


def one_was_taken(server: Server, key: str, first: str, answers: list[httpx2.Response]) -> str:
    """Of messages to a session at rest one was taken, and the others wait; gives its run."""
    codes = Counter(one.status_code for one in answers)
    assert codes == {201: 1, 202: len(answers) - 1}
    (taken,) = [one.json()["runId"] for one in answers if one.status_code == 201]
    assert server.session_runs(key) == [taken, first]
    waiting = [one.json()["runId"] for one in answers if one.status_code == 202]
    queue = [one["runId"] for one in server.session(key)["queue"]]
    assert sorted(queue) == sorted(waiting)
    places = [one.json()["place"] for one in answers if one.status_code == 202]
    assert sorted(places) == list(range(1, len(answers)))
    return str(taken)


@pytest.mark.kill
def test_of_many_messages_at_once_one_is_taken_and_the_others_wait(server: Server) -> None:
    first = server.accepted(**staying("racing", agentId="lingerer"))
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
    server.stop_session(key)
    for run_id in (taken, first):
        assert server.run(run_id, "archived")["stage"] == "archived"
    assert server.session_runs(key) == [taken, first]
    assert server.session("agent:main:racing")["activeChildren"] == 0


@pytest.mark.kill
def test_of_many_messages_to_two_servers_one_is_taken(server: Server, twin: Server) -> None:
    first = server.accepted(**staying("two", agentId="lingerer"))
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
    assert server.stop_session(key)["runId"] == taken
    for run_id in (taken, first):
        assert twin.run(run_id, "archived")["stage"] == "archived"
    assert twin.session(key)["queue"] == []
    assert twin.send(first, "too late").json()["code"] == "session_closed"


@pytest.mark.kill
def test_the_same_message_to_two_servers_is_one(server: Server, twin: Server) -> None:
    first = server.accepted(**staying("same"))
    key = server.run(first, "announced")["childSessionKey"]
    both = (server, twin)
    answers = raced(*(lambda n=n: both[n % 2].send(first, "once", key="same") for n in range(8)))
    taken = {one.json()["runId"] for one in answers if one.status_code == 201}
    assert len(taken) == 1
    assert {one.status_code for one in answers} <= {201, 409}
    refused = {one.json()["code"] for one in answers if one.status_code == 409}
    assert refused <= {"idempotency_in_flight"}
    (run_id,) = taken
    reply(server, run_id)
    assert server.session_runs(key) == [run_id, first]


@pytest.mark.kill
@pytest.mark.parametrize("number", nightly_but(range(ROUNDS), range(ROUNDS_OF_THE_GATE)))
def test_a_message_and_a_stop_leave_a_closed_session_with_nothing_at_work(
    server: Server, outside: HookServer, number: int
) -> None:
    name = f"stopped-{number}"
    first = server.accepted(**staying(name))
    key = server.run(first, "announced")["childSessionKey"]
    sent, stopped = raced(
        lambda: server.send(first, "and then?"),
        lambda: server.http.post(f"/v1/sessions/{key}/stop", json={}),
    )
    assert stopped.status_code == 200
    assert stopped.json()["closed"] is True
    runs = server.session_runs(key)
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
    server.wait_steps(runs[0], "hook:subagentEnded:done")
    assert len(ends_told(outside, key)) == 1


@pytest.mark.kill
@pytest.mark.parametrize("number", nightly_but(range(ROUNDS), range(ROUNDS_OF_THE_GATE)))
def test_a_message_to_a_session_that_is_put_away_at_once_is_taken_or_is_too_late(
    server: Server, number: int
) -> None:
    name = f"deleted-{number}"
    first = server.accepted(**threaded(name, agentId="talker", cleanup="delete"))
    key = server.run(first)["childSessionKey"]
    sent = server.send(first, "and then?")
    if sent.status_code in (201, 202):
        second = sent.json()["runId"]
        assert reply(server, second)["history"]
        assert server.session_runs(key) == [second, first]
    else:
        assert (sent.status_code, sent.json()["code"]) == (409, "session_closed")
        assert server.session_runs(key) == [first]
    runs = server.session_runs(key)
    for run_id in runs:
        assert server.run(run_id, "archived")["outcome"] == "success"
    assert server.session(key)["stage"] == "closed"
    assert server.session(f"agent:main:{name}")["activeChildren"] == 0


@pytest.mark.kill
def test_a_message_to_the_server_that_lives_goes_on_where_the_other_was_killed(
    server: Server, twin: Server
) -> None:
    first = server.accepted(**staying("orphan", agentId="lingerer"))
    server.began(first)
    server.let_go(first)
    key = server.run(first, "announced")["childSessionKey"]
    server.die_at("after MessageReceived")
    with suppress(httpx2.TransportError):
        server.send(first, "and then?", key="orphan")
    server.wait_death()
    told = twin.send(first, "and then?", key="orphan")
    assert (told.status_code, told.headers["Idempotent-Replayed"]) == (201, "true")
    second = told.json()["runId"]
    twin.began(second)
    twin.let_go(second)
    assert twin.run(second, "announced")["outcome"] == "success"
    assert twin.stop_session(key)["runId"] == second
    for run_id in (second, first):
        assert twin.run(run_id, "archived")["stage"] == "archived"


MESSAGE = "and then?"

# Of each, how the run that was sent for ends. It is announced in the transaction of its end.
MOMENTS = {
    "before MessageReceived": "success",
    "after MessageReceived": "success",
    "before RunClaimed": "success",
    "after RunClaimed": "success",
    "before RunStarted": "success",
    "after RunStarted": "error",
    "before RunEnded": "error",
    "after RunEnded": "success",
}
CLOSING = [
    "before SessionClosed",
    "after SessionClosed",
    "before RunArchived",
    "after RunArchived",
    "before hook:subagentEnded",
    "after hook:subagentEnded",
    "before EffectAttempted:hook:subagentEnded",
    "after EffectAttempted:hook:subagentEnded",
    "before undo:attachments",
    "after undo:attachments",
    "before EffectAttempted:undo:attachments",
    "after EffectAttempted:undo:attachments",
]
STOPPING = [
    "before SessionClosed",
    "after SessionClosed",
    "before StopRequested",
    "after StopRequested",
    "before RunEnded",
    "after RunEnded",
    "before RunAnnounced",
    "after RunAnnounced",
    "after RunArchived",
]


def name_of(moment: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in moment.lower())


def session_at_rest(server: Server, name: str) -> tuple[str, str]:
    """A session with files whose run is announced; gives the run and the session's key."""
    first = server.accepted(**staying(name, attachments=ATTACHED))
    assert reply(server, first)["attachments"]
    return first, str(server.run(first)["childSessionKey"])


def stop(server: Server, key: str, idempotency_key: str) -> httpx2.Response:
    headers = {"Idempotency-Key": idempotency_key}
    return server.http.post(f"/v1/sessions/{key}/stop", json={}, headers=headers)


def require_put_away(
    server: Server, outside: HookServer, name: str, key: str, *runs: str, deaths: int = 1
) -> list[str]:
    """Of a session whose runs these are, the newest first: all is put away, and whoever was told
    of its end was told with one key, and once more at most for each death. Gives why."""
    for run_id in runs:
        server.wait_steps(run_id, "RunArchived")
    session = server.session(key)
    assert [run["runId"] for run in session["ownRuns"]] == list(runs)
    assert {run["stage"] for run in session["ownRuns"]} == {"archived"}
    assert session["stage"] == "closed"
    assert server.session(f"agent:main:{name}")["activeChildren"] == 0
    server.wait_steps(runs[-1], "undo:attachments:done")
    assert not (server.folder / "work" / ".openclaw" / "attachments" / runs[-1]).exists()
    wait_for("the files that were set aside to go", lambda: staged(server) == 0)
    paths = [server.run(run_id)["transcriptPath"] for run_id in runs]
    names = [Path(path) for path in paths if path is not None]
    assert all(".jsonl.deleted." in path.name for path in names)
    folder = server.data_dir / "transcripts"
    wait_for(
        "the files of the transcripts, and no others",
        lambda: set(folder.rglob(f"{session['sessionId']}*")) == set(names),
    )
    server.wait_steps(runs[0], "hook:subagentEnded:done")
    calls = [call for call in outside.calls("subagentEnded") if call.key.split(":")[0] in runs]
    counted = Counter(call.key for call in calls)
    assert list(counted) == [f"{runs[0]}:subagentEnded"]
    assert counted.total() <= deaths + 1
    wait_for("the lanes to be empty", lambda: not server.http.get("/v1/lanes").json()["items"])
    return [str(call.event["reason"]) for call in calls]


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(MOMENTS, ["after MessageReceived"]))
def test_a_message_is_taken_once_when_its_server_is_killed(
    server: Server, outside: HookServer, moment: str
) -> None:
    name = name_of(f"message {moment}")
    first, key = session_at_rest(server, name)
    server.die_at(moment)
    answered = Background(lambda: server.send(first, MESSAGE, key=moment)).answer()
    server.wait_death()
    server.restart()
    told = server.send(first, MESSAGE, key=moment)
    assert told.status_code == 201, told.text
    if answered is not None:
        assert told.content == answered.content
    # The claim is recorded with the message.
    is_unheard = moment in ("before MessageReceived", "before RunClaimed")
    assert ("Idempotent-Replayed" in told.headers) is not is_unheard
    second = str(told.json()["runId"])
    run = server.run(second, "announced")
    assert (run["outcome"], run["continues"]) == (MOMENTS[moment], first)
    if run["outcome"] == "error":
        assert run["error"].startswith("interrupted")
    assert server.session_runs(key) == [second, first]
    assert server.steps(second).count("MessageReceived") == 1
    assert [one["runId"] for one in server.inbox(f"agent:main:{name}")] == [first, second]
    third = server.continued(second, "and at last?")
    said = reply(server, third)
    assert said["attachments"]
    # What it said before it was killed may not have been written down.
    assert MESSAGE in said["history"] or run["outcome"] == "error"
    server.stop_session(key)
    reasons = require_put_away(server, outside, name, key, third, second, first)
    assert reasons == ["session-delete"]


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(CLOSING, ["after SessionClosed"]))
def test_a_session_at_rest_is_put_away_when_its_server_is_killed_meanwhile(
    server: Server, outside: HookServer, moment: str
) -> None:
    name = name_of(f"closing {moment}")
    first, key = session_at_rest(server, name)
    second = server.continued(first, MESSAGE)
    server.run(second, "announced")
    server.die_at(moment)
    with contextlib.suppress(httpx2.TransportError):
        stop(server, key, moment)
    server.wait_death()
    server.restart()
    told = stop(server, key, moment)
    assert told.status_code == 200, told.text
    assert told.json() == {
        "sessionKey": key,
        "sessionId": server.session(key)["sessionId"],
        "runId": second,
        "wasOver": True,
        "closed": True,
    }
    assert server.send(first, "too late").json()["code"] == "session_closed"
    reasons = require_put_away(server, outside, name, key, second, first)
    assert set(reasons) == {"session-delete"}


@pytest.mark.kill
def test_the_runs_before_are_put_away_however_often_the_server_is_killed(
    server: Server, outside: HookServer
) -> None:
    first, key = session_at_rest(server, "chain")
    second = server.continued(first, MESSAGE)
    server.run(second, "announced")
    third = server.continued(first, MESSAGE)
    server.run(third, "announced")
    server.die_at("after RunArchived")
    with contextlib.suppress(httpx2.TransportError):
        stop(server, key, "chain")
    server.wait_death()
    for moment in ("before RunArchived", "after RunArchived", "before RunArchived"):
        server.die_again(moment)
    server.restart()
    reasons = require_put_away(server, outside, "chain", key, third, second, first, deaths=4)
    assert set(reasons) == {"session-delete"}


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(STOPPING, ["after StopRequested"]))
def test_a_session_at_work_is_stopped_when_its_server_is_killed_meanwhile(
    server: Server, outside: HookServer, moment: str
) -> None:
    name = name_of(f"stopping {moment}")
    first = server.accepted(**staying(name, agentId="lingerer", attachments=ATTACHED))
    server.began(first)
    server.let_go(first)
    key = str(server.run(first, "announced")["childSessionKey"])
    second = server.continued(first, MESSAGE)
    server.began(second)
    server.die_at(moment)
    with contextlib.suppress(httpx2.TransportError):
        stop(server, key, moment)
    server.wait_death()
    server.restart()
    told = stop(server, key, moment)
    assert told.status_code == 200, told.text
    assert (told.json()["runId"], told.json()["closed"]) == (second, True)
    run = server.run(second, "archived")
    assert run["outcome"] in ("stopped", "error")
    reasons = require_put_away(server, outside, name, key, second, first)
    assert len(set(reasons)) == 1
