"""Sessions take messages until they are stopped, also after a kill."""

import contextlib
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.servers.hook_server import HookServer
from tests.support.servers.hooked import AT_THE_THREAD, ends_told, reply, staying, threaded
from tests.support.servers.server import Server
from tests.support.waiting import wait_for


@pytest.mark.server
def test_a_session_goes_on_with_messages_until_it_is_stopped(
    server: Server, outside: HookServer
) -> None:
    first = server.accepted(**staying("reader", task="the first chapter"))
    assert reply(server, first)["persistent"]
    child = server.run(first)["childSessionKey"]
    assert server.session(child)["stage"] == "open"
    second = server.continued(first, "the second chapter")
    said = reply(server, second)
    assert (said["message"], len(said["history"])) == ("the second chapter", 1)
    # Any run of the session will do.
    third = server.continued(first, "the third chapter")
    assert reply(server, third)["history"][1:] == ["the second chapter"]
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
    assert server.stop_session(child)["closed"]
    for run_id in (third, second, first):
        server.wait_steps(run_id, "RunArchived")
    (ended,) = outside.calls("subagentEnded")
    assert (ended.event["runId"], ended.event["reason"]) == (third, "session-delete")
    assert server.session(child)["stage"] == "closed"
    answer = server.send(first, "too late")
    assert (answer.status_code, answer.json()["code"]) == (409, "session_closed")
    assert items[0]["origin"] == AT_THE_THREAD


@pytest.mark.server
def test_a_session_that_nobody_speaks_to_is_closed_when_its_idle_hours_are_over(
    server: Server,
) -> None:
    with server.configured(closes_when_idle):
        first = server.accepted(**staying("idle"))
        run = server.run(first, "archived")
    assert server.session(run["childSessionKey"])["stage"] == "closed"
    assert server.send(first, "too late").json()["code"] == "session_closed"


def closes_when_idle(config: dict[str, Any]) -> None:
    """After a second."""
    bindings = config.setdefault("session", {}).setdefault("threadBindings", {})
    bindings["idleHours"] = 1 / 3600


def put_away(server: Server, key: str, *runs: str) -> None:
    """All of the session is: its runs from the newest to the first, and itself."""
    for run_id in runs:
        server.wait_steps(run_id, "RunArchived")
    session = server.session(key)
    assert session["stage"] == "closed"
    assert [run["runId"] for run in session["ownRuns"]] == list(runs)
    archived = [server.run(run_id) for run_id in runs]
    assert {run["stage"] for run in archived} == {"archived"}
    assert sorted(archived, key=lambda run: run["archivedAt"]) == archived
    assert server.send(runs[0], "too late").json()["code"] == "session_closed"
    for run in archived:
        if run["transcriptPath"] is not None:
            wait_for("the file", Path(run["transcriptPath"]).exists)


@pytest.mark.kill
def test_a_session_at_rest_is_put_away_with_all_its_runs(
    server: Server, outside: HookServer
) -> None:
    first = server.accepted(**staying("idle"))
    key = server.run(first, "announced")["childSessionKey"]
    sent = server.send(first, "and then?", key="at-rest")
    second = str(sent.json()["runId"])
    server.run(second, "announced")
    answer = server.stop_session(key)
    session = server.session(key)
    assert answer == {
        "sessionKey": key,
        "sessionId": session["sessionId"],
        "runId": second,
        "wasOver": True,
        "closed": True,
    }
    put_away(server, key, second, first)
    outside.called("subagentEnded")
    server.wait_steps(second, "hook:subagentEnded:done")
    assert ends_told(outside, key) == [(second, "session-delete")]
    assert server.stop_session(key) == answer
    # What was answered before is answered so still.
    again = server.send(first, "and then?", key="at-rest")
    assert (again.status_code, again.content) == (201, sent.content)
    assert "ArchiveScheduled" in server.steps(first)
    assert server.steps(second).count("ArchiveScheduled") == 1


@pytest.mark.kill
@pytest.mark.parametrize("at", ["queued", "running"])
def test_a_session_at_work_is_closed_and_stopped(
    server: Server, outside: HookServer, at: str
) -> None:
    first = server.accepted(**staying(f"busy-{at}", agentId="waiter"))
    key = server.run(first)["childSessionKey"]
    server.note(f"{first}.began")
    server.let_go(first)
    server.run(first, "announced")
    other = server.accepted(**threaded("other", agentId="waiter")) if at == "queued" else None
    if other is not None:
        server.note(f"{other}.began")
    second = server.continued(first, "and then?")
    if other is None:
        server.note(f"{second}.began")
    assert server.run(second)["status"] == at
    answer = server.stop_session(key)
    assert (answer["runId"], answer["wasOver"], answer["closed"]) == (second, False, True)
    assert server.session(key)["stage"] == "closed"
    run = server.run(second, "archived")
    assert (run["outcome"], run["announcement"]["state"]) == ("stopped", "delivered")
    put_away(server, key, second, first)
    assert (server.folder / f"{second}.began").exists() is (at == "running")
    server.wait_steps(second, "hook:subagentEnded:done")
    assert ends_told(outside, key) == [(second, "subagent-killed")]
    assert server.session("agent:main:busy-" + at)["activeChildren"] == 0
    if other is not None:
        server.let_go(other)
        server.run(other, "announced")


