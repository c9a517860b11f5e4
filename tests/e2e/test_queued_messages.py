"""Messages to a session at work wait for its run; one that steers ends it."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.running_server import wait_for
from tests.support.servers.yielding_server import Yielding

pytestmark = pytest.mark.server


@pytest.fixture
def server(one_yielding: Yielding) -> Yielding:
    one_yielding.alive()
    return one_yielding


def at_work(server: Yielding, name: str) -> str:
    """A run that waits to be let go."""
    first = server.asks(name, {"awaits": f"{name}.go"})
    server.turn(name, 1)
    return first


def test_messages_to_a_run_at_work_are_taken_in_their_order(server: Yielding) -> None:
    first = at_work(server, "queue")
    answers = [server.message(first, text) for text in ("one", "two")]
    assert [one.status_code for one in answers] == [202, 202]
    assert [one.json()["place"] for one in answers] == [1, 2]
    queued = server.session(answers[0].json()["childSessionKey"])["queue"]
    assert [one["messagePreview"] for one in queued] == ["one", "two"]
    assert [one["by"] for one in queued] == ["admin", "admin"]
    server.lets("queue.go")
    assert server.turn("queue", 2) == "one"
    assert server.turn("queue", 3) == "two"
    entries = server.announcements("queue", 3)
    runs = server.runs_of(first)
    assert [one["runId"] for one in entries] == [one["runId"] for one in runs]
    assert [one["runId"] for one in runs[1:]] == [one.json()["runId"] for one in answers]
    assert [one["cause"] for one in runs] == [None, "message", "message"]
    assert server.session("agent:actor:queue")["activeChildren"] == 0


def test_a47_a_run_whose_server_is_gone_took_as_long_as_it_showed_a_sign_of_life(
    server: Yielding,
) -> None:
    first = at_work(server, "gone")
    server.kill()
    killed_at = datetime.now(UTC)
    server.again()
    run = server.run(first, "announced")
    assert (run["outcome"], run["error"].split(":")[0]) == ("error", "interrupted")
    items = server.http.get(f"/v1/runs/{first}/events").json()["items"]
    (ended,) = [one["payload"] for one in items if one["type"] == "RunEnded"]
    alive_until = datetime.fromisoformat(ended["aliveUntil"])
    started_at = datetime.fromisoformat(run["startedAt"])
    assert alive_until <= killed_at
    expected = max(timedelta(0), alive_until - started_at) // timedelta(milliseconds=1)
    assert run["runtimeMs"] == expected


def test_the_last_entries_of_a_transcript_are_its_end(server: Yielding) -> None:
    first = server.asks("ends", {})
    server.announcements("ends")
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


def test_the_twenty_first_message_is_turned_away(server: Yielding) -> None:
    first = at_work(server, "full")
    for number in range(20):
        assert server.message(first, f"message {number}").status_code == 202
    full = problem_of(server.message(first, "one more"), 409, "queue_full")
    assert full["detail"].startswith("20 messages wait for this session already")
    server.http.post(f"/v1/runs/{first}/stop", json={})
    server.run(first, "announced")
    key = server.run(first)["childSessionKey"]
    assert server.session(key)["queue"] == []
    assert "MessagesDropped" in server.types(first)
    assert len(server.runs_of(first)) == 1


def test_a_run_at_work_is_replaced_by_one_that_is_steered(server: Yielding) -> None:
    first = at_work(server, "steered")
    answer = server.message(first, "do this instead", "steer")
    assert answer.status_code == 202, answer.text
    told = answer.json()
    assert (told["status"], told["mode"], told["text"]) == (
        "accepted",
        "restart",
        "steered steered.",
    )
    assert told["replaces"] == first
    assert server.turn("steered", 2) == "do this instead"
    server.lets("steered.go")
    (entry,) = server.announcements("steered")
    one, two = server.runs_of(first)
    assert entry["runId"] == two["runId"] == told["runId"]
    assert (one["outcome"], two["cause"]) == ("stopped", "steer")
    assert one["announcement"]["reason"] == (
        f"it was steered; run {two['runId']} goes on in its place"
    )
    session = server.session("agent:actor:steered")
    assert (session["activeChildren"], session["pendingDescendants"]) == (0, 0)


def test_one_caller_steers_a_session_once_in_two_seconds(server: Yielding) -> None:
    first = at_work(server, "limited")
    assert server.message(first, "left", "steer").status_code == 202
    soon = problem_of(server.message(first, "right", "steer"), 429, "steered_too_soon")
    assert soon["detail"] == (
        "Steer rate limit exceeded. Wait a moment before sending another steer."
    )
    server.turn("limited", 2)
    server.lets("limited.go")
    server.announcements("limited")
    assert len(server.runs_of(first)) == 2


def test_what_is_over_is_not_steered_and_a_long_message_steers_nothing(server: Yielding) -> None:
    first = server.asks("over", {})
    server.announcements("over")
    answer = server.message(first, "too late", "steer")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["status"], answer.json()["text"]) == (
        "done",
        "over is already finished.",
    )
    long = problem_of(server.message(first, "x" * 4001, "steer"), 422, "invalid_request")
    assert long["detail"] == "Message too long (4001 chars, max 4000)."
    assert len(server.runs_of(first)) == 1


def test_one_that_waits_for_its_children_is_steered(server: Yielding) -> None:
    first = server.asks("waits", {"children": [{"awaits": "waits.go"}], "turns": 1})
    server.note("waits.yield-1")
    server.run(first, "ended")
    assert server.message(first, "answer now", "steer").status_code == 202
    assert server.turn("waits", 2) == "answer now"
    server.lets("waits.go")
    (entry,) = server.announcements("waits")
    assert "waits.1" in entry["text"]


def test_what_waits_in_the_queue_goes_over_to_the_run_that_replaces(server: Yielding) -> None:
    first = at_work(server, "both")
    server.message(first, "afterwards")
    server.message(first, "first of all", "steer")
    assert server.turn("both", 2) == "first of all"
    server.lets("both.go")
    assert server.turn("both", 3) == "afterwards"
    wait_for("both to be announced", lambda: len(server.announcements("both")) == 2)
    assert [one["cause"] for one in server.runs_of(first)] == [None, "steer", "message"]


def test_the_preamble_of_later_runs_is_written_and_taken_away(server: Yielding) -> None:
    first = server.asks("told", {"awaits": "told.go"}, contextPreamble="It rains.")
    server.turn("told", 1)
    place = f"/v1/sessions/{server.run(first)['childSessionKey']}/preamble"
    written = server.http.put(place, json={"preamble": "The sun shines."})
    assert (written.status_code, written.json()["characters"]) == (200, 15)
    assert server.http.put(place, json={"preamble": "The sun shines."}).json()["changed"] is False
    second = server.message(first, "and now?").json()["runId"]
    server.lets("told.go")
    server.run_when_there(second, "announced")
    assert server.http.delete(place).json()["changed"] is True
    third = server.message(second, "and then?").json()["runId"]
    server.run_when_there(third, "announced")
    shown = [_beginning(server, run_id) for run_id in (first, second, third)]
    assert shown == ["It rains.", "The sun shines.", None]
    server.http.post(f"/v1/runs/{third}/stop", json={})
    nobody = server.http.put("/v1/sessions/agent:actor:told/preamble", json={"preamble": "x"})
    problem_of(nobody, 409, "no_session")


def _beginning(server: Yielding, run_id: str) -> str | None:
    prompt = server.http.get(f"/v1/runs/{run_id}/prompt").json()["systemPrompt"]
    block = "[Session Context]\n[Context from parent agent]\n"
    return str(prompt).removeprefix(block).split("\n")[0] if prompt.startswith(block) else None
