"""A configuration that changes while runs execute: each run keeps its own, with its secrets."""

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
from tests.support.servers.server import Server, serving
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

KEY = "agent:main:reloading"
OLD_WORD, NEW_WORD = "the-old-word", "the-new-word"
RUNS_MAX = 60


def values(
    folder: Path, *first: dict[str, Any], word: str = OLD_WORD, **subagents: Any
) -> dict[str, Any]:
    """Return a configuration with these agents, `waiter`, and `teller`, which prints a word from
    the file. The lane has width 1.
    """
    return configuration(
        *first,
        agent("main", default=True),
        waiter("waiter", folder),
        agent("teller", shell('printf %s "$WORD"', env={"WORD": word})),
        **{"maxConcurrent": 1, "maxChildrenPerAgent": 20, **subagents},
    )


@pytest.fixture(scope="module")
def one_server(databases: Databases) -> Iterator[Server]:
    with serving(databases, values) as running:
        yield running


@pytest.fixture
def server(one_server: Server) -> Server:
    """Return a server whose file is as at first."""
    one_server.reload(values(one_server.folder))
    return one_server


def spawned(server: Server, agent_id: str = "teller") -> str:
    return server.accepted(agent_id, session=KEY, cleanup="delete")


def test_queued_run_gets_secret_of_its_own_file(server: Server) -> None:
    running = spawned(server, "waiter")
    server.began(running)
    queued = spawned(server)
    assert server.run(queued)["status"] == "queued"
    # Every key is at another place of the file now.
    server.reload(values(server.folder, agent("newcomer"), word=NEW_WORD))
    afterwards = spawned(server)
    server.let_go(running)
    runs = [server.run(run_id, "archived") for run_id in (queued, afterwards)]
    assert [(run["error"], run["resultText"]) for run in runs] == [
        (None, OLD_WORD),
        (None, NEW_WORD),
    ]
    assert runs[0]["configRevision"] < runs[1]["configRevision"]


def test_two_servers_give_secrets_when_one_has_read_the_file(server: Server) -> None:
    with server.twin() as second_server:
        server.reload(values(server.folder, archiveAfterMinutes=7))
        revision = server.run(spawned(server), "archived")["configRevision"]
        assert revision > 1
        wait_for(
            "the other to follow", lambda: f"revision {revision} is active" in second_server.log()
        )
        servers = (server, second_server)
        pids = {str(server.process.pid) for server in servers if server.process is not None}
        seen: set[str] = set()
        for number in range(RUNS_MAX):
            asked_server = servers[number % 2]
            run = asked_server.run(spawned(asked_server), "archived")
            assert (run["error"], run["resultText"]) == (None, OLD_WORD)
            assert run["configRevision"] == revision
            (claimed,) = asked_server.payloads(run["runId"], "RunClaimed")
            seen.add(str(claimed["holder"]).split(":")[-2])
            if seen == pids:
                break
        assert seen == pids


def test_setting_read_at_start_is_named_when_it_changes(server: Server) -> None:
    def changed(config: dict[str, Any]) -> None:
        config["spawnlog"] |= {"leaseSeconds": 3, "scriptTimeoutSeconds": 4}

    def warnings(log: str) -> list[str]:
        return [line for line in log.splitlines() if "restart" in line]

    before = len(server.log())
    with server.configured(changed):
        (line,) = wait_for("the warning", lambda: warnings(server.log()[before:]))
        assert "WARNING" in line
        assert line.endswith("a restart is needed for leaseSeconds")
    assert warnings(server.reload(values(server.folder, word=NEW_WORD))) == []


