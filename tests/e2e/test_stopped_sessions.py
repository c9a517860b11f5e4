"""A session is stopped, whatever its run is at, and with all that is below it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import BOUND, threaded
from tests.support.servers.running_server import wait_for
from tests.support.servers.talking_server import Talking, ends_of, staying

pytestmark = pytest.mark.kill


@pytest.fixture
def server(one_talking: Talking, outside: HookServer) -> Iterator[Talking]:
    outside.forget()
    outside.replies("subagentSpawning", Reply(said=BOUND))
    yield one_talking
    outside.let_go()


def put_away(server: Talking, key: str, *runs: str) -> None:
    """All of the session is: its runs from the newest to the first, and itself."""
    for run_id in runs:
        server.comes_to(run_id, "RunArchived")
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


def test_a_session_at_rest_is_put_away_with_all_its_runs(
    server: Talking, outside: HookServer
) -> None:
    first = server.asked_for(staying("idle"))
    key = server.run(first, "announced")["childSessionKey"]
    sent = server.send(first, "and then?", key="at-rest")
    second = str(sent.json()["runId"])
    server.run(second, "announced")
    answer = server.closes(key)
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
    server.comes_to(second, "hook:subagentEnded:done")
    assert ends_of(outside, key) == [(second, "session-delete")]
    assert server.closes(key) == answer
    # What was answered before is answered so still.
    again = server.send(first, "and then?", key="at-rest")
    assert (again.status_code, again.content) == (201, sent.content)
    assert "ArchiveScheduled" in server.steps(first)
    assert server.steps(second).count("ArchiveScheduled") == 1


@pytest.mark.parametrize("at", ["queued", "running"])
def test_a_session_at_work_is_closed_and_stopped(
    server: Talking, outside: HookServer, at: str
) -> None:
    first = server.asked_for(staying(f"busy-{at}", agentId="waiter"))
    key = server.run(first)["childSessionKey"]
    server.note(f"{first}.began")
    server.let_go(first)
    server.run(first, "announced")
    other = server.asked_for(threaded("other", agentId="waiter")) if at == "queued" else None
    if other is not None:
        server.note(f"{other}.began")
    second = server.goes_on(first, "and then?")
    if other is None:
        server.note(f"{second}.began")
    assert server.run(second)["status"] == at
    answer = server.closes(key)
    assert (answer["runId"], answer["wasOver"], answer["closed"]) == (second, False, True)
    assert server.session(key)["stage"] == "closed"
    run = server.run(second, "archived")
    assert (run["outcome"], run["announcement"]["state"]) == ("stopped", "delivered")
    put_away(server, key, second, first)
    assert (server.folder / f"{second}.began").exists() is (at == "running")
    server.comes_to(second, "hook:subagentEnded:done")
    assert ends_of(outside, key) == [(second, "subagent-killed")]
    assert server.session("agent:main:busy-" + at)["activeChildren"] == 0
    if other is not None:
        server.let_go(other)
        server.run(other, "announced")


def test_a_stop_is_told_of_a_session_that_is_not_on_record(server: Talking) -> None:
    for key in ("agent:main:nobody", "5d0f1d2c-90bd-4b4e-8a64-6a1f2a6f2b11"):
        answer = server.http.post(f"/v1/sessions/{key}/stop", json={})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_stop_of_one_run_of_a_session_puts_the_whole_away(
    server: Talking, outside: HookServer
) -> None:
    first = server.asked_for(staying("one-run", agentId="waiter"))
    key = server.run(first)["childSessionKey"]
    server.note(f"{first}.began")
    server.let_go(first)
    server.run(first, "announced")
    second = server.goes_on(first, "and then?")
    server.note(f"{second}.began")
    # A run that is over stays as it is.
    answer = server.http.post(f"/v1/runs/{first}/stop", json={})
    assert answer.json() == {"runId": first, "wasOver": True}
    assert server.session(key)["stage"] == "open"
    answer = server.http.post(f"/v1/runs/{second}/stop", json={"reason": "enough"})
    assert answer.json() == {"runId": second, "wasOver": False}
    put_away(server, key, second, first)
    assert server.run(second)["outcome"] == "stopped"
    server.comes_to(second, "hook:subagentEnded:done")
    assert ends_of(outside, key) == [(second, "subagent-killed")]


def test_a_root_session_is_not_closed_but_its_children_are_stopped(
    server: Talking, outside: HookServer
) -> None:
    body = threaded("root", agentId="waiter")
    first, second = server.asked_for(body), server.asked_for(body)
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
    third = server.asked_for(threaded("root"))
    assert server.run(third, "announced")["outcome"] == "success"


def test_a_child_that_does_not_stay_is_stopped_and_not_closed(
    server: Talking, outside: HookServer
) -> None:
    first = server.asked_for(threaded("goes", agentId="waiter"))
    key = server.run(first)["childSessionKey"]
    server.note(f"{first}.began")
    told = server.closes(key)
    assert (told["runId"], told["wasOver"], told["closed"]) == (first, False, False)
    run = server.run(first, "announced")
    assert run["outcome"] == "stopped"
    # Its time to be put away has not come, and until then it takes messages.
    assert (run["archiveAt"], server.session(key)["stage"]) == (None, "open")
    second = server.goes_on(first, "and then?")
    server.note(f"{second}.began")
    server.let_go(second)
    assert server.run(second, "announced")["outcome"] == "success"
    again = server.closes(key)
    assert (again["runId"], again["wasOver"], again["closed"]) == (second, True, False)
