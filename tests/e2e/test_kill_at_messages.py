"""kill -9 around a message and the run that it becomes, and while a session is put away: after the
restart the same request gets the right answer, and nothing is left."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import BOUND
from tests.support.servers.preparing_server import ATTACHED
from tests.support.servers.running_server import wait_for
from tests.support.servers.talking_server import Talking, staying, talking_on
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.kill

ATTACHING = {"sessions_spawn": {"attachments": {"enabled": True}}}
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


@pytest.fixture(scope="module")
def one_talking(databases: Databases, outside: HookServer) -> Iterator[Talking]:
    with talking_on(databases, outside, tools=ATTACHING) as server:
        yield server


@pytest.fixture
def server(one_talking: Talking, outside: HookServer) -> Iterator[Talking]:
    outside.forget()
    outside.replies("subagentSpawning", Reply(said=BOUND))
    one_talking.alive()
    yield one_talking
    outside.let_go()


def name_of(moment: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in moment.lower())


def at_rest(server: Talking, name: str) -> tuple[str, str]:
    """A session with files whose run is announced; gives the run and the session's key."""
    first = server.asked_for(staying(name, attachments=ATTACHED))
    assert server.said(first)["attachments"]
    return first, str(server.run(first)["childSessionKey"])


def stop(server: Talking, key: str, idempotency_key: str) -> httpx2.Response:
    headers = {"Idempotency-Key": idempotency_key}
    return server.http.post(f"/v1/sessions/{key}/stop", json={}, headers=headers)


def nothing_is_left(
    server: Talking, outside: HookServer, name: str, key: str, *runs: str, deaths: int = 1
) -> list[str]:
    """Of a session whose runs these are, the newest first: all is put away, and whoever was told
    of its end was told with one key, and once more at most for each death. Gives why."""
    for run_id in runs:
        server.comes_to(run_id, "RunArchived")
    session = server.session(key)
    assert [run["runId"] for run in session["ownRuns"]] == list(runs)
    assert {run["stage"] for run in session["ownRuns"]} == {"archived"}
    assert session["stage"] == "closed"
    assert server.session(f"agent:main:{name}")["activeChildren"] == 0
    server.comes_to(runs[-1], "undo:attachments:done")
    assert not (server.folder / "work" / ".openclaw" / "attachments" / runs[-1]).exists()
    wait_for("the files that were set aside to go", lambda: server.places.staged() == 0)
    paths = [server.run(run_id)["transcriptPath"] for run_id in runs]
    names = [Path(path) for path in paths if path is not None]
    assert all(".jsonl.deleted." in path.name for path in names)
    folder = server.data_dir / "transcripts"
    wait_for(
        "the files of the transcripts, and no others",
        lambda: set(folder.rglob(f"{session['sessionId']}*")) == set(names),
    )
    server.comes_to(runs[0], "hook:subagentEnded:done")
    calls = [call for call in outside.calls("subagentEnded") if call.key.split(":")[0] in runs]
    counted = Counter(call.key for call in calls)
    assert list(counted) == [f"{runs[0]}:subagentEnded"]
    assert counted.total() <= deaths + 1
    assert server.http.get("/v1/lanes").json()["items"] == []
    return [str(call.event["reason"]) for call in calls]


@pytest.mark.parametrize("moment", nightly_but(MOMENTS, ["after MessageReceived"]))
def test_a_message_is_taken_once_when_its_server_is_killed(
    server: Talking, outside: HookServer, moment: str
) -> None:
    name = name_of(f"message {moment}")
    first, key = at_rest(server, name)
    server.is_to_die(moment)
    answered = server.send_aside(first, MESSAGE, key=moment).answer()
    server.has_died()
    server.again()
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
    assert server.runs_of(key) == [second, first]
    assert server.steps(second).count("MessageReceived") == 1
    assert [one["runId"] for one in server.inbox(f"agent:main:{name}")] == [first, second]
    third = server.goes_on(second, "and at last?")
    said = server.said(third)
    assert said["attachments"]
    # What it said before it was killed may not have been written down.
    assert MESSAGE in said["history"] or run["outcome"] == "error"
    server.closes(key)
    reasons = nothing_is_left(server, outside, name, key, third, second, first)
    assert reasons == ["session-delete"]


@pytest.mark.parametrize("moment", nightly_but(CLOSING, ["after SessionClosed"]))
def test_a_session_at_rest_is_put_away_when_its_server_is_killed_meanwhile(
    server: Talking, outside: HookServer, moment: str
) -> None:
    name = name_of(f"closing {moment}")
    first, key = at_rest(server, name)
    second = server.goes_on(first, MESSAGE)
    server.run(second, "announced")
    server.is_to_die(moment)
    with contextlib.suppress(httpx2.TransportError):
        stop(server, key, moment)
    server.has_died()
    server.again()
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
    reasons = nothing_is_left(server, outside, name, key, second, first)
    assert set(reasons) == {"session-delete"}


def test_the_runs_before_are_put_away_however_often_the_server_is_killed(
    server: Talking, outside: HookServer
) -> None:
    first, key = at_rest(server, "chain")
    second = server.goes_on(first, MESSAGE)
    server.run(second, "announced")
    third = server.goes_on(first, MESSAGE)
    server.run(third, "announced")
    server.is_to_die("after RunArchived")
    with contextlib.suppress(httpx2.TransportError):
        stop(server, key, "chain")
    server.has_died()
    for moment in ("before RunArchived", "after RunArchived", "before RunArchived"):
        server.dies_again(moment)
    server.again()
    reasons = nothing_is_left(server, outside, "chain", key, third, second, first, deaths=4)
    assert set(reasons) == {"session-delete"}


@pytest.mark.parametrize("moment", nightly_but(STOPPING, ["after StopRequested"]))
def test_a_session_at_work_is_stopped_when_its_server_is_killed_meanwhile(
    server: Talking, outside: HookServer, moment: str
) -> None:
    name = name_of(f"stopping {moment}")
    first = server.asked_for(staying(name, agentId="lingerer", attachments=ATTACHED))
    server.began(first)
    server.let_go(first)
    key = str(server.run(first, "announced")["childSessionKey"])
    second = server.goes_on(first, MESSAGE)
    server.began(second)
    server.is_to_die(moment)
    with contextlib.suppress(httpx2.TransportError):
        stop(server, key, moment)
    server.has_died()
    server.again()
    told = stop(server, key, moment)
    assert told.status_code == 200, told.text
    assert (told.json()["runId"], told.json()["closed"]) == (second, True)
    run = server.run(second, "archived")
    assert run["outcome"] in ("stopped", "error")
    reasons = nothing_is_left(server, outside, name, key, second, first)
    assert len(set(reasons)) == 1
