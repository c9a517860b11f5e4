"""Verifications of a log with several servers: one at a time, and the result if its server was
killed.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.data_directories import new_place
from tests.support.servers.server import Server
from tests.support.waiting import wait_for
from world.fleet.fleet import Fleet

pytestmark = pytest.mark.kill


@pytest.fixture(scope="module")
def fleet(module_database_url: str) -> Iterator[Fleet]:
    config = configuration(agent("main", scripted(steps=[{"afterMs": 1}])))
    with new_place() as place:
        servers = Fleet(place / "data", config, 2, module_database_url)
        with servers.standing():
            answer = servers.servers[0].spawn("hello")
            assert answer.status_code == 201, answer.text
            servers.servers[0].run(answer.json()["runId"], "announced")
            yield servers


def newest(server: Server) -> dict[str, Any]:
    """Return the newest verification."""
    answer = server.http.get("/v1/log")
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["verifications"][0])


def start(server: Server) -> dict[str, Any]:
    """Return the answer to a start."""
    answer = server.http.post("/v1/log/verifications")
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def over(server: Server) -> dict[str, Any]:
    """Return the newest verification once it has ended."""
    return wait_for(
        "the verification to end",
        lambda: found if (found := newest(server))["state"] != "running" else None,
    )


@contextmanager
def held(server: Server) -> Iterator[psycopg.Connection[Any]]:
    """Block a verification that begins meanwhile in its middle."""
    with psycopg.connect(server.conninfo) as connection:
        connection.execute("LOCK TABLE contents IN ACCESS EXCLUSIVE MODE")
        yield connection


def test_of_two_servers_one_begins_and_both_tell(fleet: Fleet) -> None:
    with held(fleet.servers[0]), ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(start, fleet.servers))
        numbers = {answer["verification"]["number"] for answer in answers}
        assert sorted(answer["began"] for answer in answers) == [False, True]
        assert [newest(server)["state"] for server in fleet.servers] == ["running", "running"]
    ends = [over(server) for server in fleet.servers]
    assert ends[0] == ends[1]
    assert numbers == {ends[0]["number"]}
    head = fleet.servers[0].http.get("/v1/log").json()
    assert (ends[0]["state"], ends[0]["startedBy"], ends[0]["origin"]) == (
        *("right", "admin"),
        "server",
    )
    assert (ends[0]["last"], ends[0]["headHash"]) == (head["position"], head["chainHash"])


def test_killed_verification_was_broken_off(fleet: Fleet) -> None:
    first, second = fleet.servers
    with held(first):
        number = start(first)["verification"]["number"]
        assert not start(second)["began"]
        first.kill()
        gone = over(second)
        assert (gone["number"], gone["state"], gone["endedAt"]) == (number, "broken-off", None)
    first.start()
    assert start(first)["began"]
    assert over(second)["state"] == "right"
    history = second.http.get("/v1/log").json()["verifications"]
    assert [event["state"] for event in history[:2]] == ["right", "broken-off"]


def test_command_and_servers_give_way_to_each_other(fleet: Fleet) -> None:
    first, second = fleet.servers
    head = first.http.get("/v1/log").json()
    done = first.log_command("verify")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{head['position']}:{head['chainHash']}"
    found = newest(second)
    assert (found["state"], found["origin"], found["startedBy"]) == ("right", "command", "system")
    path = "/v1/log/verifications/current/stop"
    with held(first):
        start(second)
        refused = first.log_command("verify")
        assert refused.returncode == 2
        assert "another process is already verifying this log" in refused.stderr
        stopping = first.http.post(path).json()
        assert stopping["wasUnderWay"] is True
    assert over(second)["stopRequestedBy"] == "admin"
