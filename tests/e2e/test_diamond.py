"""A diamond of runs: the last one gets the results of both before it, whenever a server is
killed.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.configurations import agent, shell
from tests.support.servers.databases import Databases
from tests.support.servers.server import Background, Server, serving
from tests.support.servers.stories import mortal_stories
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill

TELLER = "teller"
"""Agent that returns its input."""
SLOW_TELLER = "slow-teller"
"""Agent that returns its input, after the script of its preparation was released."""


def telling(folder: Path) -> dict[str, Any]:
    """Return a configuration with agents that return their input."""
    config = mortal_stories(folder)
    agents = config["agents"]["list"]
    (slow,) = [agent for agent in agents if agent["id"] == "slow"]
    tells = {"runtime": shell("cat", input="stdin-json")}
    agents += [
        slow | tells | {"id": SLOW_TELLER},
        agent(TELLER, workspace=slow["workspace"]) | tells,
    ]
    return config


@pytest.fixture(scope="module")
def one_server(databases: Databases) -> Iterator[Server]:
    with serving(databases, telling, dies=True) as running:
        yield running


@pytest.fixture
def server(one_server: Server) -> Server:
    one_server.ensure_running()
    return one_server


class Diamond:
    """`first` is prepared until it is let go, and so is `left` if it is to be slow. `left` and
    `right` refer to it, and `last` to both; the server may die of the request for that."""

    def __init__(
        self, server: Server, name: str, *, slow_left: bool = False, dies_at: str = ""
    ) -> None:
        self.server = server
        self.session = "agent:main:" + "-".join(["diamond", *name.lower().split()])
        self._aside: list[Background] = []
        first = self._prepared("slow", "first")
        right = self._waiting("right", "first")
        left = (
            self._prepared(SLOW_TELLER, "left", "first")
            if slow_left
            else self._waiting("left", "first")
        )
        last = {"key": name, "agentId": TELLER, **self._body("last", "left", "right")}
        if dies_at:
            server.die_during(dies_at, **last)
            server.restart()
        answer = server.spawn_again(**last)
        assert answer.status_code == 201, answer.text
        self.runs = {"first": first, "left": left, "right": right, "last": answer.json()["runId"]}

    def _body(self, label: str, *names: str) -> dict[str, Any]:
        shared = {f"${name}": "reference" for name in names}
        return {"session": self.session, "label": label, "sharedContext": shared}

    def _waiting(self, label: str, *after: str) -> str:
        run_id = self.server.accepted(TELLER, **self._body(label, *after))
        assert self.server.run(run_id)["status"] == "waiting"
        return run_id

    def _prepared(self, agent_id: str, label: str, *after: str) -> str:
        body = self._body(label, *after)
        self._aside.append(self.server.spawn_in_background(agentId=agent_id, **body))
        query = {"requester": self.session, "label": label, "stage": "requested"}
        (run,) = wait_for(f"{label} to be prepared", lambda: self.server.runs(**query))
        self.server.note(f"slow.{run['runId']}")
        return str(run["runId"])

    def let_go(self, name: str) -> None:
        """Let a run be prepared to its end."""
        self.server.let_go(self.runs[name])

    def ended(self) -> dict[str, dict[str, Any]]:
        """Return all runs; assert that each is announced once, with no work left."""
        runs = {name: self.server.run(run, "announced") for name, run in self.runs.items()}
        inbox = [run["runId"] for run in self.server.inbox(self.session)]
        assert sorted(inbox) == sorted(self.runs.values())
        assert self.server.session(self.session)["activeChildren"] == 0
        for run_id in self.runs.values():
            events = self.server.events(run_id)
            for name in ("SpawnRequested", "SessionCreated", "RunEnded", "RunAnnounced"):
                assert events.count(name) == 1, (name, events)
            assert events.count("RunQueued") <= 1
        self.close()
        return runs

    def close(self) -> None:
        """Wait for all callers."""
        for aside in self._aside:
            aside.answer()

    def require_whole(self) -> None:
        """Require that every run succeeds, and is given all that it is to be given."""
        runs = self.ended()
        assert {run["outcome"] for run in runs.values()} == {"success"}
        texts = {name: run["resultText"] for name, run in runs.items()}
        assert _given(texts["last"]) == {name: texts[name] for name in ("left", "right")}
        for name in ("left", "right"):
            assert _given(texts[name]) == {"first": texts["first"]}


def _given(text: str) -> dict[str, Any]:
    return dict(json.loads(text)["sharedContext"])


ASKING = [
    f"{when} {text}" for text in ("SpawnRequested", "RunWaits") for when in ("before", "after")
]
CONTINUING = [
    "before RunQueued",
    "after RunQueued",
    "after RunClaimed",
    "before RunStarted",
    "after RunEnded",
    "before DependencyMet",
    "after DependencyMet",
]
INTERRUPTING = ["after RunStarted", "before RunEnded"]
AT_LAST = ["before DependencyMet", "after DependencyMet", "before RunQueued", "after RunQueued"]


def test_last_is_given_what_both_before_it_said(server: Server) -> None:
    diamond = Diamond(server, "whole")
    assert server.run(diamond.runs["last"])["status"] == "waiting"
    diamond.let_go("first")
    diamond.require_whole()


@pytest.mark.parametrize("moment", nightly_but(ASKING, ["after RunWaits"]))
def test_last_is_asked_for_when_server_is_killed(server: Server, moment: str) -> None:
    diamond = Diamond(server, f"asking {moment}", dies_at=moment)
    diamond.let_go("first")
    diamond.require_whole()


@pytest.mark.parametrize("moment", nightly_but(CONTINUING, ["after DependencyMet"]))
def test_diamond_continues_when_server_is_killed(server: Server, moment: str) -> None:
    diamond = Diamond(server, f"going on {moment}")
    server.die_at(moment)
    diamond.let_go("first")
    server.wait_death()
    server.restart()
    diamond.require_whole()


@pytest.mark.nightly
@pytest.mark.parametrize("moment", AT_LAST)
def test_last_is_queued_when_server_is_killed_again(server: Server, moment: str) -> None:
    diamond = Diamond(server, f"at last {moment}", slow_left=True)
    diamond.let_go("first")
    server.run(diamond.runs["right"], "announced")
    server.die_at("after DependencyMet")
    # The server dies after the dependency of `left` is met, before the run is prepared.
    diamond.let_go("left")
    server.wait_death()
    server.die_again(moment)
    server.restart()
    diamond.require_whole()
    assert "RunWaits" not in server.events(diamond.runs["left"])


@pytest.mark.parametrize("moment", nightly_but(INTERRUPTING, ["after RunStarted"]))
def test_runs_behind_lost_one_say_so(server: Server, moment: str) -> None:
    diamond = Diamond(server, f"lost {moment}")
    server.die_at(moment)
    diamond.let_go("first")
    server.wait_death()
    server.restart()
    runs = diamond.ended()
    assert {run["outcome"] for run in runs.values()} == {"error"}
    assert runs["first"]["error"].startswith("interrupted")
    for name, behind in (("left", "first"), ("right", "first"), ("last", "")):
        assert f'it was not started: its dependency "{behind}' in runs[name]["error"]
        assert runs[name]["startedAt"] is None


@pytest.mark.nightly
@pytest.mark.parametrize("moment", ["before RunEnded", "after RunEnded"])
def test_end_of_run_that_waited_in_vain_is_recorded_once(server: Server, moment: str) -> None:
    diamond = Diamond(server, f"in vain {moment}")
    server.die_at(moment)
    # Refused, not ended: the first end is that of a dependent run.
    first = diamond.runs["first"]
    assert server.http.post(f"/v1/runs/{first}/stop", json={}).status_code == 200
    server.wait_death()
    server.restart()
    diamond.close()
    for name in ("left", "right", "last"):
        run = server.run(diamond.runs[name], "announced")
        assert run["outcome"] == "error"
        assert server.events(run["runId"]).count("RunEnded") == 1
        run_ids = [run["runId"] for run in server.inbox(diamond.session)]
        assert run_ids.count(run["runId"]) == 1
    error = str(server.run(diamond.runs["left"])["error"])
    assert f'its dependency "first" (run {first}) was refused' in error


def test_other_server_continues_what_waits(server: Server) -> None:
    diamond = Diamond(server, "of two")
    with server.twin() as second_server:
        server.kill()
        server.expire_leases(second_server.url)
        diamond.let_go("first")
        for name in ("last", "left"):
            assert second_server.run(diamond.runs[name], "announced")["outcome"] == "success"
    server.start()
    diamond.require_whole()
