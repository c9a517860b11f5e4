"""Changed files and SIGHUP: what is under way keeps its configuration, its secrets included."""

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.launches import program
from tests.support.servers.child_programs import waiter
from tests.support.servers.configurations import agent, configuration, scripted, shell
from tests.support.servers.databases import Databases
from tests.support.servers.preloaded import ROOT
from tests.support.servers.server import Server, serving
from tests.support.waiting import wait_for

KEY = "agent:main:reloading"
OLD_WORD, NEW_WORD = "the-old-word", "the-new-word"
UNSET = "SPAWNLOG_TEST_NOBODY_SETS_THIS"
RUNS_MAX = 60


def file_of(folder: Path, *first: dict[str, Any], word: str, **subagents: Any) -> dict[str, Any]:
    """The configuration, with these agents before the others."""
    return configuration(
        *first,
        agent("main", default=True),
        waiter("waiter", folder / "notes"),
        agent("teller", shell('printf %s "$WORD"', input="stdin-text", env={"WORD": word})),
        agent("homeless", workspace=f"${{{UNSET}}}/place"),
        maxConcurrent=1,
        maxChildrenPerAgent=20,
        **subagents,
    )


def holder_of(server: Server, run_id: str) -> str:
    """Return who executed a run."""
    (claimed,) = server.payloads(run_id, "RunClaimed")
    return str(claimed["holder"])


@pytest.fixture(scope="module")
def reloaded(databases: Databases) -> Iterator[Server]:
    """A server whose file changes."""

    def config(notes: Path) -> dict[str, Any]:
        return file_of(notes.parent, word=OLD_WORD)

    with serving(databases, config) as running:
        yield running


@pytest.fixture(scope="module")
def folder(reloaded: Server) -> Path:
    """Where its file, its data and the notes are."""
    return reloaded.data_dir.parent


@pytest.fixture
def place(reloaded: Server) -> Path:
    """Where its file and its data are; the file is as it was at first."""
    folder = reloaded.data_dir.parent
    reloaded.reload(file_of(folder, word=OLD_WORD))
    return folder


@pytest.mark.server
def test_a_queued_run_gets_the_secret_of_the_file_it_was_asked_under(
    reloaded: Server, place: Path
) -> None:
    running = reloaded.accepted("waiter", session=KEY, cleanup="delete")
    wait_for("it to begin", lambda: (place / "notes" / f"{running}.began").exists())
    queued = reloaded.accepted("teller", session=KEY, cleanup="delete")
    assert reloaded.run(queued)["status"] == "queued"
    # Everything stands at another place of the file now.
    reloaded.reload(file_of(place, agent("newcomer"), word=NEW_WORD))
    afterwards = reloaded.accepted("teller", session=KEY, cleanup="delete")
    (place / "notes" / f"{running}.go").touch()
    for run_id, word in ((queued, OLD_WORD), (afterwards, NEW_WORD)):
        run = reloaded.run(run_id, "archived")
        assert (run["outcome"], run["error"], run["resultText"]) == ("success", None, word)
    assert reloaded.run(queued)["configRevision"] < reloaded.run(afterwards)["configRevision"]


@pytest.mark.server
def test_two_servers_give_runs_their_secrets_when_one_has_read_a_changed_file(
    reloaded: Server, place: Path
) -> None:
    with reloaded.twin() as other:
        reloaded.reload(file_of(place, word=OLD_WORD, archiveAfterMinutes=7))
        revision = reloaded.run(
            reloaded.accepted("teller", session=KEY, cleanup="delete"), "archived"
        )["configRevision"]
        assert revision > 1
        wait_for("the other to follow", lambda: f"revision {revision} is active" in other.log())
        servers = (reloaded, other)
        pids = {str(server.process.pid) for server in servers if server.process is not None}
        seen: set[str] = set()
        for number in range(RUNS_MAX):
            server = servers[number % 2]
            run = server.run(server.accepted("teller", session=KEY, cleanup="delete"), "archived")
            assert (run["error"], run["resultText"]) == (None, OLD_WORD)
            assert run["configRevision"] == revision
            seen.add(holder_of(server, run["runId"]).split(":")[-2])
            if seen == pids:
                break
        assert seen == pids


@pytest.mark.server
def test_a_workspace_with_a_variable_that_is_not_set_refuses_the_spawn(
    reloaded: Server, place: Path
) -> None:
    answer = reloaded.spawn(session=KEY, agentId="homeless")
    assert answer.status_code == 422, answer.text
    assert (answer.json()["code"], answer.json()["rule"]) == ("spawn_error", "workspace")
    run = reloaded.run(answer.json()["runId"])
    assert run["status"] == "refused"
    assert run["error"] == (
        f'The workspace of agent "homeless" cannot be made: {UNSET}: is not set, and the'
        " configuration refers to it. Give the agent another workspace, or mend this one."
    )
    assert not [path for path in place.rglob("*") if UNSET in path.name]
    assert not [path for path in ROOT.iterdir() if UNSET in path.name]
    session = reloaded.http.get(f"/v1/sessions/{KEY}").json()
    assert session["activeChildren"] == 0


