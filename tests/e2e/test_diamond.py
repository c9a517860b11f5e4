"""A diamond of runs: the last is given what both before it said, whenever a server is killed."""

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

TELLER = "teller"
"""Says what it was given."""
SLOW_TELLER = "slow-teller"
"""The same, once the script that is run while it is prepared was let go."""


def telling(folder: Path) -> dict[str, Any]:
    """A configuration with agents that say what they were given."""
    config = mortal_stories(folder)
    agents = config["agents"]["list"]
    (slow,) = [one for one in agents if one["id"] == "slow"]
    tells = {"runtime": shell("cat", input="stdin-json")}
    agents += [
        slow | tells | {"id": SLOW_TELLER},
        agent(TELLER, workspace=slow["workspace"]) | tells,
    ]
    return config


class Diamond:
    """`first` is prepared until it is let go, and so is `left` if it is to be slow."""

    def __init__(self, server: Server, name: str, *, slow_left: bool = False) -> None:
        self.server = server
        self.session = f"agent:main:{name}"
        self.key = f"last {name}"
        self._aside = [self._asked_aside("slow", label="first")]
        self.first = self._prepared("first")
        self.right = self._asked("right", "first")
        if slow_left:
            self._aside.append(self._asked_aside(SLOW_TELLER, **_after("left", "first")))
            self.left = self._prepared("left")
        else:
            self.left = self._asked("left", "first")
        self.last = ""

    def ask_for_last(self) -> None:
        """Ask for the last run; the server may die of it."""
        self.server.spawn_unanswered(self.key, **self._last)

    def find_last(self) -> None:
        """The same request gives the last run, whether it was answered before or not."""
        answer = self.server.spawn_again(self.key, **self._last)
        assert answer.status_code == 201, answer.text
        self.last = str(answer.json()["runId"])

    def let_go(self, run_id: str) -> None:
        """Let a run be prepared to its end."""
        self.server.let_go(run_id)

    def close(self) -> None:
        """Nobody asks any more."""
        for aside in self._aside:
            aside.answer()

    def at_its_end(self) -> dict[str, dict[str, Any]]:
        """All runs, each announced and told once, with nothing left of them."""
        ids = {"first": self.first, "left": self.left, "right": self.right, "last": self.last}
        runs = {name: self.server.run(run_id, "announced") for name, run_id in ids.items()}
        inbox = [one["runId"] for one in self.server.inbox(self.session)]
        assert sorted(inbox) == sorted(ids.values())
        assert self.server.session(self.session)["activeChildren"] == 0
        for run_id in ids.values():
            events = self.server.events(run_id)
            for name in ("SpawnRequested", "SessionCreated", "RunEnded", "RunAnnounced"):
                assert events.count(name) == 1, (name, events)
            assert events.count("RunQueued") <= 1
        self.close()
        return runs

    def is_whole(self) -> None:
        """Every run succeeded, and was given all that it was to be given."""
        runs = self.at_its_end()
        assert {one["outcome"] for one in runs.values()} == {"success"}
        given = _given(runs["last"])
        assert list(given) == ["left", "right"]
        for name in given:
            assert given[name] == runs[name]["resultText"]
            assert _given(runs[name]) == {"first": runs["first"]["resultText"]}
        met = [one for one in self.server.events(self.last) if one == "DependencyMet"]
        assert len(met) == 2

    @property
    def _last(self) -> dict[str, Any]:
        return {
            "requester": {"sessionKey": self.session},
            "agentId": TELLER,
            **_after("last", "left", "right"),
        }

    def _asked(self, label: str, *after: str) -> str:
        requester = {"sessionKey": self.session}
        run_id = self.server.accepted(TELLER, requester=requester, **_after(label, *after))
        assert self.server.run(run_id)["status"] == "waiting"
        return run_id

    def _asked_aside(self, agent_id: str, **body: Any) -> Background:
        requester = {"sessionKey": self.session}
        return self.server.spawn_in_background(agentId=agent_id, requester=requester, **body)

    def _prepared(self, label: str) -> str:
        query = {"requester": self.session, "label": label, "stage": "requested"}

        def found() -> str | None:
            items = self.server.http.get("/v1/runs", params=query).json()["items"]
            return str(items[0]["runId"]) if items else None

        run_id = wait_for(f"{label} to be prepared", found)
        self.server.note(f"slow.{run_id}")
        return run_id


def _after(label: str, *names: str) -> dict[str, Any]:
    return {"label": label, "sharedContext": {f"${name}": "reference" for name in names}}


def _given(run: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(run["resultText"])["sharedContext"])


