"""Messages that race each other, a stop or the archive, or whose server is killed."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx2
import pytest

from tests.support.servers.attached_files import ATTACHED, staged
from tests.support.servers.hook_server import HookServer
from tests.support.servers.hooked import ends_told, name_of, reply, staying, threaded
from tests.support.servers.server import Background, Server
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill

RACERS = 20
ROUNDS, ROUNDS_OF_THE_GATE = 6, 2
MESSAGE = "and then?"


@pytest.fixture
def twin(server: Server) -> Iterator[Server]:
    """Yield another server on the same log."""
    with server.twin() as second_server:
        yield second_server


def raced(*acts: Callable[[], httpx2.Response]) -> list[httpx2.Response]:
    """Return the answers to requests that are sent at the same moment."""
    barrier = Barrier(len(acts))

    def act(send: Callable[[], httpx2.Response]) -> httpx2.Response:
        barrier.wait(30)
        return send()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(act, acts))


def rested(server: Server, name: str, **body: Any) -> tuple[str, str]:
    """Return the announced run of a session with a lingerer, and the session's key."""
    first = server.accepted(**staying(name, agentId="lingerer", **body))
    server.began(first)
    server.let_go(first)
    return first, str(server.run(first, "announced")["childSessionKey"])


def require_archived(server: Server, *runs: str) -> None:
    for run_id in runs:
        assert server.run(run_id, "archived")["stage"] == "archived"


def require_no_children(server: Server, name: str) -> None:
    assert server.session(f"agent:main:{name}")["activeChildren"] == 0


@pytest.mark.parametrize("servers", [1, 2])
def test_of_many_messages_one_is_taken(server: Server, twin: Server, servers: int) -> None:
    name = f"racing-{servers}"
    first, key = rested(server, name)
    request = (server, twin)[:servers]

    def send(number: int) -> httpx2.Response:
        sending_server = request[number % servers]
        return sending_server.send(first, f"message {number}", key=f"{name}-{number}")

    answers = raced(*(lambda n=n: send(n) for n in range(RACERS)))
    by_status: dict[int, list[dict[str, Any]]] = {201: [], 202: []}
    for response in answers:
        by_status[response.status_code].append(response.json())
    (taken,) = [run["runId"] for run in by_status[201]]
    waiting = by_status[202]
    assert sorted(item["place"] for item in waiting) == list(range(1, RACERS))
    assert server.session_runs(key) == [taken, first]
    queue = [run["runId"] for run in server.session(key)["queue"]]
    assert sorted(queue) == sorted(run["runId"] for run in waiting)
    server.began(taken)
    # Each request has its answer under its key: the accepted one and the queued ones.
    for number, answer in enumerate(answers):
        again = send(number)
        assert (again.status_code, again.json()) == (answer.status_code, answer.json())
    # There is room for one more, and for no other.
    assert twin.send(first, "the last one").status_code == 202
    for each in (server, twin):
        assert each.send(first, "not now").json()["code"] == "queue_full"
    assert server.stop_session(key)["runId"] == taken
    require_archived(twin, taken, first)
    assert twin.session(key)["queue"] == []
    require_no_children(server, name)


def test_same_message_to_two_servers_is_one(server: Server, twin: Server) -> None:
    first = server.accepted(**staying("same"))
    key = server.run(first, "announced")["childSessionKey"]
    both = (server, twin)
    answers = raced(*(lambda n=n: both[n % 2].send(first, "once", key="same") for n in range(8)))
    (run_id,) = {response.json()["runId"] for response in answers if response.status_code == 201}
    assert {response.status_code for response in answers} <= {201, 409}
    refused = {response.json()["code"] for response in answers if response.status_code == 409}
    assert refused <= {"idempotency_in_flight"}
    reply(server, run_id)
    assert server.session_runs(key) == [run_id, first]


@pytest.mark.parametrize("number", nightly_but(range(ROUNDS), range(ROUNDS_OF_THE_GATE)))
def test_message_and_stop_leave_nothing_at_work(
    server: Server, outside: HookServer, number: int
) -> None:
    name = f"stopped-{number}"
    first = server.accepted(**staying(name))
    key = server.run(first, "announced")["childSessionKey"]
    sent, stopped = raced(
        lambda: server.send(first, MESSAGE),
        lambda: server.http.post(f"/v1/sessions/{key}/stop", json={}),
    )
    assert stopped.json()["closed"] is True
    runs = server.session_runs(key)
    if sent.status_code == 201:
        # The message was faster than the stop, so its run was stopped or had ended before.
        assert runs == [sent.json()["runId"], first]
    else:
        assert (sent.status_code, sent.json()["code"]) == (409, "session_closed")
        assert runs == [first]
    assert stopped.json()["runId"] == runs[0]
    require_archived(server, *runs)
    session = server.session(key)
    assert (session["stage"], session["pendingDescendants"]) == ("closed", 0)
    require_no_children(server, name)
    server.wait_steps(runs[0], "hook:subagentEnded:done")
    assert len(ends_told(outside, key)) == 1


