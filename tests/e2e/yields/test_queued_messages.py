"""Messages to an active session wait for its run; their ids can be used at once."""

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.orchestrators import announcements, orchestrate, turn, turns_of
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", autouse=True)
def many_at_a_time(one_server: Server) -> Iterator[None]:
    def widen(config: dict[str, Any]) -> None:
        config["agents"]["defaults"]["subagents"]["maxConcurrent"] = 50

    one_server.ensure_running()
    with one_server.configured(widen):
        yield


def waiting_run(server: Server, name: str, **body: Any) -> str:
    """Return a run that waits for the note `<name>.go`."""
    first = orchestrate(server, name, {"awaits": f"{name}.go"}, **body)
    turn(server, name, 1)
    return first


def queued(server: Server, run_id: str, text: str, **body: Any) -> dict[str, Any]:
    """Send a message, which has to wait. Return the answer."""
    answer = server.send(run_id, text, **body)
    assert answer.status_code == 202, answer.text
    assert answer.headers["Location"] == f"/v1/runs/{answer.json()['runId']}"
    return dict(answer.json())


def stop(server: Server, run_id: str) -> dict[str, Any]:
    return server.stop_run(run_id)


def test_messages_to_run_at_work_are_taken_in_their_order(server: Server) -> None:
    first = waiting_run(server, "queue")
    answers = [queued(server, first, text) for text in ("one", "two")]
    assert [answer["place"] for answer in answers] == [1, 2]
    queue = server.session(answers[0]["childSessionKey"])["queue"]
    assert [(item["messagePreview"], item["by"]) for item in queue] == [
        ("one", "admin"),
        ("two", "admin"),
    ]
    server.touch("queue.go")
    assert [turn(server, "queue", number) for number in (2, 3)] == ["one", "two"]
    entries = announcements(server, "queue", 3)
    runs = turns_of(server, first)
    assert [entry["runId"] for entry in entries] == [run["runId"] for run in runs]
    assert [run["runId"] for run in runs[1:]] == [run["runId"] for run in answers]
    assert [run["cause"] for run in runs] == [None, "message", "message"]
    assert server.session("agent:actor:queue")["activeChildren"] == 0


def test_full_queue_is_dropped_by_a_stop(server: Server) -> None:
    first = waiting_run(server, "full")
    for number in range(20):
        queued(server, first, f"message {number}")
    problem = problem_of(server.send(first, "one more"), 409, "queue_full")
    assert problem["detail"].startswith("20 messages are already queued for this session")
    stop(server, first)
    key = server.run(first, "announced")["childSessionKey"]
    assert server.session(key)["queue"] == []
    assert "MessagesDropped" in server.events(first)
    assert len(turns_of(server, first)) == 1


def test_a47_run_of_gone_server_took_as_long_as_it_was_alive(server: Server) -> None:
    first = waiting_run(server, "gone")
    server.kill()
    killed_at = datetime.now(UTC)
    server.restart()
    run = server.run(first, "announced")
    assert (run["outcome"], run["error"].split(":")[0]) == ("error", "interrupted")
    (ended,) = server.payloads(first, "RunEnded")
    alive_until = datetime.fromisoformat(ended["aliveUntil"])
    assert alive_until <= killed_at
    lived = alive_until - datetime.fromisoformat(run["startedAt"])
    assert run["runtimeMs"] == max(timedelta(0), lived) // timedelta(milliseconds=1)