ASKING = [
    f"{when} {event}" for event in ("SpawnRequested", "RunWaits") for when in ("before", "after")
]
GOING_ON = [
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


@pytest.fixture(scope="module")
def one_that_tells(databases: Databases) -> Iterator[Server]:
    with serving(databases, telling, dies=True) as running:
        yield running


@pytest.fixture
def server(one_that_tells: Server) -> Server:
    one_that_tells.ensure_running()
    return one_that_tells


def name_of(moment: str) -> str:
    return "-".join(["diamond", *moment.lower().split()])


@pytest.mark.kill
def test_nobody_is_killed(server: Server) -> None:
    diamond = Diamond(server, "diamond")
    diamond.ask_for_last()
    diamond.find_last()
    assert server.run(diamond.last)["status"] == "waiting"
    diamond.let_go(diamond.first)
    diamond.is_whole()


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(ASKING, ["after RunWaits"]))
def test_the_server_is_killed_while_the_last_is_asked_for(server: Server, moment: str) -> None:
    diamond = Diamond(server, name_of(f"asking {moment}"))
    server.die_at(moment)
    diamond.ask_for_last()
    server.wait_death()
    server.restart()
    diamond.find_last()
    diamond.let_go(diamond.first)
    diamond.is_whole()


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(GOING_ON, ["after DependencyMet"]))
def test_the_server_is_killed_while_the_diamond_goes_on(server: Server, moment: str) -> None:
    diamond = Diamond(server, name_of(f"going on {moment}"))
    diamond.ask_for_last()
    diamond.find_last()
    server.die_at(moment)
    diamond.let_go(diamond.first)
    server.wait_death()
    server.restart()
    diamond.is_whole()


@pytest.mark.kill
@pytest.mark.nightly
@pytest.mark.parametrize("moment", AT_LAST)
def test_the_server_is_killed_before_the_last_is_queued(server: Server, moment: str) -> None:
    diamond = Diamond(server, name_of(f"at last {moment}"), slow_left=True)
    diamond.ask_for_last()
    diamond.find_last()
    diamond.let_go(diamond.first)
    server.run(diamond.right, "announced")
    server.die_at("after DependencyMet")
    # The one of left, which waits no more when it is prepared.
    diamond.let_go(diamond.left)
    server.wait_death()
    server.die_again(moment)
    server.restart()
    diamond.is_whole()
    assert "RunWaits" not in server.events(diamond.left)


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(INTERRUPTING, ["after RunStarted"]))
def test_those_behind_a_run_that_was_lost_say_so(server: Server, moment: str) -> None:
    diamond = Diamond(server, name_of(f"lost {moment}"))
    diamond.ask_for_last()
    diamond.find_last()
    server.die_at(moment)
    diamond.let_go(diamond.first)
    server.wait_death()
    server.restart()
    runs = diamond.at_its_end()
    assert {one["outcome"] for one in runs.values()} == {"error"}
    assert runs["first"]["error"].startswith("interrupted")
    for name, behind in (("left", "first"), ("right", "first"), ("last", "")):
        assert f'it was not started: "{behind}' in runs[name]["error"]
        assert runs[name]["startedAt"] is None


@pytest.mark.kill
@pytest.mark.nightly
@pytest.mark.parametrize("moment", ["before RunEnded", "after RunEnded"])
def test_the_end_of_a_run_that_waited_in_vain_is_recorded_once(server: Server, moment: str) -> None:
    diamond = Diamond(server, name_of(f"in vain {moment}"))
    diamond.ask_for_last()
    diamond.find_last()
    server.die_at(moment)
    # Refused, not ended: the first end is that of one that waited for it.
    answer = server.http.post(f"/v1/runs/{diamond.first}/stop", json={})
    assert answer.status_code == 200, answer.text
    server.wait_death()
    server.restart()
    diamond.close()
    for run_id in (diamond.left, diamond.right, diamond.last):
        run = server.run(run_id, "announced")
        assert run["outcome"] == "error"
        assert server.events(run_id).count("RunEnded") == 1
        assert len([one for one in server.inbox(diamond.session) if one["runId"] == run_id]) == 1
    assert f'"first" (run {diamond.first}), which it depends on, was refused' in str(
        server.run(diamond.left)["error"]
    )


@pytest.mark.kill
def test_another_server_goes_on_with_what_waits(server: Server) -> None:
    diamond = Diamond(server, "diamond-of-two")
    diamond.ask_for_last()
    diamond.find_last()
    with server.twin() as other:
        server.kill()
        server.expire_leases(other.url)
        diamond.let_go(diamond.first)
        assert other.run(diamond.last, "announced")["outcome"] == "success"
        assert other.run(diamond.left)["outcome"] == "success"
    server.start()
    diamond.is_whole()