@pytest.mark.parametrize("number", nightly_but(range(ROUNDS), range(ROUNDS_OF_THE_GATE)))
def test_message_to_deleted_session_is_taken_or_too_late(server: Server, number: int) -> None:
    name = f"deleted-{number}"
    first = server.accepted(**threaded(name, agentId="talker", cleanup="delete"))
    key = server.run(first)["childSessionKey"]
    sent = server.send(first, MESSAGE)
    runs = [first]
    if sent.status_code in (201, 202):
        runs.insert(0, str(sent.json()["runId"]))
        assert reply(server, runs[0])["history"]
    else:
        assert (sent.status_code, sent.json()["code"]) == (409, "session_closed")
    assert server.session_runs(key) == runs
    for run_id in runs:
        assert server.run(run_id, "archived")["outcome"] == "success"
    assert server.session(key)["stage"] == "closed"
    require_no_children(server, name)


def test_message_goes_on_at_the_server_that_lives(server: Server, twin: Server) -> None:
    first, key = rested(server, "orphan")
    server.die_at("after MessageReceived")
    with suppress(httpx2.TransportError):
        server.send(first, MESSAGE, key="orphan")
    server.wait_death()
    response = twin.send(first, MESSAGE, key="orphan")
    assert (response.status_code, response.headers["Idempotent-Replayed"]) == (201, "true")
    second = response.json()["runId"]
    twin.began(second)
    twin.let_go(second)
    assert twin.run(second, "announced")["outcome"] == "success"
    assert twin.stop_session(key)["runId"] == second
    require_archived(twin, second, first)


# Killed. Of each moment, how the run that was sent for ends: it is announced in the transaction of
# its end.
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


def around(*moments: str) -> list[str]:
    return [f"{when} {moment}" for moment in moments for when in ("before", "after")]


PUTTING_AWAY = ("hook:subagentEnded", "EffectAttempted:hook:subagentEnded")
CLOSING = around("SessionClosed", "RunArchived", *PUTTING_AWAY)
CLOSING += around("undo:attachments", "EffectAttempted:undo:attachments")
STOPPING = around("SessionClosed", "StopRequested", "RunEnded", "RunAnnounced")
STOPPING += ["after RunArchived"]


def with_files(server: Server, name: str) -> tuple[str, str]:
    """Return the announced run of a session with files, and the session's key."""
    first = server.accepted(**staying(name, attachments=ATTACHED))
    assert reply(server, first)["attachments"]
    return first, str(server.run(first)["childSessionKey"])


def stop(server: Server, key: str, idempotency_key: str) -> httpx2.Response:
    headers = {"Idempotency-Key": idempotency_key}
    return server.http.post(f"/v1/sessions/{key}/stop", json={}, headers=headers)


def killed_at_stop(server: Server, key: str, moment: str) -> None:
    """Let the server die on the stop of a session, whose idempotency key is the moment."""
    server.die_at(moment)
    with suppress(httpx2.TransportError):
        stop(server, key, moment)
    server.wait_death()