def test_steered_run_is_replaced_and_its_queue_goes_over(server: Server) -> None:
    first = waiting_run(server, "steered")
    queued(server, first, "afterwards")
    result = queued(server, first, "do this instead", mode="steer")
    output = ("status", "mode", "text", "replaces")
    assert [result[name] for name in output] == ["accepted", "restart", "steered steered.", first]
    soon = problem_of(server.send(first, "right", mode="steer"), 429, "steered_too_soon")
    assert soon["detail"] == (
        "Steer rate limit exceeded. Wait a moment before sending another steer."
    )
    assert turn(server, "steered", 2) == "do this instead"
    server.touch("steered.go")
    assert turn(server, "steered", 3) == "afterwards"
    entries = announcements(server, "steered", 2)
    run, two, three = turns_of(server, first)
    assert [each["runId"] for each in entries] == [two["runId"], three["runId"]]
    assert [run["outcome"], two["cause"], three["cause"]] == ["stopped", "steer", "message"]
    assert two["runId"] == result["runId"]
    reason = f"it was steered; run {two['runId']} continues its session"
    assert run["announcement"]["reason"] == reason
    session = server.session("agent:actor:steered")
    assert (session["activeChildren"], session["pendingDescendants"]) == (0, 0)
    done = server.send(first, "too late", mode="steer").json()
    assert (done["status"], done["text"]) == ("done", "steered is already finished.")
    long = problem_of(server.send(first, "x" * 4001, mode="steer"), 422, "invalid_request")
    assert long["detail"] == "Message too long (4001 chars, max 4000)."


def test_run_that_waits_for_children_is_steered(server: Server) -> None:
    first = orchestrate(server, "waits", {"children": [{"awaits": "waits.go"}], "turns": 1})
    server.note("waits.yield-1")
    server.run(first, "ended")
    queued(server, first, "answer now", mode="steer")
    assert turn(server, "waits", 2) == "answer now"
    server.touch("waits.go")
    (entry,) = announcements(server, "waits")
    assert "waits.1" in entry["text"]


def test_preamble_of_later_runs_is_written_and_taken_away(server: Server) -> None:
    def preamble(run_id: str) -> str | None:
        prompt = server.prompt(run_id)["systemPrompt"]
        head, _, rest = prompt.partition("[Session Context]\n[Context from parent agent]\n")
        return str(rest).split("\n")[0] if rest and not head else None

    first = waiting_run(server, "told", contextPreamble="It rains.")
    place = f"/v1/sessions/{server.run(first)['childSessionKey']}/preamble"
    written = server.http.put(place, json={"preamble": "The sun shines."})
    assert (written.status_code, written.json()["characters"]) == (200, 15)
    assert server.http.put(place, json={"preamble": "The sun shines."}).json()["changed"] is False
    second = queued(server, first, "and now?")["runId"]
    server.touch("told.go")
    server.run(second, "announced")
    assert server.http.delete(place).json()["changed"] is True
    third = server.continued(second, "and then?")
    server.run(third, "announced")
    assert [preamble(item) for item in (first, second, third)] == [
        "It rains.",
        "The sun shines.",
        None,
    ]
    nobody = server.http.put("/v1/sessions/agent:actor:told/preamble", json={"preamble": "x"})
    problem_of(nobody, 409, "no_session")


# Ids in the answers to requests.


def at_work(server: Server) -> tuple[str, str]:
    """Return a run that waits to be let go, and its label."""
    label = f"ids-{uuid.uuid4().hex[:8]}"
    return waiting_run(server, label), label


def asked(label: str, **body: Any) -> dict[str, Any]:
    return {"task": "{}", "session": f"agent:actor:{label}", "agentId": "actor", **body}


Give = Callable[[Server, str, str], str]
GIVEN: dict[str, Give] = {
    "spawn": lambda server, run_id, label: server.spawn(**asked(label, dependsOn=[label])).json()[
        "runId"
    ],
    "refusal": lambda server, run_id, label: server.spawn(**asked(label, agentId="nobody")).json()[
        "runId"
    ],
    "batch": lambda server, run_id, label: server.spawn(
        **asked(label, task=["{}", "{}"], parallel=True)
    ).json()["runs"][1]["runId"],
    "message": lambda server, run_id, label: queued(server, run_id, "and then")["runId"],
    "steer": lambda server, run_id, label: queued(server, run_id, "this", mode="steer")["runId"],
    "respawn": lambda server, run_id, label: server.http.post(
        f"/v1/runs/{run_id}/respawn", json={}
    ).json()["runId"],
}
READS = ("", "?wait=1ms&until=started", "/events", "/history", "/transcript", "/explain")