@pytest.mark.kill
def test_a_stop_is_told_of_a_session_that_is_not_on_record(server: Server) -> None:
    for key in ("agent:main:nobody", "5d0f1d2c-90bd-4b4e-8a64-6a1f2a6f2b11"):
        answer = server.http.post(f"/v1/sessions/{key}/stop", json={})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.kill
def test_a_stop_of_one_run_of_a_session_puts_the_whole_away(
    server: Server, outside: HookServer
) -> None:
    first = server.accepted(**staying("one-run", agentId="waiter"))
    key = server.run(first)["childSessionKey"]
    server.note(f"{first}.began")
    server.let_go(first)
    server.run(first, "announced")
    second = server.continued(first, "and then?")
    server.note(f"{second}.began")
    # A run that is over stays as it is.
    answer = server.http.post(f"/v1/runs/{first}/stop", json={})
    assert answer.json() == {"runId": first, "wasOver": True}
    assert server.session(key)["stage"] == "open"
    answer = server.http.post(f"/v1/runs/{second}/stop", json={"reason": "enough"})
    assert answer.json() == {"runId": second, "wasOver": False}
    put_away(server, key, second, first)
    assert server.run(second)["outcome"] == "stopped"
    server.wait_steps(second, "hook:subagentEnded:done")
    assert ends_told(outside, key) == [(second, "subagent-killed")]


