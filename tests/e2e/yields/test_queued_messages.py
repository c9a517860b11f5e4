"""Messages to a session at work wait for its run, and their ids can be used at once."""

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.orchestrators import announcements, orchestrate, turn, turns_of
from tests.support.servers.server import Server
from tests.support.waiting import wait_for


def waiting_run(server: Server, name: str) -> str:
    """A run that waits to be let go."""
    first = orchestrate(server, name, {"awaits": f"{name}.go"})
    turn(server, name, 1)
    return first


@pytest.mark.server
def test_messages_to_a_run_at_work_are_taken_in_their_order(server: Server) -> None:
    first = waiting_run(server, "queue")
    answers = [server.send(first, text) for text in ("one", "two")]
    assert [one.status_code for one in answers] == [202, 202]
    assert [one.json()["place"] for one in answers] == [1, 2]
    queued = server.session(answers[0].json()["childSessionKey"])["queue"]
    assert [one["messagePreview"] for one in queued] == ["one", "two"]
    assert [one["by"] for one in queued] == ["admin", "admin"]
    server.touch("queue.go")
    assert turn(server, "queue", 2) == "one"
    assert turn(server, "queue", 3) == "two"
    entries = announcements(server, "queue", 3)
    runs = turns_of(server, first)
    assert [one["runId"] for one in entries] == [one["runId"] for one in runs]
    assert [one["runId"] for one in runs[1:]] == [one.json()["runId"] for one in answers]
    assert [one["cause"] for one in runs] == [None, "message", "message"]
    assert server.session("agent:actor:queue")["activeChildren"] == 0


@pytest.mark.server
def test_a47_a_run_whose_server_is_gone_took_as_long_as_it_showed_a_sign_of_life(
    server: Server,
) -> None:
    first = waiting_run(server, "gone")
    server.kill()
    killed_at = datetime.now(UTC)
    server.restart()
    run = server.run(first, "announced")
    assert (run["outcome"], run["error"].split(":")[0]) == ("error", "interrupted")
    items = server.http.get(f"/v1/runs/{first}/events").json()["items"]
    (ended,) = [one["payload"] for one in items if one["type"] == "RunEnded"]
    alive_until = datetime.fromisoformat(ended["aliveUntil"])
    started_at = datetime.fromisoformat(run["startedAt"])
    assert alive_until <= killed_at
    expected = max(timedelta(0), alive_until - started_at) // timedelta(milliseconds=1)
    assert run["runtimeMs"] == expected


@pytest.mark.server
def test_the_last_entries_of_a_transcript_are_its_end(server: Server) -> None:
    first = orchestrate(server, "ends", {})
    announcements(server, "ends")
    path = f"/v1/runs/{first}/transcript"
    whole = server.http.get(path).json()["items"]
    assert [one["kind"] for one in whole] == ["message", "result"]
    assert server.http.get(path, params={"last": 1}).json() == {
        "items": whole[1:],
        "nextAfter": None,
        "lastSequence": 2,
        "complete": True,
    }
    both = server.http.get(path, params={"last": 1, "after": 1})
    assert problem_of(both, 422, "invalid_request")["errors"][0]["pointer"] == "/query/last"


@pytest.mark.server
def test_the_twenty_first_message_is_turned_away(server: Server) -> None:
    first = waiting_run(server, "full")
    for number in range(20):
        assert server.send(first, f"message {number}").status_code == 202
    full = problem_of(server.send(first, "one more"), 409, "queue_full")
    assert full["detail"].startswith("20 messages wait for this session already")
    server.http.post(f"/v1/runs/{first}/stop", json={})
    server.run(first, "announced")
    key = server.run(first)["childSessionKey"]
    assert server.session(key)["queue"] == []
    assert "MessagesDropped" in server.events(first)
    assert len(turns_of(server, first)) == 1


