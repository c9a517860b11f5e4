"""kill -9 of the server after each recorded stage: the run ends, and is announced once."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.server import Server, serving
from tests.support.servers.stories import mortal_stories
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill

ROOT = "agent:main:main"
REQUESTED = ["SpawnRequested"]
RESUMED = ["PreparationResumed"]
SCRIPTS = ["ScriptsResolved"]
CREATED = ["PreparationStarted", "SessionCreated", "RunQueued"]
CLAIMED = ["RunClaimed"]
STARTED = ["RunStarted"]
ENDED = ["RunEnded", "RunAnnounced", "RunArchived"]
PREPARED = [*REQUESTED, *SCRIPTS, *CREATED]
WHOLE = [*PREPARED, *CLAIMED, *STARTED, *ENDED]


@pytest.fixture(scope="module")
def one_that_dies(databases: Databases) -> Iterator[Server]:
    with serving(databases, mortal_stories, dies=True) as server:
        yield server


def life(server: Server, key: str, **body: Any) -> dict[str, Any]:
    """Return the ended run of the same request, repeated after the restart."""
    answer = server.spawn_again(key, **body, cleanup="delete")
    assert answer.status_code == 201, answer.text
    assert answer.headers["Idempotent-Replayed"] == "true"
    run = server.run(answer.json()["runId"], "archived")
    assert run["stage"] == "archived"
    require_order(server, run)
    return run


def require_order(server: Server, run: dict[str, Any]) -> None:
    """Assert one announcement, no place taken, and positions and versions without gaps."""
    inbox = [
        announcement for announcement in server.inbox() if announcement["runId"] == run["runId"]
    ]
    assert len(inbox) == 1
    assert server.session(ROOT)["activeChildren"] == 0
    log = server.whole_log()
    assert [item["position"] for item in log] == list(range(1, len(log) + 1))
    own = [event for event in log if event["stream"] == f"run:{run['runId']}"]
    assert [item["version"] for item in own] == list(range(1, len(own) + 1))
    assert run["version"] == len(own)
    counted = [event["type"] for event in log if event["payload"].get("runId") == run["runId"]]
    assert counted.count("ChildAdmitted") == counted.count("ChildReleased") == 1


@pytest.mark.parametrize(
    ("moment", "agent_id", "events"),
    nightly_but(
        [
            ("after ScriptsResolved", "plain", [*REQUESTED, *SCRIPTS, *RESUMED, *WHOLE[2:]]),
            (
                "after AgentOverridden",
                "steward",
                [*REQUESTED, *SCRIPTS, "AgentOverridden", *RESUMED, *WHOLE[2:]],
            ),
            ("after SessionCreated", "plain", WHOLE),
            ("after RunClaimed", "plain", [*PREPARED, *CLAIMED, *CLAIMED, *STARTED, *ENDED]),
            ("before RunStarted", "echo", [*PREPARED, *CLAIMED, *CLAIMED, *STARTED, *ENDED]),
            ("after RunEnded", "plain", WHOLE),
        ],
        lambda case: case[0] in ("after ScriptsResolved", "after RunClaimed"),
    ),
)
def test_a_run_goes_on_when_its_server_is_killed(
    mortal: Server, moment: str, agent_id: str, events: list[str]
) -> None:
    mortal.die_at(moment)
    mortal.spawn_unanswered(moment, agentId=agent_id, cleanup="delete")
    mortal.wait_death()
    mortal.restart()
    run = life(mortal, moment, agentId=agent_id)
    assert run["outcome"] == "success"
    assert mortal.events(run["runId"]) == events


@pytest.mark.parametrize(
    "moment", nightly_but(["after RunStarted", "before RunEnded"], ["after RunStarted"])
)
def test_a_run_that_had_started_is_interrupted_and_never_executed_again(
    mortal: Server, moment: str
) -> None:
    mortal.die_at(moment)
    mortal.spawn_unanswered(moment, agentId="echo", cleanup="delete")
    mortal.wait_death()
    mortal.restart()
    run = life(mortal, moment, agentId="echo")
    assert run["outcome"] == "error"
    assert run["error"].startswith("interrupted: the server that held this run is gone")
    assert mortal.events(run["runId"]) == WHOLE
    result = next(
        announcement for announcement in mortal.inbox() if announcement["runId"] == run["runId"]
    )
    assert result["status"] == "error"
    assert "Notes: interrupted: " in result["text"]
    items = mortal.http.get(f"/v1/runs/{run['runId']}/transcript").json()["items"]
    assert items[0]["body"]["role"] == "user"
    assert items[0]["body"]["text"].endswith("hello")


def requests_on_record(server: Server) -> int:
    return [event["type"] for event in server.whole_log()].count("SpawnRequested")


@pytest.mark.parametrize(
    ("agent_id", "event"),
    nightly_but(
        product(["bare", "bare-echo"], ["SpawnRequested", "RunQueued"]),
        [("bare-echo", "SpawnRequested")],
    ),
)
def test_a_spawn_that_is_recorded_as_a_whole_is_not_there_in_part(
    mortal: Server, agent_id: str, event: str
) -> None:
    before = requests_on_record(mortal)
    mortal.die_at(f"before {event}")
    mortal.spawn_unanswered(f"whole {agent_id} {event}", agentId=agent_id, cleanup="delete")
    mortal.wait_death()
    mortal.restart()
    assert requests_on_record(mortal) == before
    answer = mortal.spawn(key=f"whole {agent_id} {event}", agentId=agent_id, cleanup="delete")
    assert answer.status_code == 201
    assert "Idempotent-Replayed" not in answer.headers
    run = mortal.run(answer.json()["runId"], "archived")
    assert run["outcome"] == "success"
    assert mortal.events(run["runId"]) == WHOLE
    require_order(mortal, run)


@pytest.mark.parametrize(
    ("agent_id", "events", "outcome"),
    [
        ("bare", WHOLE, "error"),
        ("bare-echo", [*PREPARED, *CLAIMED, *CLAIMED, *STARTED, *ENDED], "success"),
    ],
)
def test_a_spawn_that_is_recorded_as_a_whole_goes_on_from_there(
    mortal: Server, agent_id: str, events: list[str], outcome: str
) -> None:
    mortal.die_at("after SpawnRequested")
    mortal.spawn_unanswered(f"after {agent_id}", agentId=agent_id, cleanup="delete")
    mortal.wait_death()
    mortal.restart()
    run = life(mortal, f"after {agent_id}", agentId=agent_id)
    # Runs recorded as started may have executed, and are not executed again.
    assert run["outcome"] == outcome
    assert mortal.events(run["runId"]) == events


def test_the_file_of_a_transcript_is_written_after_the_next_start(mortal: Server) -> None:
    mortal.die_at("after RunEnded")
    mortal.spawn_unanswered("files", agentId="accountant", cleanup="delete")
    mortal.wait_death()
    folder = mortal.data_dir / "transcripts" / "accountant"
    assert not list(folder.glob("*"))
    mortal.restart()
    run = life(mortal, "files", agentId="accountant")
    assert mortal.events(run["runId"]) == WHOLE
    path = Path(run["transcriptPath"])
    wait_for("the file alone", lambda: list(folder.glob("*")) == [path])
    assert path.read_text("utf-8").count("\n") == 7


@pytest.mark.nightly
def test_a_spawn_goes_on_from_its_request_also_when_its_recovery_is_killed(
    mortal: Server,
) -> None:
    mortal.die_at("after SpawnRequested")
    mortal.spawn_unanswered("twice", agentId="plain", cleanup="delete")
    mortal.wait_death()
    mortal.die_again("after PreparationResumed")
    mortal.restart()
    run = life(mortal, "twice", agentId="plain")
    assert run["outcome"] == "success"
    assert mortal.events(run["runId"]) == [*REQUESTED, *RESUMED, *RESUMED, *WHOLE[1:]]


def test_a_run_that_was_told_to_stop_is_stopped_though_its_server_was_killed(
    mortal: Server,
) -> None:
    run_id = mortal.accepted("waiter", key="stopping", cleanup="delete")
    mortal.note(f"{run_id}.began")
    mortal.die_at("after StopRequested")
    with pytest.raises(Exception, match=r"disconnected|reset|closed"):
        mortal.http.post(f"/v1/runs/{run_id}/stop", json={"reason": "enough"})
    mortal.wait_death()
    mortal.restart()
    run = life(mortal, "stopping", agentId="waiter")
    assert run["outcome"] == "stopped"
    assert mortal.events(run_id) == [*WHOLE[:-3], "StopRequested", *ENDED]
    result = next(run for run in mortal.inbox() if run["runId"] == run_id)
    assert "Notes: stopped by admin: enough" in result["text"]


def test_a_refusal_that_its_caller_never_heard_of_stands_in_the_inbox(mortal: Server) -> None:
    mortal.die_at("after SpawnRequested")
    mortal.spawn_unanswered("unheard", agentId="impostor")
    mortal.wait_death()
    mortal.restart()
    answer = mortal.spawn_again("unheard", agentId="impostor")
    assert (answer.status_code, answer.json()["rule"]) == (422, "agent_unknown")
    run_id = answer.json()["runId"]
    assert mortal.events(run_id) == [*REQUESTED, *RESUMED, *SCRIPTS, "SpawnRefused"]
    runs = [run for run in mortal.inbox() if run["runId"] == run_id]
    assert len(runs) == 1
    assert "the spawn was refused: " in runs[0]["text"]
    assert mortal.session(ROOT)["activeChildren"] == 0
