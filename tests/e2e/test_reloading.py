"""A changed file and SIGHUP: what is under way keeps its configuration, its secrets included."""

import json
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.child_programs import waiter
from tests.support.servers.configurations import agent, configuration, shell
from tests.support.servers.data_directories import new_place
from tests.support.servers.preloaded import ROOT
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

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
def reloaded(module_database_url: str) -> Iterator[Server]:
    with new_place() as place:
        (place / "notes").mkdir()
        data = place / "data"
        with Server(
            data, file_of(place, word=OLD_WORD), database_url=module_database_url
        ) as server:
            yield server


@pytest.fixture
def place(reloaded: Server) -> Path:
    """Where its file and its data are; the file is as it was at first."""
    folder = reloaded.data_dir.parent
    reloaded.reload(file_of(folder, word=OLD_WORD))
    return folder


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


def test_it_is_told_when_main_becomes_another_session(reloaded: Server, place: Path) -> None:
    values = file_of(place, word=OLD_WORD)
    told = reloaded.reload({**values, "session": {"mainKey": "desk"}})
    (line,) = [one for one in told.splitlines() if "main was session" in one]
    assert "WARNING" in line
    assert "main was session agent:main:main and is agent:main:desk now" in line
    assert "main was session" in reloaded.reload(values)