@pytest.mark.server
def test_a_run_at_work_is_replaced_by_one_that_is_steered(server: Server) -> None:
    first = waiting_run(server, "steered")
    answer = server.send(first, "do this instead", mode="steer")
    assert answer.status_code == 202, answer.text
    told = answer.json()
    assert (told["status"], told["mode"], told["text"]) == (
        "accepted",
        "restart",
        "steered steered.",
    )
    assert told["replaces"] == first
    assert turn(server, "steered", 2) == "do this instead"
    server.touch("steered.go")
    (entry,) = announcements(server, "steered")
    one, two = turns_of(server, first)
    assert entry["runId"] == two["runId"] == told["runId"]
    assert (one["outcome"], two["cause"]) == ("stopped", "steer")
    assert one["announcement"]["reason"] == (
        f"it was steered; run {two['runId']} goes on in its place"
    )
    session = server.session("agent:actor:steered")
    assert (session["activeChildren"], session["pendingDescendants"]) == (0, 0)


@pytest.mark.server
def test_one_caller_steers_a_session_once_in_two_seconds(server: Server) -> None:
    first = waiting_run(server, "limited")
    assert server.send(first, "left", mode="steer").status_code == 202
    soon = problem_of(server.send(first, "right", mode="steer"), 429, "steered_too_soon")
    assert soon["detail"] == (
        "Steer rate limit exceeded. Wait a moment before sending another steer."
    )
    turn(server, "limited", 2)
    server.touch("limited.go")
    announcements(server, "limited")
    assert len(turns_of(server, first)) == 2


@pytest.mark.server
def test_what_is_over_is_not_steered_and_a_long_message_steers_nothing(server: Server) -> None:
    first = orchestrate(server, "over", {})
    announcements(server, "over")
    answer = server.send(first, "too late", mode="steer")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["status"], answer.json()["text"]) == (
        "done",
        "over is already finished.",
    )
    long = problem_of(server.send(first, "x" * 4001, mode="steer"), 422, "invalid_request")
    assert long["detail"] == "Message too long (4001 chars, max 4000)."
    assert len(turns_of(server, first)) == 1


@pytest.mark.server
def test_one_that_waits_for_its_children_is_steered(server: Server) -> None:
    first = orchestrate(server, "waits", {"children": [{"awaits": "waits.go"}], "turns": 1})
    server.note("waits.yield-1")
    server.run(first, "ended")
    assert server.send(first, "answer now", mode="steer").status_code == 202
    assert turn(server, "waits", 2) == "answer now"
    server.touch("waits.go")
    (entry,) = announcements(server, "waits")
    assert "waits.1" in entry["text"]


@pytest.mark.server
def test_what_waits_in_the_queue_goes_over_to_the_run_that_replaces(server: Server) -> None:
    first = waiting_run(server, "both")
    server.send(first, "afterwards")
    server.send(first, "first of all", mode="steer")
    assert turn(server, "both", 2) == "first of all"
    server.touch("both.go")
    assert turn(server, "both", 3) == "afterwards"
    wait_for("both to be announced", lambda: len(announcements(server, "both")) == 2)
    assert [one["cause"] for one in turns_of(server, first)] == [None, "steer", "message"]


@pytest.mark.server
def test_the_preamble_of_later_runs_is_written_and_taken_away(server: Server) -> None:
    first = orchestrate(server, "told", {"awaits": "told.go"}, contextPreamble="It rains.")
    turn(server, "told", 1)
    place = f"/v1/sessions/{server.run(first)['childSessionKey']}/preamble"
    written = server.http.put(place, json={"preamble": "The sun shines."})
    assert (written.status_code, written.json()["characters"]) == (200, 15)
    assert server.http.put(place, json={"preamble": "The sun shines."}).json()["changed"] is False
    second = server.send(first, "and now?").json()["runId"]
    server.touch("told.go")
    server.run(second, "announced")
    assert server.http.delete(place).json()["changed"] is True
    third = server.send(second, "and then?").json()["runId"]
    server.run(third, "announced")
    shown = [_beginning(server, run_id) for run_id in (first, second, third)]
    assert shown == ["It rains.", "The sun shines.", None]
    server.http.post(f"/v1/runs/{third}/stop", json={})
    nobody = server.http.put("/v1/sessions/agent:actor:told/preamble", json={"preamble": "x"})
    problem_of(nobody, 409, "no_session")