@pytest.mark.server
def test_a_setting_that_is_read_at_the_start_is_named_when_it_changes(
    reloaded: Server, place: Path
) -> None:
    values = file_of(place, word=OLD_WORD)
    values["spawnlog"]["leaseSeconds"] = 3
    values["spawnlog"]["scriptTimeoutSeconds"] = 4
    before = len(reloaded.log())
    reloaded.reload(values)
    (line,) = wait_for(
        "the warning",
        lambda: [one for one in reloaded.log()[before:].splitlines() if "restart" in one],
    )
    assert "WARNING" in line
    assert line.endswith("a restart is needed for leaseSeconds")
    unchanged = reloaded.reload(file_of(place, word=NEW_WORD))
    assert "restart" not in unchanged


def refused(reloaded: Server, times: int) -> bool:
    """Whether a file was refused so many times for its main key."""
    lines = [one for one in reloaded.log().splitlines() if "session.mainKey: " in one]
    assert all("ERROR" in one and "the configuration is not changed" in one for one in lines)
    return len(lines) == times


@pytest.mark.server
def test_a_main_key_that_makes_no_key_changes_nothing_and_spawns_go_on(
    reloaded: Server, place: Path
) -> None:
    assert reloaded.config is not None
    assert reloaded.process is not None
    values = file_of(place, word=OLD_WORD)
    for number, main_key in enumerate(("😀" * 128, "agent:ops:main", "\u3164x"), start=1):
        bad = {**values, "session": {"mainKey": main_key}}
        reloaded.config.write_text(json.dumps(bad), "utf-8")
        reloaded.process.send_signal(signal.SIGHUP)
        wait_for("the refusal", partial(refused, reloaded, number))
    for key in ("agent:main:main", "main", KEY):
        answer = reloaded.spawn(session=key)
        assert answer.status_code == 201, answer.text
    told = reloaded.reload({**values, "session": {"mainKey": "Desk"}})
    assert "main was session agent:main:main and is agent:main:desk now" in told
    assert told.count("is active") == 1
    assert "never retrieved" not in reloaded.log()


@pytest.mark.server
def test_it_is_told_when_main_becomes_another_session(reloaded: Server, place: Path) -> None:
    values = file_of(place, word=OLD_WORD)
    told = reloaded.reload({**values, "session": {"mainKey": "desk"}})
    (line,) = [one for one in told.splitlines() if "main was session" in one]
    assert "WARNING" in line
    assert "main was session agent:main:main and is agent:main:desk now" in line
    assert "main was session" in reloaded.reload(values)


ROUNDS = 4
WALKER = "agent:walker:main"


def walker_of(server: Server, key: str) -> dict[str, Any]:
    """Return the walker that this requester spawns, once it is under way."""
    return server.run(server.accepted("walker", session=key), "started")


def walker_file(folder: Path, *, cap: int = 20, home: str = "first") -> dict[str, Any]:
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


@pytest.fixture
def second(reloaded: Server) -> Iterator[Server]:
    with reloaded.twin("second") as other:
        yield other


@pytest.mark.server
def test_a_cap_that_one_server_lowered_holds_at_once_on_the_other(
    reloaded: Server, second: Server, folder: Path
) -> None:
    for number in range(ROUNDS):
        body: dict[str, Any] = {
            "requester": {"sessionKey": f"agent:main:round-{number}"},
            "agentId": "waiter",
        }
        reloaded.reload(walker_file(folder, cap=3))
        children = [second.spawn(**body) for _ in range(2)]
        assert [one.status_code for one in children] == [201, 201]
        reloaded.reload(walker_file(folder, cap=2))
        refusal = second.spawn(**body)
        assert refusal.status_code == 403, refusal.text
        problem = refusal.json()
        assert (problem["rule"], problem["current"], problem["limit"]) == ("active_children", 2, 2)
        runs = [second.run(one.json()["runId"]) for one in (*children, refusal)]
        assert runs[0]["configRevision"] < runs[2]["configRevision"]
        for run in runs[:2]:
            reloaded.let_go(run["runId"])
            assert second.run(run["runId"], "ended")["outcome"] == "success"


@pytest.fixture
def let_go(reloaded: Server, folder: Path) -> Iterator[list[str]]:
    """Runs that are let go in the end, the last one reloaded."""
    runs: list[str] = []
    yield runs
    for run_id in reversed(runs):
        reloaded.let_go(run_id)
        assert reloaded.run(run_id, "ended")["outcome"] == "success"


def place_of(folder: Path, run: dict[str, Any]) -> str:
    """Where a walker is."""
    note = folder / "notes" / f"{run['runId']}.at"
    wait_for("a note", note.exists)
    return note.read_text().strip()