@pytest.mark.kill
def test_a_root_session_is_not_closed_but_its_children_are_stopped(
    server: Server, outside: HookServer
) -> None:
    body = threaded("root", agentId="waiter")
    first, second = server.accepted(**body), server.accepted(**body)
    server.note(f"{first}.began")
    key = "agent:main:root"
    headers = {"Idempotency-Key": "root-stop"}
    told = server.http.post(f"/v1/sessions/{key}/stop", json={}, headers=headers)
    assert told.json() == {
        "sessionKey": key,
        "sessionId": server.session(key)["sessionId"],
        "runId": None,
        "wasOver": True,
        "closed": False,
    }
    for run_id in (first, second):
        run = server.run(run_id, "announced")
        assert (run["outcome"], run["announcement"]["state"]) == ("stopped", "skipped")
    assert server.inbox(key) == []
    session = server.session(key)
    assert (session["stage"], session["activeChildren"]) == ("open", 0)
    again = server.http.post(f"/v1/sessions/{key}/stop", json={}, headers=headers)
    assert (again.content, again.headers["Idempotent-Replayed"]) == (told.content, "true")
    other = server.http.post(f"/v1/sessions/{key}/stop", json={"reason": "x"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    third = server.accepted(**threaded("root"))
    assert server.run(third, "announced")["outcome"] == "success"


@pytest.mark.kill
def test_a_child_that_does_not_stay_is_stopped_and_not_closed(
    server: Server, outside: HookServer
) -> None:
    first = server.accepted(**threaded("goes", agentId="waiter"))
    key = server.run(first)["childSessionKey"]
    server.note(f"{first}.began")
    told = server.stop_session(key)
    assert (told["runId"], told["wasOver"], told["closed"]) == (first, False, False)
    run = server.run(first, "announced")
    assert run["outcome"] == "stopped"
    # Its time to be put away has not come, and until then it takes messages.
    assert (run["archiveAt"], server.session(key)["stage"]) == (None, "open")
    second = server.continued(first, "and then?")
    server.note(f"{second}.began")
    server.let_go(second)
    assert server.run(second, "announced")["outcome"] == "success"
    again = server.stop_session(key)
    assert (again["runId"], again["wasOver"], again["closed"]) == (second, True, False)


def erase(server: Server, run_id: str) -> None:
    server.erase_session(server.run(run_id)["sessionId"])


@pytest.mark.server
def test_a_session_that_waits_for_messages_is_closed(server: Server) -> None:
    first = server.accepted(**staying("erased"))
    reply(server, first)
    erase(server, first)
    key = server.run(first)["childSessionKey"]
    answer = server.stop_session(key)
    assert (answer["closed"], answer["wasOver"]) == (True, True)
    server.wait_steps(first, "RunArchived")
    assert server.session(key)["stage"] == "closed"
    refused = server.send(first, "and then?")
    assert (refused.status_code, refused.json()["code"]) == (409, "session_closed")


@pytest.mark.server
def test_a_run_at_work_and_those_beside_it_are_stopped(server: Server) -> None:
    requester = "agent:main:erased-at-work"
    runs = [
        server.accepted("lingerer", session=requester, label=f"at-{name}")
        for name in ("work", "rest")
    ]
    server.began(runs[0])
    erase(server, runs[0])
    stopped = server.http.post(f"/v1/sessions/{requester}/stop", json={"reason": "enough"})
    assert stopped.status_code == 200, stopped.text
    for run_id in runs:
        assert server.run(run_id, "announced")["outcome"] == "stopped"


@pytest.mark.server
def test_a_run_that_is_erased_while_it_waits_ends_and_says_how(server: Server) -> None:
    requester = "agent:main:erased-while-it-waits"
    held = server.accepted("lingerer", session=requester, label="held")
    server.began(held)
    late = server.accepted("talker", session=requester, dependsOn=["held"])
    assert server.run(late)["status"] == "waiting"
    erase(server, late)
    server.let_go(held)
    assert server.run(late, "announced")["outcome"] == "error"
    (ended,) = server.payloads(late, "RunEnded")
    assert (ended["reason"], ended["error"]) == ("erased", None)
    assert "RunStarted" not in server.events(late)


def post(server: Server, path: str, key: str) -> httpx2.Response:
    return server.http.post(path, json={}, headers={"Idempotency-Key": key})


def killed(server: Server, moment: str, path: str, key: str) -> None:
    """It dies in the middle of a stop, and is started again."""
    server.die_at(moment)
    with contextlib.suppress(httpx2.TransportError):
        post(server, path, key)
    server.wait_death()
    server.restart()


def occupied(server: Server, name: str) -> str:
    """The lane of depth 2 is taken by the child of somebody else, which is stopped by its id."""
    parent = server.accepted(**staying(name, agentId="boss", task="occupy"))
    child = str(server.run(parent, "ended")["resultText"])
    server.began(child)
    return child


@pytest.mark.kill
def test_the_children_of_a_root_session_are_stopped_all_the_same(server: Server) -> None:
    body = threaded("root-killed", agentId="waiter")
    first, second = server.accepted(**body), server.accepted(**body)
    server.began(first)
    path = "/v1/sessions/agent:main:root-killed/stop"
    killed(server, "after StopRequested", path, "root")
    told = post(server, path, "root")
    assert told.status_code == 200, told.text
    for run_id in (first, second):
        run = server.run(run_id, "announced")
        assert run["outcome"] == "stopped", run_id
    # Once it was answered, a repeat stops nobody any more.
    third = server.accepted(**body)
    server.began(third)
    again = post(server, path, "root")
    assert (again.content, again.headers["Idempotent-Replayed"]) == (told.content, "true")
    assert server.run(third)["stage"] == "started"
    server.let_go(third)
    assert server.run(third, "announced")["outcome"] == "success"


@pytest.mark.kill
@pytest.mark.nightly
def test_those_below_a_session_are_stopped_all_the_same(server: Server) -> None:
    other = occupied(server, "occupied")
    first = server.accepted(**staying("below", agentId="boss", task="wait"))
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


@pytest.mark.kill
@pytest.mark.nightly
def test_those_below_a_run_are_stopped_all_the_same(server: Server) -> None:
    other = occupied(server, "occupied-too")
    first = server.accepted(**staying("below-run", agentId="boss", task="wait"))
    below = str(server.run(first, "ended")["resultText"])
    assert server.run(below)["stage"] == "queued"
    path = f"/v1/runs/{first}/stop"
    # Its own stop changes nothing, that of the one below is not recorded.
    killed(server, "before RunEnded", path, "below-run")
    told = post(server, path, "below-run")
    assert told.json() == {"runId": first, "wasOver": True}
    assert server.run(below, "announced")["outcome"] == "stopped"
    server.run(other, "announced")


@pytest.mark.kill
def test_a_session_that_is_half_put_away_takes_no_message(server: Server) -> None:
    """It is about to be archived when the server dies, and nobody has come to it since."""
    body = threaded("half", agentId="boss", task="half", cleanup="delete")
    first = server.accepted(**body)
    below = str(server.run(first, "ended")["resultText"])
    server.note(f"{below}.began")
    server.die_at("before RunArchived")
    server.let_go(below)
    server.wait_death()
    server.start()
    run = server.run(first)
    answer = server.send(first, "and then?")
    assert (answer.status_code, answer.json()["code"]) == (409, "session_closed")
    server.expire_leases(server.url)
    path = Path(server.run(first, "archived")["transcriptPath"])
    assert ".deleted." in path.name
    wait_for("the file", path.exists)
    assert server.session_runs(run["childSessionKey"]) == [first]