def test_impossible_main_key_changes_nothing(server: Server) -> None:
    assert server.config is not None
    assert server.process is not None
    config = values(server.folder)
    before = len(server.log())

    def refused(times: int) -> bool:
        return server.log()[before:].count("session.mainKey: ") == times

    for number, main_key in enumerate(("😀" * 128, "agent:ops:main", "\u3164x"), start=1):
        server.config.write_text(json.dumps({**config, "session": {"mainKey": main_key}}), "utf-8")
        server.process.send_signal(signal.SIGHUP)
        wait_for("the refusal", partial(refused, number))
    assert server.log()[before:].count("the configuration is not changed") == 3
    for key in ("agent:main:main", "main", KEY):
        assert server.spawn(session=key).status_code == 201
    text = server.reload({**config, "session": {"mainKey": "Desk"}})
    (line,) = [line for line in text.splitlines() if "main was session" in line]
    assert "WARNING" in line
    assert "main was session agent:main:main and is now agent:main:desk, " in line
    assert text.count("is active") == 1
    assert "main was session" in server.reload(config)
    assert "never retrieved" not in server.log()


def test_cap_lowered_at_one_server_holds_at_the_other(server: Server) -> None:
    with server.twin("second") as second:
        for number in range(2):
            body: dict[str, Any] = {"session": f"agent:main:round-{number}", "agentId": "waiter"}
            server.reload(values(server.folder, maxChildrenPerAgent=3, maxConcurrent=8))
            children = [second.spawn(**body) for _ in range(2)]
            server.reload(values(server.folder, maxChildrenPerAgent=2, maxConcurrent=8))
            refusal = second.spawn(**body)
            problem = refusal.json()
            assert [problem[text] for text in ("rule", "current", "limit")] == [
                "active_children",
                2,
                2,
            ]
            runs = [second.run(child.json()["runId"]) for child in (*children, refusal)]
            assert runs[0]["configRevision"] < runs[2]["configRevision"]
            for run in runs[:2]:
                server.let_go(run["runId"])
                assert second.run(run["runId"], "ended")["outcome"] == "success"


_WAITING = """#!/bin/sh
touch "{folder}/$SPAWNLOG_RUN_ID.waits"
while [ ! -e "{folder}/go-on" ]; do sleep 0.05; done
"""


def planned_as(folder: Path, word: str, depth: int, *agent_ids: str) -> dict[str, Any]:
    """Return a configuration with these agents, whose spawns wait in a script for the note `go-on`;
    their plans contain the word.
    """
    script = program(folder / "waiting.sh", _WAITING.format(folder=folder))
    waiting = {"id": "waiting", "uri": str(script), "format": "json", "timeoutSeconds": 60}
    return configuration(
        *(agent(item, scripted(result=f"{item} by {word}")) for item in ("main", *agent_ids)),
        maxSpawnDepth=depth,
        model=f"p/{word}",
        contextScripts={"run": [waiting]},
    )


def test_spawns_under_way_keep_their_revision(server: Server) -> None:
    def plan(run: dict[str, Any]) -> tuple[Any, ...]:
        return run["agentId"], run["model"], run["role"], run["resultText"]

    notes = server.folder
    server.reload(planned_as(notes, "old", 2, "stayer", "leaver"))
    with ThreadPoolExecutor(2) as pool:
        spawning = [pool.submit(server.spawn, agentId=text) for text in ("stayer", "leaver")]
        try:
            wait_for("both to wait", lambda: len([*notes.glob("*.waits")]) == 2)
            server.reload(planned_as(notes, "new", 1, "stayer"))
        finally:
            server.touch("go-on")
        answers = [request.result() for request in spawning]
    under_way = [server.run(response.json()["runId"], "ended") for response in answers]
    assert [*map(plan, under_way)] == [
        (text, "old", "orchestrator", f"{text} by old") for text in ("stayer", "leaver")
    ]
    run = server.run(server.accepted("stayer"), "ended")
    assert plan(run) == ("stayer", "new", "leaf", "stayer by new")
    assert server.spawn(agentId="leaver").json()["rule"] == "agent_unknown"
    revisions = [item["configRevision"] for item in (*under_way, run)]
    assert revisions[0] == revisions[1] < revisions[2]
