"""Orchestrators yield and are woken by their children's reports, also when a server is killed."""

import os
from collections import Counter
from contextlib import suppress
from itertools import product
from typing import Any

import httpx2
import pytest

from tests.support.servers.orchestrators import announcements, orchestrate, turn, turns_of
from tests.support.servers.server import Server
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for


@pytest.mark.server
def test_a_run_that_yields_is_woken_and_only_its_last_turn_is_announced(server: Server) -> None:
    first = orchestrate(server, "simple", {"children": [{"awaits": "simple.go"}], "turns": 1})
    server.run(first, "ended")
    server.touch("simple.go")
    woken = turn(server, "simple", 2)
    assert woken.startswith("[Subagent Context] Your prior run ended while waiting")
    assert "All pending descendants for that run have now settled." in woken
    assert "\nTask: simple\n" in woken
    assert "Child completion results:\n1. simple.1\nStatus: success\n" in woken
    (entry,) = announcements(server, "simple")
    run, two = turns_of(server, first)
    assert entry["runId"] == two["runId"]
    assert (run["yielded"], run["continuedBy"], run["stage"]) == (True, two["runId"], "announced")
    assert run["announcement"]["state"] == "skipped"
    assert run["announcement"]["reason"] == (
        f"it yielded; run {two['runId']} continues its session"
    )
    assert (two["cause"], two["continues"], two["yielded"]) == ("wake", run["runId"], False)
    assert server.events(first)[-6:] == [
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


@pytest.mark.server
def test_each_report_wakes_it_until_it_ends_without_yielding(server: Server) -> None:
    children = [{}, {"awaits": "second"}]
    first = orchestrate(server, "each", {"children": children, "turns": 2})
    woken = turn(server, "each", 2)
    assert "1. each.1\n" in woken
    assert "each.2" not in woken
    assert "1 sub-agent is still at work; call sessions_yield again" in woken
    server.note("each.yield-2")
    server.touch("second")
    again = turn(server, "each", 3)
    assert "1. each.2\n" in again
    assert "each.1\n" not in again
    announcements(server, "each")
    assert [turn["cause"] for turn in turns_of(server, first)] == [None, "wake", "wake"]


@pytest.mark.server
def test_report_before_a_yield_wakes_it_at_once(server: Server) -> None:
    first = orchestrate(server, "late", {"children": [{}], "turns": 1, "yieldsAfter": "late.go"})
    wait_for("the child to be announced", lambda: _announced(server, "late.1"))
    server.touch("late.go")
    announcements(server, "late")
    assert "1. late.1\n" in turn(server, "late", 2)
    last = ["YieldRequested", "RunEnded", "ChildrenReported", "RunContinued", "RunAnnounced"]
    assert server.events(first)[-5:] == last


@pytest.mark.server
def test_one_that_does_not_end_by_itself_is_ended(server: Server) -> None:
    first = orchestrate(server, "lingers", {"children": [{}], "turns": 1, "then": "linger"})
    announcements(server, "lingers")
    run, two = turns_of(server, first)
    assert run["outcome"] == two["outcome"] == "success"
    assert run["error"] is None


@pytest.mark.server
def test_a_nest_of_orchestrators_finishes_in_a_lane_of_one(server: Server) -> None:
    nest = {"turns": 1, "children": [{"turns": 1, "children": [{"turns": 1, "children": [{}]}]}]}
    orchestrate(server, "nest", nest)
    (entry,) = announcements(server, "nest")
    assert entry["status"] == "success"
    for name in ("nest", "nest.1", "nest.1.1"):
        assert "Status: success" in turn(server, name, 2)


@pytest.mark.server
def test_a_message_to_one_that_waits_is_taken_at_once(server: Server) -> None:
    first = orchestrate(server, "asked", {"children": [{"awaits": "asked.go"}], "turns": 1})
    server.note("asked.yield-1")
    server.run(first, "ended")
    answer = server.send(first, "how far are you?")
    assert answer.status_code == 201, answer.text
    assert turn(server, "asked", 2) == "how far are you?"
    second = answer.json()["runId"]
    server.run(second, "ended")
    # Its child is still active: it is announced with the child's findings when that is done.
    assert server.run(second)["stage"] == "ended"
    server.touch("asked.go")
    (entry,) = announcements(server, "asked")
    assert entry["runId"] == second
    assert "asked.1" in entry["text"]


def _announced(server: Server, label: str) -> bool:
    found = server.http.get("/v1/runs", params={"label": label}).json()["items"]
    return bool(found) and found[0]["stage"] == "announced"


MOMENTS = ("before", "after")
OF_A_YIELD = (
    "YieldRequested",
    "RunEnded",
    "RunAnnounced",
    "ChildrenReported",
    "RunContinued",
    "SessionContinued",
    "ContinuationPlanned",
    "RunStarted",
)
OF_A_STEER = ("MessageQueued", "RunEnded", "RunContinued", "RunStarted")
OF_A_QUEUE = ("MessageQueued", "RunAnnounced", "RunContinued", "RunQueued")


def name_at(moment: str, event: str) -> str:
    return f"{moment}-{event.lower()}"


def settled(server: Server, name: str) -> list[dict[str, Any]]:
    """Return the runs of a session when all are over; assert that each is in an inbox at most
    once.
    """
    first = server.http.get("/v1/runs", params={"label": name, "order": "asc"}).json()["items"][0]
    runs = turns_of(server, str(first["runId"]))
    entries = announcements(server, name)
    assert max(Counter(entry["runId"] for entry in entries).values()) == 1
    session = server.session(f"agent:actor:{name}")
    assert (session["activeChildren"], session["pendingDescendants"]) == (0, 0)
    for run in runs:
        events = Counter(server.events(str(run["runId"])))
        assert {events[name] for name in ("RunEnded", "RunAnnounced")} == {1}, events
    return runs


@pytest.mark.server
@pytest.mark.parametrize(
    ("moment", "event"),
    nightly_but(product(MOMENTS, OF_A_YIELD), [("after", "ChildrenReported")]),
)
def test_a_yield_survives_a_kill(server: Server, moment: str, event: str) -> None:
    name = name_at(moment, event)
    child = {"awaits": f"{name}.go"}
    orchestrate(server, name, {"children": [child], "turns": 1, "awaits": f"{name}.yields"})
    turn(server, name, 1)
    server.die_at(f"{moment} {event}")
    server.touch(f"{name}.yields")
    server.touch(f"{name}.go")
    server.wait_death()
    server.restart()
    announcements(server, name)
    runs = settled(server, name)
    woken = [run for run in runs if run["cause"] == "wake"]
    reports = [report for run in woken for report in reports_in(server, str(run["runId"]))]
    assert max(Counter(reports).values(), default=0) <= 1, "a report was told twice"
    # After any kill of the server, the requester gets the end of the session once.
    assert [run["announcement"]["state"] for run in runs].count("delivered") == 1
    if any(run["yielded"] for run in runs):
        assert reports or runs[-1]["outcome"] == "error"


@pytest.mark.server
@pytest.mark.parametrize(
    ("moment", "event"), nightly_but(product(MOMENTS, OF_A_STEER), [("after", "MessageQueued")])
)
def test_a_steer_survives_a_kill(server: Server, moment: str, event: str) -> None:
    name = "steer-" + name_at(moment, event)
    first = orchestrate(server, name, {"awaits": f"{name}.go"})
    turn(server, name, 1)
    server.die_at(f"{moment} {event}")
    with suppress(httpx2.TransportError):
        server.send(first, "do this instead", mode="steer")
    server.wait_death()
    server.touch(f"{name}.go")
    server.restart()
    announcements(server, name)
    runs = settled(server, name)
    queued = server.events(first).count("MessageQueued")
    assert [run["cause"] for run in runs] == [None, "steer"][: 1 + queued]


@pytest.mark.server
@pytest.mark.parametrize(
    ("moment", "event"), nightly_but(product(MOMENTS, OF_A_QUEUE), [("after", "RunAnnounced")])
)
def test_a_message_that_waits_survives_a_kill(server: Server, moment: str, event: str) -> None:
    name = "queue-" + name_at(moment, event)
    first = orchestrate(server, name, {"awaits": f"{name}.go"})
    turn(server, name, 1)
    is_asked_late = event == "MessageQueued"
    if not is_asked_late:
        assert server.send(first, "and then?").status_code == 202
    server.die_at(f"{moment} {event}")
    if is_asked_late:
        with suppress(httpx2.TransportError):
            server.send(first, "and then?")
    server.touch(f"{name}.go")
    server.wait_death()
    server.restart()
    queued = server.events(first).count("MessageQueued")
    announcements(server, name, 1 + queued)
    runs = settled(server, name)
    assert [run["cause"] for run in runs] == [None, "message"][: 1 + queued]


def reports_in(server: Server, run_id: str) -> list[str]:
    """Return the children whose reports are in the message of a run, by the event."""
    items = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    return [str(completion) for completion in items[0]["payload"]["completions"]]


NESTS = int(os.environ.get("SPAWNLOG_TEST_NESTS", "12"))
"""Number of nests; a longer run uses 200."""

SECONDS_MAX = 30 + 3 * NESTS
NEST = {"turns": 1, "children": [{"turns": 1, "children": [{"turns": 1, "children": [{}]}]}]}


@pytest.mark.server
@pytest.mark.nightly
@pytest.mark.timeout(60 + SECONDS_MAX)
def test_nests_that_yield_finish_though_a_server_is_killed(server: Server) -> None:
    before = len(server.whole_log())
    two = server.twin()
    two.start()
    try:
        names = [f"nest-{number}" for number in range(NESTS)]
        for number, name in enumerate(names):
            orchestrate(two if number % 2 else server, name, NEST)
        wait_for("a nest to be woken", lambda: list(server.folder.glob("nest-*.turn-2")))
        two.kill()
        wait_for(
            "every nest to be announced",
            lambda: all(_is_told(server, name) for name in names),
            seconds=SECONDS_MAX,
        )
        log = server.whole_log()[before:]
    finally:
        two.stop()
    ends = [event for event in log if event["type"] == "RunEnded"]
    lost = [event for event in ends if event["payload"]["reason"] == "interrupted"]
    woken = Counter(
        completion
        for event in log
        if event["type"] == "MessageReceived"
        for completion in event["payload"]["completions"]
    )
    assert set(woken.values()) == {1}
    # If no run was lost, each of the three orchestrators was woken once.
    assert len(woken) >= 3 * (NESTS - len(lost))
    for name in names:
        (entry,) = announcements(server, name)
        assert entry["status"] in ("success", "error")
        session = server.session(f"agent:actor:{name}")
        assert (session["activeChildren"], session["pendingDescendants"]) == (0, 0)


def _is_told(server: Server, name: str) -> bool:
    return bool(server.inbox(f"agent:actor:{name}"))