@pytest.mark.parametrize("given", GIVEN)
def test_id_of_answer_is_known_at_once(server: Server, given: str) -> None:
    first, label = at_work(server)
    run_id = GIVEN[given](server, first, label)
    paths = [f"/v1/runs/{run_id}{path}" for path in (*READS, "/transcript?wait=1ms")]
    paths += [f"/v1/diff?from=pos:1&to=-0s&runId={run_id}", f"/v1/events?runId={run_id}"]
    for path in [*paths, f"/v1/runs/{first}/compare?with={run_id}"]:
        answer = server.http.get(path)
        assert answer.status_code == 200, f"{path}: {answer.text}"
    for path in ("/prompt", "/shared-context"):
        assert server.http.get(f"/v1/runs/{run_id}{path}").status_code in (200, 409)
    assert server.http.post(f"/v1/runs/{run_id}/respawn", json={}).status_code < 500
    assert stop(server, run_id)["runId"] == run_id
    server.touch(f"{label}.go")
    # A run that does not wait may be done before the stop.
    assert server.run(run_id, "ended")["status"] in ("stopped", "refused", "done")


def test_waiting_message_reads_as_its_run(server: Server) -> None:
    first, label = at_work(server)
    answer = server.send(first, "and then")
    run_id = answer.json()["runId"]
    path = f"/v1/runs/{run_id}"
    before, run = server.run(first), server.run(run_id)
    assert (run["stage"], run["status"], run["continues"]) == ("session-created", "waiting", first)
    assert (run["task"], run["version"]) == ("and then", 0)
    for same in ("childSessionKey", "sessionId", "label", "agentId", "requesterSessionKey"):
        assert run[same] == before[same]
    head = int(answer.headers["Spawnlog-Position"])
    assert server.http.get(path, params={"at": f"pos:{head}"}).json()["status"] == "waiting"
    assert server.http.get(path, params={"at": f"pos:{head - 1}"}).status_code == 404
    page = server.http.get(f"{path}/transcript").json()
    assert (page["items"], page["lastSequence"], page["complete"]) == ([], 0, False)
    # A steer by its id reaches its session, and it waits on.
    steered = queued(server, run_id, "at once", mode="steer")
    assert steered["replaces"] == first
    wait_for("the steer", lambda: server.run(steered["runId"])["status"] != "waiting")
    server.touch(f"{label}.go")
    page = server.http.get(f"{path}/transcript", params={"wait": "30s"}).json()
    assert page["items"][0]["body"]["text"].endswith("and then")
    done = server.run(run_id, "announced")
    assert (done["status"], done["task"]) == ("done", "and then")


def test_stopped_message_is_dropped_and_others_are_taken(server: Server) -> None:
    run_id, label = at_work(server)
    first, second = (queued(server, run_id, "and then")["runId"] for _ in range(2))
    etag = server.http.get(f"/v1/runs/{first}").headers["ETag"]
    known = {"If-None-Match": etag}
    assert server.http.get(f"/v1/runs/{first}", headers=known).status_code == 304
    assert stop(server, first) == {"runId": first, "wasOver": False}
    assert stop(server, first)["wasOver"]
    run = server.http.get(f"/v1/runs/{first}", headers=known).json()
    assert (run["stage"], run["status"], run["rule"]) == ("refused", "refused", "stopped")
    (left,) = server.session(run["childSessionKey"])["queue"]
    assert left["runId"] == second
    server.touch(f"{label}.go")
    assert server.run(second, "announced")["status"] == "done"
    assert server.run(first, "archived")["status"] == "refused"
