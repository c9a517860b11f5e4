"""An orchestrator yields, and is woken by what its children report."""

import pytest

from tests.support.servers.running_server import wait_for
from tests.support.servers.yielding_server import Yielding

pytestmark = pytest.mark.server


@pytest.fixture
def server(one_yielding: Yielding) -> Yielding:
    one_yielding.alive()
    return one_yielding


def test_a_run_that_yields_is_woken_and_only_its_last_turn_is_announced(server: Yielding) -> None:
    first = server.asks("simple", {"children": [{"awaits": "simple.go"}], "turns": 1})
    server.run(first, "ended")
    server.lets("simple.go")
    woken = server.turn("simple", 2)
    assert woken.startswith("[Subagent Context] Your prior run ended while waiting")
    assert "All pending descendants for that run have now settled." in woken
    assert "\nTask: simple\n" in woken
    assert "Child completion results:\n1. simple.1\nStatus: success\n" in woken
    (entry,) = server.announcements("simple")
    one, two = server.runs_of(first)
    assert entry["runId"] == two["runId"]
    assert (one["yielded"], one["continuedBy"], one["stage"]) == (True, two["runId"], "announced")
    assert one["announcement"]["state"] == "skipped"
    assert one["announcement"]["reason"] == (f"it yielded; run {two['runId']} goes on in its place")
    assert (two["cause"], two["continues"], two["yielded"]) == ("wake", one["runId"], False)
    assert server.types(first)[-6:] == [
        "YieldRequested",
        "RunEnded",
        "DescendantsSettled",
        "ChildrenReported",
        "RunContinued",
        "RunAnnounced",
    ]
    session = server.session("agent:actor:simple")
    assert (session["activeChildren"], session["pendingDescendants"]) == (0, 0)
    child = server.session(two["childSessionKey"])
    assert (child["unreadReports"], child["queue"]) == ([], [])
    (report,) = server.http.get(f"/v1/sessions/{two['childSessionKey']}/announcements").json()[
        "items"
    ]
    assert report["state"] == "acknowledged"


def test_each_report_wakes_it_until_it_ends_without_yielding(server: Yielding) -> None:
    children = [{}, {"awaits": "second"}]
    first = server.asks("each", {"children": children, "turns": 2})
    woken = server.turn("each", 2)
    assert "1. each.1\n" in woken
    assert "each.2" not in woken
    assert "1 sub-agent is still at work; call sessions_yield again" in woken
    server.note("each.yield-2")
    server.lets("second")
    again = server.turn("each", 3)
    assert "1. each.2\n" in again
    assert "each.1\n" not in again
    server.announcements("each")
    assert [one["cause"] for one in server.runs_of(first)] == [None, "wake", "wake"]


def test_the_reports_of_a_batch_are_told_together(server: Yielding) -> None:
    children = [{}, {"awaits": "of the batch"}]
    server.asks("batch", {"children": children, "batch": True, "turns": 1})
    server.turn("batch-1", 1)
    wait_for("the first to be announced", lambda: _announced(server, "batch-1"))
    assert not (server.folder / "batch.turn-2").exists()
    server.lets("of the batch")
    woken = server.turn("batch", 2)
    assert "1. batch-1\n" in woken
    assert "2. batch-2\n" in woken
    server.announcements("batch")


def test_report_before_a_yield_wakes_it_at_once(server: Yielding) -> None:
    first = server.asks("late", {"children": [{}], "turns": 1, "yieldsAfter": "late.go"})
    wait_for("the child to be announced", lambda: _announced(server, "late.1"))
    server.lets("late.go")
    server.announcements("late")
    assert "1. late.1\n" in server.turn("late", 2)
    last = ["YieldRequested", "RunEnded", "ChildrenReported", "RunContinued", "RunAnnounced"]
    assert server.types(first)[-5:] == last


def test_a_yield_without_children_is_an_error(server: Yielding) -> None:
    server.asks("alone", {"turns": 1})
    said = server.note("alone.yield-1")
    assert said.startswith("[409,")
    assert "there is nothing to wait for" in said
    (entry,) = server.announcements("alone")
    assert entry["status"] == "success"


def test_one_that_does_not_end_by_itself_is_ended(server: Yielding) -> None:
    first = server.asks("lingers", {"children": [{}], "turns": 1, "then": "linger"})
    server.announcements("lingers")
    one, two = server.runs_of(first)
    assert one["outcome"] == two["outcome"] == "success"
    assert one["error"] is None


def test_a_session_that_waits_is_stopped_with_its_children(server: Yielding) -> None:
    first = server.asks("stopped", {"children": [{"awaits": "never again"}], "turns": 1})
    server.note("stopped.yield-1")
    server.run(first, "ended")
    answer = server.http.post(f"/v1/runs/{first}/stop", json={"reason": "enough"})
    assert answer.status_code == 200, answer.text
    (entry,) = server.announcements("stopped")
    assert (entry["runId"], entry["status"]) == (first, "error")
    assert "enough" in entry["text"]
    session = server.session("agent:actor:stopped")
    assert (session["activeChildren"], session["pendingDescendants"]) == (0, 0)
    assert len(server.runs_of(first)) == 1


def test_a_nest_of_orchestrators_finishes_in_a_lane_of_one(server: Yielding) -> None:
    nest = {"turns": 1, "children": [{"turns": 1, "children": [{"turns": 1, "children": [{}]}]}]}
    server.asks("nest", nest)
    (entry,) = server.announcements("nest")
    assert entry["status"] == "success"
    for name in ("nest", "nest.1", "nest.1.1"):
        assert "Status: success" in server.turn(name, 2)


def test_a_message_to_one_that_waits_is_taken_at_once(server: Yielding) -> None:
    first = server.asks("asked", {"children": [{"awaits": "asked.go"}], "turns": 1})
    server.note("asked.yield-1")
    server.run(first, "ended")
    answer = server.message(first, "how far are you?")
    assert answer.status_code == 201, answer.text
    assert server.turn("asked", 2) == "how far are you?"
    second = answer.json()["runId"]
    server.run(second, "ended")
    # Its child is at work still: it is announced when that is done, with what it found.
    assert server.run(second)["stage"] == "ended"
    server.lets("asked.go")
    (entry,) = server.announcements("asked")
    assert entry["runId"] == second
    assert "asked.1" in entry["text"]


def _announced(server: Yielding, label: str) -> bool:
    found = server.http.get("/v1/runs", params={"label": label}).json()["items"]
    return bool(found) and found[0]["stage"] == "announced"
