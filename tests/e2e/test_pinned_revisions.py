"""No spawn is decided under a configuration older than the log's, whichever server takes it; and
what a session was given stays its own when the configuration changes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.child_programs import waiter
from tests.support.servers.configurations import agent, configuration, shell
from tests.support.servers.data_directories import new_place
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

ROUNDS = 4
WALKER = "agent:walker:main"


def walker_of(server: Server, key: str) -> dict[str, Any]:
    """Return the walker that this requester spawns, once it is under way."""
    return server.run(server.accepted("walker", session=key), "started")


def file_of(folder: Path, *, cap: int = 20, home: str = "first") -> dict[str, Any]:
    """A cap, and a folder for the walker, who notes where it is and waits to be let go."""
    here = f"{folder / 'notes'}/$SPAWNLOG_RUN_ID"
    script = f'pwd > "{here}.part" && mv "{here}.part" "{here}.at"; '
    script += f'while [ ! -e "{here}.go" ]; do sleep 0.05; done'
    walker = agent("walker", shell(script), workspace=str(folder / home))
    return configuration(
        agent("main", default=True),
        waiter("waiter", folder / "notes"),
        walker,
        maxChildrenPerAgent=cap,
        maxSpawnDepth=2,
    )


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with new_place() as place:
        (place / "notes").mkdir()
        yield place


@pytest.fixture(scope="module")
def first(folder: Path, module_database_url: str) -> Iterator[Server]:
    data_dir = folder / "data"
    with Server(data_dir, file_of(folder), database_url=module_database_url) as server:
        yield server


@pytest.fixture(scope="module")
def second(first: Server) -> Iterator[Server]:
    with first.twin() as other:
        yield other


def test_a_cap_that_one_server_lowered_holds_at_once_on_the_other(
    first: Server, second: Server, folder: Path
) -> None:
    for number in range(ROUNDS):
        body: dict[str, Any] = {
            "requester": {"sessionKey": f"agent:main:round-{number}"},
            "agentId": "waiter",
        }
        first.reload(file_of(folder, cap=3))
        children = [second.spawn(**body) for _ in range(2)]
        assert [one.status_code for one in children] == [201, 201]
        first.reload(file_of(folder, cap=2))
        refused = second.spawn(**body)
        assert refused.status_code == 403, refused.text
        problem = refused.json()
        assert (problem["rule"], problem["current"], problem["limit"]) == ("active_children", 2, 2)
        runs = [second.run(one.json()["runId"]) for one in (*children, refused)]
        assert runs[0]["configRevision"] < runs[2]["configRevision"]
        for run in runs[:2]:
            (folder / "notes" / f"{run['runId']}.go").touch()
            assert second.run(run["runId"], "ended")["outcome"] == "success"


@pytest.fixture
def let_go(first: Server, folder: Path) -> Iterator[list[str]]:
    """Runs that are let go in the end, the last one first."""
    runs: list[str] = []
    yield runs
    for run_id in reversed(runs):
        (folder / "notes" / f"{run_id}.go").touch()
        assert first.run(run_id, "ended")["outcome"] == "success"


def place_of(folder: Path, run: dict[str, Any]) -> str:
    """Where a walker is."""
    note = folder / "notes" / f"{run['runId']}.at"
    wait_for("a note", note.exists)
    return note.read_text().strip()


def test_a_child_of_the_same_agent_works_where_its_requester_was_put(
    first: Server, folder: Path, let_go: list[str]
) -> None:
    first.reload(file_of(folder))
    parent = walker_of(first, WALKER)
    first.reload(file_of(folder, home="second"))
    child = walker_of(first, parent["childSessionKey"])
    of_the_root = walker_of(first, WALKER)
    of_another = walker_of(first, "agent:main:main")
    runs = (parent, child, of_the_root, of_another)
    let_go += [run["runId"] for run in runs]
    places = [place_of(folder, run) for run in runs]
    assert places == [str(folder / name) for name in ("first", "first", "second", "second")]
    assert [run["workspaceDir"] for run in runs] == places


def test_a_folder_on_record_that_is_gone_refuses_and_is_not_made_again(
    first: Server, folder: Path, let_go: list[str]
) -> None:
    first.reload(file_of(folder, home="fleeting"))
    parent = walker_of(first, WALKER)
    let_go.append(parent["runId"])
    (folder / place_of(folder, parent)).rmdir()
    answer = first.spawn(session=parent["childSessionKey"], agentId="walker")
    assert (answer.status_code, answer.json()["rule"]) == (422, "workspace")
    assert "The workspace on record for the requester cannot be used" in answer.text
    assert not (folder / "fleeting").exists()


def test_an_agent_that_is_not_configured_leaves_no_folder(first: Server) -> None:
    answer = first.spawn(agentId="nobody-knows")
    assert (answer.status_code, answer.json()["rule"]) == (422, "agent_unknown")
    assert not (first.data_dir / "workspaces" / "nobody-knows").exists()
