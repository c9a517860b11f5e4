"""Lanes: a width that holds, in order of arrival, on one server or two."""

from functools import partial
from typing import Any

import pytest

from tests.support.servers.server import Server
from tests.support.servers.stories import WIDTH
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

SLEEPERS = 6


def lane(server: Server) -> dict[str, Any]:
    """Return the lane of the children of root sessions."""
    items = server.http.get("/v1/lanes").json()["items"]
    return next((item for item in items if item["depth"] == 1), {"running": [], "queued": []})


def in_lane(server: Server, names: str) -> list[str]:
    return [run["runId"] for run in lane(server)[names]]


def are(server: Server, running: list[str], queued: list[str]) -> bool:
    return (in_lane(server, "running"), in_lane(server, "queued")) == (running, queued)


def queued_up(servers: list[Server], name: str) -> list[str]:
    """Request sleepers alternately at both servers."""
    assert lane(servers[0]) == {"running": [], "queued": []}
    return [
        servers[number % len(servers)].accepted(
            "waiter", session=f"agent:main:{name}-{number % 3}", cleanup="delete"
        )
        for number in range(SLEEPERS)
    ]


def require_width_kept(server: Server, runs: list[str]) -> None:
    """Assert from the record that no more than the width were claimed at once, in the order
    queued.
    """
    log = [run for run in server.whole_log() if run["runId"] in runs]
    running: set[str] = set()
    most = 0
    for event in log:
        if event["type"] == "RunClaimed":
            running.add(event["runId"])
        elif event["type"] == "RunEnded":
            running.discard(event["runId"])
        most = max(most, len(running))
    assert most == WIDTH
    queued = [event["runId"] for event in log if event["type"] == "RunQueued"]
    claimed = [event["runId"] for event in log if event["type"] == "RunClaimed"]
    assert claimed == [run_id for run_id in queued if run_id in claimed]


@pytest.mark.parametrize("servers_count", [1, 2])
def test_no_more_run_at_a_time_than_the_width_and_in_the_order_they_came(
    server: Server, partner: Server, servers_count: int
) -> None:
    servers = [server, partner][:servers_count]
    runs = queued_up(servers, f"lane-{servers_count}")
    for number, run_id in enumerate(runs):
        up_to = min(number + WIDTH, SLEEPERS)
        running, queued = runs[number:up_to], runs[up_to:]
        wait_for("the next in line", partial(are, server, running, queued))
        server.note(f"{run_id}.began")
        server.let_go(run_id)
        assert server.run(run_id, "archived")["outcome"] == "success"
    require_width_kept(server, runs)


def test_those_who_wait_can_be_stopped_and_the_others_move_up(
    server: Server, partner: Server
) -> None:
    runs = queued_up([server], "lane-stopped")
    stopped = [runs[WIDTH], runs[-1]]
    for run_id in stopped:
        assert partner.http.post(f"/v1/runs/{run_id}/stop", json={}).status_code == 200
        assert partner.run(run_id)["outcome"] == "stopped"
    left = [run_id for run_id in runs if run_id not in stopped]
    wait_for("the first in line", partial(are, server, left[:WIDTH], left[WIDTH:]))
    for run_id in left:
        server.note(f"{run_id}.began")
        server.let_go(run_id)
        assert server.run(run_id, "archived")["outcome"] == "success"
    for run_id in stopped:
        events = server.run(run_id, "archived") and server.events(run_id)
        assert "RunClaimed" not in events
    require_width_kept(server, runs)


def test_a_run_of_one_server_is_stopped_through_the_other(server: Server, partner: Server) -> None:
    runs = [
        item.accepted("waiter", session="agent:main:across", cleanup="delete")
        for item in (server, partner)
    ]
    for run_id in runs:
        server.note(f"{run_id}.began")
    for item in (server, partner):
        for run_id in runs:
            item.http.post(f"/v1/runs/{run_id}/stop", json={"reason": "both of you"})
    for run_id in runs:
        assert server.run(run_id, "archived")["outcome"] == "stopped"
        assert server.events(run_id).count("StopRequested") == 1
    assert len(partner.inbox("agent:main:across")) == 2
