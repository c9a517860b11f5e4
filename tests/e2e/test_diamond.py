"""A diamond of dependencies with references: the last run has what both before it said, whenever
the server is killed; where a run is lost that had started, those that depend on it say so."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.diamond import Diamond, telling
from tests.support.servers.databases import Databases
from tests.support.servers.mortal_server import Mortal, mortal_on
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.kill

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
def one_that_tells(databases: Databases) -> Iterator[Mortal]:
    with mortal_on(databases, telling_server) as server:
        yield server


def telling_server(data_dir: Path, folder: Path, url: str, **more: Any) -> Mortal:
    return Mortal(data_dir, folder, url, config=telling(folder), **more)


@pytest.fixture
def server(one_that_tells: Mortal) -> Mortal:
    one_that_tells.alive()
    return one_that_tells


def name_of(moment: str) -> str:
    return "-".join(["diamond", *moment.lower().split()])


def test_nobody_is_killed(server: Mortal) -> None:
    diamond = Diamond(server, "diamond")
    diamond.ask_for_last()
    diamond.find_last()
    assert server.run(diamond.last)["status"] == "waiting"
    diamond.let_go(diamond.first)
    diamond.is_whole()


@pytest.mark.parametrize("moment", nightly_but(ASKING, ["after RunWaits"]))
def test_the_server_is_killed_while_the_last_is_asked_for(server: Mortal, moment: str) -> None:
    diamond = Diamond(server, name_of(f"asking {moment}"))
    server.is_to_die(moment)
    diamond.ask_for_last()
    server.has_died()
    server.again()
    diamond.find_last()
    diamond.let_go(diamond.first)
    diamond.is_whole()


@pytest.mark.parametrize("moment", nightly_but(GOING_ON, ["after DependencyMet"]))
def test_the_server_is_killed_while_the_diamond_goes_on(server: Mortal, moment: str) -> None:
    diamond = Diamond(server, name_of(f"going on {moment}"))
    diamond.ask_for_last()
    diamond.find_last()
    server.is_to_die(moment)
    diamond.let_go(diamond.first)
    server.has_died()
    server.again()
    diamond.is_whole()


@pytest.mark.nightly
@pytest.mark.parametrize("moment", AT_LAST)
def test_the_server_is_killed_before_the_last_is_queued(server: Mortal, moment: str) -> None:
    diamond = Diamond(server, name_of(f"at last {moment}"), slow_left=True)
    diamond.ask_for_last()
    diamond.find_last()
    diamond.let_go(diamond.first)
    server.run(diamond.right, "announced")
    server.is_to_die("after DependencyMet")
    # The one of left, which waits no more when it is prepared.
    diamond.let_go(diamond.left)
    server.has_died()
    server.dies_again(moment)
    server.again()
    diamond.is_whole()
    assert "RunWaits" not in server.events(diamond.left)


@pytest.mark.parametrize("moment", nightly_but(INTERRUPTING, ["after RunStarted"]))
def test_those_behind_a_run_that_was_lost_say_so(server: Mortal, moment: str) -> None:
    diamond = Diamond(server, name_of(f"lost {moment}"))
    diamond.ask_for_last()
    diamond.find_last()
    server.is_to_die(moment)
    diamond.let_go(diamond.first)
    server.has_died()
    server.again()
    runs = diamond.at_its_end()
    assert {one["outcome"] for one in runs.values()} == {"error"}
    assert runs["first"]["error"].startswith("interrupted")
    for name, behind in (("left", "first"), ("right", "first"), ("last", "")):
        assert f'it was not started: "{behind}' in runs[name]["error"]
        assert runs[name]["startedAt"] is None


@pytest.mark.nightly
@pytest.mark.parametrize("moment", ["before RunEnded", "after RunEnded"])
def test_the_end_of_a_run_that_waited_in_vain_is_recorded_once(server: Mortal, moment: str) -> None:
    diamond = Diamond(server, name_of(f"in vain {moment}"))
    diamond.ask_for_last()
    diamond.find_last()
    server.is_to_die(moment)
    # Refused, not ended: the first end is that of one that waited for it.
    answer = server.http.post(f"/v1/runs/{diamond.first}/stop", json={})
    assert answer.status_code == 200, answer.text
    server.has_died()
    server.again()
    diamond.close()
    for run_id in (diamond.left, diamond.right, diamond.last):
        run = server.run(run_id, "announced")
        assert run["outcome"] == "error"
        assert server.events(run_id).count("RunEnded") == 1
        assert len([one for one in server.inbox(diamond.session) if one["runId"] == run_id]) == 1
    assert f'"first" (run {diamond.first}), which it depends on, was refused' in str(
        server.run(diamond.left)["error"]
    )


def test_another_server_goes_on_with_what_waits(server: Mortal) -> None:
    diamond = Diamond(server, "diamond-of-two")
    diamond.ask_for_last()
    diamond.find_last()
    other = telling_server(server.data_dir, server.folder, server.database_url, order="other")
    other.log_path = server.log_path.with_name("other.log")
    with other:
        server.kill()
        server.forget_the_dead(other.url)
        diamond.let_go(diamond.first)
        assert other.run(diamond.last, "announced")["outcome"] == "success"
        assert other.run(diamond.left)["outcome"] == "success"
    server.start()
    diamond.is_whole()