def require_put_away(
    server: Server, outside: HookServer, name: str, key: str, *runs: str, deaths: int = 1
) -> set[str]:
    """Assert that a whole session with these runs is archived, newest run first.

    Its end was reported with one key, repeated at most once per death.

    Returns:
        The reasons of the end.
    """
    for run_id in runs:
        server.wait_steps(run_id, "RunArchived")
    session = server.session(key)
    assert [run["runId"] for run in session["ownRuns"]] == list(runs)
    assert {run["stage"] for run in session["ownRuns"]} == {"archived"}
    assert session["stage"] == "closed"
    require_no_children(server, name)
    server.wait_steps(runs[-1], "undo:attachments:done")
    assert not (server.folder / "work" / ".openclaw" / "attachments" / runs[-1]).exists()
    wait_for("the files that were set aside to go", lambda: staged(server) == 0)
    paths = [server.run(run_id)["transcriptPath"] for run_id in runs]
    names = {Path(path) for path in paths if path is not None}
    assert all(".jsonl.deleted." in path.name for path in names)
    folder = server.data_dir / "transcripts"
    wait_for(
        "the files of the transcripts, and no others",
        lambda: set(folder.rglob(f"{session['sessionId']}*")) == names,
    )
    server.wait_steps(runs[0], "hook:subagentEnded:done")
    calls = [call for call in outside.calls("subagentEnded") if call.run_id in runs]
    counted = Counter(call.key for call in calls)
    assert list(counted) == [f"{runs[0]}:subagentEnded"]
    assert counted.total() <= deaths + 1
    wait_for("the lanes to be empty", lambda: not server.http.get("/v1/lanes").json()["items"])
    return {str(call.event["reason"]) for call in calls}


@pytest.mark.parametrize("moment", nightly_but(MOMENTS, ["after MessageReceived"]))
def test_killed_message_is_taken_once(server: Server, outside: HookServer, moment: str) -> None:
    name = name_of(f"message {moment}")
    first, key = with_files(server, name)
    server.die_at(moment)
    answered = Background(lambda: server.send(first, MESSAGE, key=moment)).answer()
    server.wait_death()
    server.restart()
    response = server.send(first, MESSAGE, key=moment)
    assert response.status_code == 201, response.text
    if answered is not None:
        assert response.content == answered.content
    # The claim is recorded with the message.
    is_unheard = moment in ("before MessageReceived", "before RunClaimed")
    assert ("Idempotent-Replayed" in response.headers) is not is_unheard
    second = str(response.json()["runId"])
    run = server.run(second, "announced")
    assert (run["outcome"], run["continues"]) == (MOMENTS[moment], first)
    assert run["error"] is None or run["error"].startswith("interrupted")
    assert server.session_runs(key) == [second, first]
    assert server.steps(second).count("MessageReceived") == 1
    assert [run["runId"] for run in server.inbox(f"agent:main:{name}")] == [first, second]
    third = server.continued(second, "and at last?")
    output = reply(server, third)
    assert output["attachments"]
    # Its last messages before the kill may be lost.
    assert MESSAGE in output["history"] or run["outcome"] == "error"
    server.stop_session(key)
    reasons = require_put_away(server, outside, name, key, third, second, first)
    assert reasons == {"session-delete"}


@pytest.mark.parametrize("moment", nightly_but(CLOSING, ["after SessionClosed"]))
def test_killed_stop_puts_session_at_rest_away(
    server: Server, outside: HookServer, moment: str
) -> None:
    name = name_of(f"closing {moment}")
    first, key = with_files(server, name)
    second = server.continued(first, MESSAGE)
    server.run(second, "announced")
    killed_at_stop(server, key, moment)
    server.restart()
    run = stop(server, key, moment).json()
    assert (run["runId"], run["wasOver"], run["closed"]) == (second, True, True)
    assert server.send(first, "too late").json()["code"] == "session_closed"
    reasons = require_put_away(server, outside, name, key, second, first)
    assert reasons == {"session-delete"}


def test_runs_are_put_away_however_often_server_is_killed(
    server: Server, outside: HookServer
) -> None:
    runs = [*with_files(server, "chain")]
    key = runs.pop()
    for _ in range(2):
        runs.insert(0, server.continued(runs[0], MESSAGE))
        server.run(runs[0], "announced")
    killed_at_stop(server, key, "after RunArchived")
    for moment in ("before RunArchived", "after RunArchived", "before RunArchived"):
        server.die_again(moment)
    server.restart()
    reasons = require_put_away(server, outside, "chain", key, *runs, deaths=4)
    assert reasons == {"session-delete"}


@pytest.mark.parametrize("moment", nightly_but(STOPPING, ["after StopRequested"]))
def test_killed_stop_ends_session_at_work(server: Server, outside: HookServer, moment: str) -> None:
    name = name_of(f"stopping {moment}")
    first, key = rested(server, name, attachments=ATTACHED)
    second = server.continued(first, MESSAGE)
    server.began(second)
    killed_at_stop(server, key, moment)
    server.restart()
    run = stop(server, key, moment).json()
    assert (run["runId"], run["closed"]) == (second, True)
    assert server.run(second, "archived")["outcome"] in ("stopped", "error")
    assert len(require_put_away(server, outside, name, key, second, first)) == 1
