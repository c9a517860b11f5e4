"""Sessions among others: their children, the places they take, and what they hand on."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders.submitted_transcripts import entries_of
from tests.support.servers.hook_server import HookServer
from tests.support.servers.hooked import ends_told, reply, staying, threaded
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


def spoken(server: Server, run_id: str) -> list[str]:
    """What the children said in a run, by its transcript."""
    said = [body for kind, body in entries_of(server.http, run_id) if kind == "message"]
    return [str(body["text"]) for body in said if body["role"] != "user"]


def subagents(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = config["agents"]["defaults"]["subagents"]
    return found


def one_child(config: dict[str, Any]) -> None:
    subagents(config)["maxChildrenPerAgent"] = 1


def without(agent_id: str) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        agents = config["agents"]["list"]
        config["agents"]["list"] = [one for one in agents if one["id"] != agent_id]

    return change


def test_a_child_begins_with_all_that_its_requester_had_said_in_every_run(
    server: Server,
) -> None:
    first = server.accepted(**staying("forked", agentId="lingerer", task="one"))
    server.began(first)
    key = server.run(first)["childSessionKey"]
    server.let_go(first)
    server.run(first, "announced")
    second = server.continued(first, "two")
    server.began(second)
    wait_for("it to be written", lambda: spoken(server, second) == ["before: two"])
    body: dict[str, Any] = {"requester": {"sessionKey": key}, "agentId": "lingerer"}
    body["context"] = "fork"
    answer = server.spawn("three", **body)
    assert answer.status_code == 201, answer.text
    heir = answer.json()["runId"]
    server.let_go(second)
    server.began(heir)
    assert server.run(second)["stage"] == "ended"
    server.let_go(heir)
    server.run(second, "announced")
    assert spoken(server, second) == ["before: two", "after: two"]
    inherited = ["before: one", "after: one", "before: two"]
    assert spoken(server, heir) == [*inherited, "before: three", "after: three"]
    # And one that is asked for later has heard the rest.
    third = server.continued(second, "four")
    server.began(third)
    answer = server.spawn("five", **body)
    later = answer.json()["runId"]
    server.began(later)
    for run_id in (later, third):
        server.let_go(run_id)
    server.run(third, "announced")
    heard = spoken(server, later)
    assert heard[:4] == ["before: one", "after: one", "before: two", "after: two"]
    assert heard[-2:] == ["before: five", "after: five"]
    assert "after: four" not in heard
    # What it took over is also what its own session begins with.
    again = server.continued(heir, "six")
    before = json.loads(server.note(f"{again}.began"))
    assert before == [*inherited, "before: three", "after: three"]
    server.let_go(again)
    run = server.run(again, "announced")
    assert (run["outcome"], run["continues"]) == ("success", heir)
    assert spoken(server, again) == ["before: six", "after: six"]


def test_t87_a_context_engine_is_told_the_file_of_what_the_requester_said_last(
    server: Server, outside: HookServer
) -> None:
    first = server.accepted(**staying("engine-file", agentId="lingerer", task="one"))
    server.began(first)
    server.let_go(first)
    said = server.run(first, "announced")
    second = server.continued(first, "two")
    server.began(second)
    requester = {"sessionKey": said["childSessionKey"]}
    heir = server.spawn("three", requester=requester, agentId="talker").json()["runId"]
    prepared = {call.run_id: call.event for call in outside.calls("prepareSubagentSpawn")}
    assert prepared[heir]["parentSessionFile"] == said["transcriptPath"]
    assert "parentSessionFile" not in prepared[first]
    server.let_go(second)


def test_a_session_waits_for_its_children_and_tells_of_those_of_each_run(
    server: Server,
) -> None:
    requester = "agent:main:boss"
    first = server.accepted(**staying("boss", agentId="boss", task="tidy"))
    tidy = server.run(first, "ended")["resultText"]
    assert server.run(first)["stage"] == "ended"
    answer = server.send(first, "sweep")
    assert (answer.status_code, answer.json()["place"]) == (202, 1)
    server.began(tidy)
    server.let_go(tidy)
    server.run(first, "announced")
    second = answer.json()["runId"]
    sweep = server.run(second, "ended")["resultText"]
    assert server.session(requester)["activeChildren"] == 1
    server.began(sweep)
    server.let_go(sweep)
    server.run(second, "announced")
    key = server.run(first)["childSessionKey"]
    assert server.session_runs(key) == [second, first]
    children = [run["runId"] for run in server.session(key)["runs"]]
    assert sorted(children) == sorted([tidy, sweep])
    one, two = server.inbox(requester)
    assert ("tidy" in one["text"], "sweep" in one["text"]) == (True, False)
    assert ("tidy" in two["text"], "sweep" in two["text"]) == (False, True)
    assert server.session(requester)["activeChildren"] == 0


def test_a_stop_of_an_earlier_run_does_not_reach_the_children_of_a_later_one(
    server: Server,
) -> None:
    first = server.accepted(**staying("earlier", agentId="boss", task="one"))
    one = server.run(first, "ended")["resultText"]
    server.began(one)
    server.let_go(one)
    server.run(first, "announced")
    with server.configured(without("boss")):
        refused = str(server.send(first, "two").json()["runId"])
    second = server.continued(first, "two")
    two = server.run(second, "ended")["resultText"]
    server.began(two)
    for run_id in (first, refused):
        answer = server.http.post(f"/v1/runs/{run_id}/stop", json={})
        assert answer.json() == {"runId": run_id, "wasOver": True}
    assert "StopRequested" not in server.steps(two)
    server.let_go(two)
    assert server.run(two, "announced")["outcome"] == "success"
    server.run(second, "announced")


def test_a_session_whose_run_waits_for_its_child_is_stopped_with_it(
    server: Server, outside: HookServer
) -> None:
    first = server.accepted(**staying("both", agentId="boss", task="paint"))
    paint = server.run(first, "ended")["resultText"]
    server.began(paint)
    key = server.run(first)["childSessionKey"]
    answer = server.stop_session(key)
    assert (answer["runId"], answer["wasOver"], answer["closed"]) == (first, True, True)
    below = server.run(paint, "announced")
    assert (below["outcome"], below["announcement"]["state"]) == ("stopped", "skipped")
    server.wait_steps(first, "RunArchived", "hook:subagentEnded:done")
    assert server.run(first)["outcome"] == "success"
    assert ends_told(outside, key) == [(first, "session-delete")]
    session = server.session(key)
    assert (session["stage"], session["activeChildren"]) == ("closed", 0)


def test_a_message_takes_a_place_among_the_children_of_its_requester(server: Server) -> None:
    requester = "agent:main:crowded"
    with server.configured(one_child):
        first = server.accepted(**staying("crowded"))
        reply(server, first)
        other = server.accepted(**threaded("crowded", agentId="waiter"))
        server.began(other)
        refused = server.send(first, "is there room?", key="crowded")
        assert (refused.status_code, refused.json()["rule"]) == (403, "active_children")
        assert (refused.json()["current"], refused.json()["limit"]) == (1, 1)
        run_id = refused.json()["runId"]
        assert server.steps(run_id) == ["MessageReceived", "SpawnRefused"]
        server.let_go(other)
        server.run(other, "announced")
        again = server.send(first, "is there room?", key="crowded")
        assert (again.content, again.headers["Idempotent-Replayed"]) == (refused.content, "true")
        second = server.continued(first, "is there room now?")
        assert server.session(requester)["activeChildren"] in (0, 1)
        assert reply(server, second)["history"] == [reply(server, first)["message"]]
        # Its place is taken as long as it goes on.
        third = server.accepted(**threaded("crowded", agentId="waiter"))
        server.began(third)
        full = server.spawn(**threaded("crowded"))
        assert (full.status_code, full.json()["rule"]) == (403, "active_children")
        server.let_go(third)
        server.run(third, "announced")
    assert server.session(requester)["activeChildren"] == 0


def test_a_session_whose_agent_is_gone_refuses_and_goes_on_when_it_is_back(
    server: Server,
) -> None:
    requester = "agent:main:gone"
    first = server.accepted(**staying("gone"))
    reply(server, first)
    key = server.run(first)["childSessionKey"]
    with server.configured(without("talker")):
        refused = server.send(first, "are you there?", key="gone")
        assert (refused.status_code, refused.json()["code"]) == (422, "spawn_error")
        assert refused.json()["rule"] == "agent_unknown"
        run = server.run(refused.json()["runId"])
        assert (run["stage"], run["continues"]) == ("refused", first)
        session = server.session(key)
        assert (session["stage"], session["runId"]) == ("open", first)
        assert server.session(requester)["activeChildren"] == 0
    again = server.send(first, "are you there?", key="gone")
    assert (again.status_code, again.content) == (422, refused.content)
    second = server.continued(first, "are you there?")
    assert reply(server, second)["message"] == "are you there?"
    assert server.session_runs(key) == [second, first]
    assert server.stop_session(key)["closed"]
    for run_id in (second, first):
        server.wait_steps(run_id, "RunArchived")