@pytest.mark.server
def test_a_child_of_the_same_agent_works_where_its_requester_was_put(
    reloaded: Server, folder: Path, let_go: list[str]
) -> None:
    reloaded.reload(walker_file(folder))
    parent = walker_of(reloaded, WALKER)
    reloaded.reload(walker_file(folder, home="second"))
    child = walker_of(reloaded, parent["childSessionKey"])
    of_the_root = walker_of(reloaded, WALKER)
    of_another = walker_of(reloaded, "agent:main:main")
    runs = (parent, child, of_the_root, of_another)
    let_go += [run["runId"] for run in runs]
    places = [place_of(folder, run) for run in runs]
    assert places == [str(folder / name) for name in ("first", "first", "second", "second")]
    assert [run["workspaceDir"] for run in runs] == places


@pytest.mark.server
def test_a_folder_on_record_that_is_gone_refuses_and_is_not_made_again(
    reloaded: Server, folder: Path, let_go: list[str]
) -> None:
    reloaded.reload(walker_file(folder, home="fleeting"))
    parent = walker_of(reloaded, WALKER)
    let_go.append(parent["runId"])
    (folder / place_of(folder, parent)).rmdir()
    answer = reloaded.spawn(session=parent["childSessionKey"], agentId="walker")
    assert (answer.status_code, answer.json()["rule"]) == (422, "workspace")
    assert "The workspace on record for the requester cannot be used" in answer.text
    assert not (folder / "fleeting").exists()


@pytest.mark.server
def test_an_agent_that_is_not_configured_leaves_no_folder(reloaded: Server) -> None:
    answer = reloaded.spawn(agentId="nobody-knows")
    assert (answer.status_code, answer.json()["rule"]) == (422, "agent_unknown")
    assert not (reloaded.data_dir / "workspaces" / "nobody-knows").exists()


OLD_SECONDS, NEW_SECONDS = 111, 222
WAITING = """#!/bin/sh
touch "{folder}/$SPAWNLOG_RUN_ID.waits"
while [ ! -e "{folder}/go-on" ]; do sleep 0.05; done
"""
PLANNED = ("agentId", "model", "thinking", "runTimeoutSeconds", "role", "status", "rule")


def waiting_file(
    folder: Path, *agent_ids: str, depth: int, word: str, seconds: int
) -> dict[str, Any]:
    """These agents, whose spawns wait in a script until there is a file `go-on`."""
    script = program(folder / "waiting.sh", WAITING.format(folder=folder))
    waiting = {"id": "waiting", "uri": str(script), "format": "json", "timeoutSeconds": 60}
    return configuration(
        *(agent(one, scripted(result=f"{one} by {word}")) for one in ("main", *agent_ids)),
        maxSpawnDepth=depth,
        model=f"p/{word}",
        thinking={"old": "low", "new": "high"}[word],
        runTimeoutSeconds=seconds,
        contextScripts={"run": [waiting]},
    )


def planned(run: dict[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in PLANNED}


@pytest.mark.server
def test_spawns_under_way_keep_their_revision_and_the_next_has_the_new_one(
    reloaded: Server, folder: Path
) -> None:
    notes = folder / "notes"
    old_file = waiting_file(notes, "stayer", "leaver", depth=2, word="old", seconds=OLD_SECONDS)
    reloaded.reload(old_file)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(reloaded.spawn, agentId=one) for one in ("stayer", "leaver")]
        try:
            wait_for("both to wait", lambda: len([*notes.glob("*.waits")]) == 2)
            new = waiting_file(notes, "stayer", depth=1, word="new", seconds=NEW_SECONDS)
            reloaded.reload(new)
        finally:
            (notes / "go-on").touch()
        answers = [one.result() for one in asked]
    assert [one.status_code for one in answers] == [201, 201], answers
    under_way = [reloaded.run(one.json()["runId"], "ended") for one in answers]
    old = {
        "model": "old",
        "thinking": "low",
        "runTimeoutSeconds": OLD_SECONDS,
        "role": "orchestrator",
        "status": "done",
        "rule": None,
    }
    assert [planned(run) for run in under_way] == [
        {"agentId": one, **old} for one in ("stayer", "leaver")
    ]
    assert [run["resultText"] for run in under_way] == ["stayer by old", "leaver by old"]

    following, refused = reloaded.spawn(agentId="stayer"), reloaded.spawn(agentId="leaver")
    run = reloaded.run(following.json()["runId"], "ended")
    assert planned(run) == {
        "agentId": "stayer",
        "model": "new",
        "thinking": "high",
        "runTimeoutSeconds": NEW_SECONDS,
        "role": "leaf",
        "status": "done",
        "rule": None,
    }
    assert run["resultText"] == "stayer by new"
    assert (refused.status_code, refused.json()["rule"]) == (422, "agent_unknown")
    revisions = [one["configRevision"] for one in (*under_way, run)]
    assert revisions[0] == revisions[1] < revisions[2]