def _beginning(server: Server, run_id: str) -> str | None:
    prompt = server.http.get(f"/v1/runs/{run_id}/prompt").json()["systemPrompt"]
    block = "[Session Context]\n[Context from parent agent]\n"
    return str(prompt).removeprefix(block).split("\n")[0] if prompt.startswith(block) else None


@pytest.fixture(scope="module", autouse=True)
def many_at_a_time(one_server: Server) -> Iterator[None]:
    def widen(config: dict[str, Any]) -> None:
        config["agents"]["defaults"]["subagents"]["maxConcurrent"] = 50

    one_server.ensure_running()
    with one_server.configured(widen):
        yield


def at_work(server: Server) -> tuple[str, str]:
    """A run that waits to be let go, and its label."""
    label = f"ids-{uuid.uuid4().hex[:8]}"
    run_id = orchestrate(server, label, {"awaits": f"{label}.go"})
    turn(server, label, 1)
    return run_id, label


def spawned(server: Server, label: str, _: str) -> str:
    requester = {"sessionKey": f"agent:actor:{label}"}
    answer = server.spawn("{}", agentId="actor", requester=requester, dependsOn=[label])
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


def refused(server: Server, label: str, _: str) -> str:
    requester = {"sessionKey": f"agent:actor:{label}"}
    return str(server.spawn("{}", agentId="nobody", requester=requester).json()["runId"])


def batched(server: Server, label: str, _: str) -> str:
    requester = {"sessionKey": f"agent:actor:{label}"}
    answer = server.http.post(
        "/v1/spawns",
        json={"requester": requester, "task": ["{}", "{}"], "parallel": True, "agentId": "actor"},
    )
    return str(answer.json()["runs"][1]["runId"])


def sent(server: Server, _: str, run_id: str) -> str:
    answer = server.send(run_id, "and then")
    assert answer.status_code == 202, answer.text
    return str(answer.json()["runId"])


def steered(server: Server, _: str, run_id: str) -> str:
    answer = server.send(run_id, "rather this", mode="steer")
    assert answer.status_code == 202, answer.text
    return str(answer.json()["runId"])


def respawned(server: Server, _: str, run_id: str) -> str:
    answer = server.http.post(f"/v1/runs/{run_id}/respawn", json={})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


ANSWERS = [spawned, refused, batched, sent, steered, respawned]
PATHS = {
    "": {200},
    "?wait=1ms&until=started": {200},
    "/events": {200},
    "/history": {200},
    "/transcript": {200},
    "/transcript?wait=1ms": {200},
    "/explain": {200},
    "/prompt": {200, 409},
    "/shared-context": {200, 409},
}


@pytest.mark.server
@pytest.mark.parametrize("give", ANSWERS)
def test_id_of_an_answer_is_known_at_once(
    server: Server, give: Callable[[Server, str, str], str]
) -> None:
    run_id, label = at_work(server)
    given = give(server, label, run_id)
    for path, statuses in PATHS.items():
        answer = server.http.get(f"/v1/runs/{given}{path}")
        assert answer.status_code in statuses, f"{path}: {answer.status_code} {answer.text}"
    compared = server.http.get(f"/v1/runs/{run_id}/compare", params={"with": given})
    assert compared.status_code == 200, compared.text
    for path in (f"/v1/diff?from=pos:1&to=-0s&runId={given}", f"/v1/events?runId={given}"):
        answer = server.http.get(path)
        assert answer.status_code == 200, answer.text
    assert server.http.post(f"/v1/runs/{given}/respawn", json={}).status_code < 500
    stopped = server.http.post(f"/v1/runs/{given}/stop", json={})
    assert stopped.status_code == 200, stopped.text
    server.touch(f"{label}.go")
    run = server.run(given, "ended")
    assert run["runId"] == given
    # Those that wait for nothing may be done before they are stopped.
    assert run["status"] in ("stopped", "refused", "done")


