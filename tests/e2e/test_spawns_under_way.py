"""A spawn that is under way when the configuration changes is decided by what held before."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.data_directories import new_place
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

OLD_SECONDS, NEW_SECONDS = 111, 222
WAITING = """#!/bin/sh
touch "{folder}/$SPAWNLOG_RUN_ID.began"
while [ ! -e "{folder}/go" ]; do sleep 0.05; done
"""
PLANNED = ("agentId", "model", "thinking", "runTimeoutSeconds", "role", "status", "rule")


def file_of(folder: Path, *agent_ids: str, depth: int, word: str, seconds: int) -> dict[str, Any]:
    """These agents, whose spawns wait in a script until there is a file `go`."""
    script = folder / "waiting.sh"
    script.write_text(WAITING.format(folder=folder), "utf-8")
    script.chmod(0o755)
    waiting = {"id": "waiting", "uri": str(script), "format": "json", "timeoutSeconds": 60}
    return configuration(
        *(agent(one, scripted(result=f"{one} by {word}")) for one in ("main", *agent_ids)),
        maxSpawnDepth=depth,
        model=f"p/{word}",
        thinking={"old": "low", "new": "high"}[word],
        runTimeoutSeconds=seconds,
        contextScripts={"run": [waiting]},
    )


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with new_place() as place:
        (place / "notes").mkdir()
        yield place


@pytest.fixture(scope="module")
def server(folder: Path, module_database_url: str) -> Iterator[Server]:
    old = file_of(folder / "notes", "stayer", "leaver", depth=2, word="old", seconds=OLD_SECONDS)
    data_dir = folder / "data"
    with Server(data_dir, old, database_url=module_database_url) as started:
        yield started


def planned(server: Server, run: dict[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in PLANNED}


def test_spawns_under_way_keep_their_revision_and_the_next_has_the_new_one(
    server: Server, folder: Path
) -> None:
    notes = folder / "notes"
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(server.spawn, agentId=one) for one in ("stayer", "leaver")]
        try:
            wait_for("both to wait", lambda: len([*notes.glob("*.began")]) == 2)
            new = file_of(notes, "stayer", depth=1, word="new", seconds=NEW_SECONDS)
            server.reload(new)
        finally:
            (notes / "go").touch()
        answers = [one.result() for one in asked]
    assert [one.status_code for one in answers] == [201, 201], answers
    under_way = [server.run(one.json()["runId"], "ended") for one in answers]
    old = {
        "model": "old",
        "thinking": "low",
        "runTimeoutSeconds": OLD_SECONDS,
        "role": "orchestrator",
        "status": "done",
        "rule": None,
    }
    assert [planned(server, run) for run in under_way] == [
        {"agentId": one, **old} for one in ("stayer", "leaver")
    ]
    assert [run["resultText"] for run in under_way] == ["stayer by old", "leaver by old"]

    following, refused = server.spawn(agentId="stayer"), server.spawn(agentId="leaver")
    run = server.run(following.json()["runId"], "ended")
    assert planned(server, run) == {
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