@pytest.mark.server
def test_message_that_waits_reads_as_its_run(server: Server) -> None:
    run_id, label = at_work(server)
    answer = server.send(run_id, "and then")
    assert answer.headers["Location"] == f"/v1/runs/{answer.json()['runId']}"
    before = server.run(run_id)
    run = server.run(answer.json()["runId"])
    assert (run["stage"], run["status"], run["continues"]) == ("session-created", "waiting", run_id)
    assert (run["task"], run["version"]) == ("and then", 0)
    for same in ("childSessionKey", "sessionId", "label", "agentId", "requesterSessionKey"):
        assert run[same] == before[same]
    head = int(answer.headers["Spawnlog-Position"])
    path = f"/v1/runs/{run['runId']}"
    assert server.http.get(path, params={"at": f"pos:{head}"}).json()["status"] == "waiting"
    assert server.http.get(path, params={"at": f"pos:{head - 1}"}).status_code == 404
    server.touch(f"{label}.go")
    done = server.run(run["runId"], "announced")
    assert (done["status"], done["task"]) == ("done", "and then")


@pytest.mark.server
def test_stopped_message_is_dropped_and_others_are_taken(server: Server) -> None:
    run_id, label = at_work(server)
    first, second = (sent(server, label, run_id) for _ in range(2))
    stopped = server.http.post(f"/v1/runs/{first}/stop", json={}).json()
    assert (stopped["runId"], stopped["wasOver"]) == (first, False)
    run = server.run(first, "ended")
    assert (run["stage"], run["status"], run["rule"]) == ("refused", "refused", "stopped")
    assert server.http.post(f"/v1/runs/{first}/stop", json={}).json()["wasOver"]
    (queued,) = server.session(run["childSessionKey"])["queue"]
    assert queued["runId"] == second
    server.touch(f"{label}.go")
    assert server.run(second, "announced")["status"] == "done"
    assert server.run(first, "archived")["status"] == "refused"


@pytest.mark.server
def test_etag_of_a_waiting_message_changes_when_it_is_dropped(server: Server) -> None:
    run_id, label = at_work(server)
    path = f"/v1/runs/{sent(server, label, run_id)}"
    etag = server.http.get(path).headers["ETag"]
    known = {"If-None-Match": etag}
    assert server.http.get(path, headers=known).status_code == 304
    server.http.post(f"{path}/stop", json={})
    answer = server.http.get(path, headers=known)
    assert (answer.status_code, answer.json()["stage"]) == (200, "refused")
    server.touch(f"{label}.go")
    server.run(run_id, "announced")


@pytest.mark.server
def test_run_is_announced_if_the_message_that_steered_it_is_dropped(server: Server) -> None:
    def dropped() -> bool:
        run_id, label = at_work(server)
        given = steered(server, label, run_id)
        server.http.post(f"/v1/runs/{given}/stop", json={})
        server.touch(f"{label}.go")
        assert server.run(run_id, "announced")["status"] == "stopped"
        return bool(server.run(given, "announced")["status"] == "refused")

    # The message may have begun when it is stopped.
    assert any(dropped() for _ in range(5))


@pytest.mark.server
def test_steer_by_the_id_of_a_waiting_message_reaches_its_session(server: Server) -> None:
    run_id, label = at_work(server)
    waiting = sent(server, label, run_id)
    answer = server.send(waiting, "at once", mode="steer")
    assert (answer.status_code, answer.json()["replaces"]) == (202, run_id)
    wait_for("the steer", lambda: server.run(answer.json()["runId"])["status"] != "waiting")
    server.touch(f"{label}.go")
    assert server.run(waiting, "announced")["status"] == "done"


@pytest.mark.server
def test_transcript_of_a_waiting_message_can_be_followed(server: Server) -> None:
    run_id, label = at_work(server)
    waiting = sent(server, label, run_id)
    path = f"/v1/runs/{waiting}/transcript"
    page: dict[str, Any] = server.http.get(path).json()
    assert (page["items"], page["lastSequence"], page["complete"]) == ([], 0, False)
    server.touch(f"{label}.go")
    page = server.http.get(path, params={"wait": "30s"}).json()
    assert page["items"][0]["body"]["text"].endswith("and then")


@pytest.mark.server
def test_unknown_id_stays_unknown(server: Server) -> None:
    unknown = uuid.uuid4()
    for path in ("", "/events", "/transcript"):
        assert server.http.get(f"/v1/runs/{unknown}{path}").status_code == 404
    assert server.http.post(f"/v1/runs/{unknown}/stop", json={}).status_code == 404
