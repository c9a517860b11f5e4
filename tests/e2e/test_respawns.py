"""Respawns from an earlier run, also after a kill; both runs record the lineage."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.builders.launches import program
from tests.support.http.problems import problem_of
from tests.support.servers.child_programs import waiter
from tests.support.servers.configurations import agent, configuration, scripted, shell
from tests.support.servers.databases import Databases
from tests.support.servers.server import QUICK_LEASE_SECONDS, SOUND, Server, serving
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

CAP = 20


def respawning(folder: Path, *, cap: int = CAP, **script: Any) -> dict[str, Any]:
    """Return a configuration with these agents: `main`; `scout`, which prints two things; `guided`,
    whose context script proposes the scout on each spawn; `printer`, which prints its prompt;
    `waiter`, which waits to be released.
    """
    text = '{"message": "said by who", "agent": "scout"}'
    path = program(folder / "who.sh", f"#!/bin/sh\necho x >> {folder}/who.calls\necho '{text}'\n")
    who = {"id": "who", "uri": str(path), "format": "json", "agentIdOverrideKey": "agent"}
    done = scripted(steps=[{"message": "first"}, {"message": "second"}], result="found it")
    return configuration(
        agent("main", default=True),
        agent("scout", done),
        agent("guided", subagents={"contextScripts": {"run": [who | script]}}),
        agent("printer", shell("cat")),
        waiter("waiter", folder),
        maxChildrenPerAgent=cap,
        maxSpawnDepth=2,
        archiveAfterMinutes=0,
        leaseSeconds=QUICK_LEASE_SECONDS,
    )


@pytest.fixture(scope="module")
def one_server(databases: Databases) -> Iterator[Server]:
    with serving(databases, respawning, checks=SOUND, dies=True) as running:
        yield running


@pytest.fixture
def server(one_server: Server) -> Server:
    """Return a running server with its first configuration."""
    one_server.ensure_running()
    configure(one_server)
    return one_server


def configure(server: Server, **changes: Any) -> None:
    server.reload(respawning(server.folder, **changes))


def calls(server: Server) -> int:
    """Return how often the context script ran."""
    path = server.folder / "who.calls"
    return len(path.read_text().split()) if path.exists() else 0


def respawn(server: Server, run_id: str, *, key: str | None = None, **body: Any) -> httpx2.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return server.http.post(f"/v1/runs/{run_id}/respawn", json=body, headers=headers)


def respawned(server: Server, run_id: str, **body: Any) -> dict[str, Any]:
    """Respawn a run, which must be accepted. Return the new run, announced."""
    answer = respawn(server, run_id, **body)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == f"/v1/runs/{answer.json()['runId']}"
    return server.run(answer.json()["runId"], "announced")


def cannot(server: Server, run_id: str, **body: Any) -> str:
    """Respawn a run, which cannot be. Return why."""
    return str(problem_of(respawn(server, run_id, **body), 409, "cannot_respawn")["detail"])


@contextlib.contextmanager
def full(server: Server, session: str) -> Iterator[str]:
    """Let a session have its one child for a block. Yield its run."""
    configure(server, cap=1)
    run_id = server.accepted("waiter", session=session)
    yield run_id
    server.let_go(run_id)
    server.run(run_id, "announced")


@pytest.mark.server
def test_refused_run_is_respawned_once_the_cap_is_larger(server: Server) -> None:
    session = "agent:main:capped"
    body = {"task": "count the boats", "label": "boats", "session": session, "agentId": "scout"}
    with full(server, session) as holding:
        run_id = problem_of(server.spawn(**body), 403, "spawn_forbidden")["runId"]
        again = problem_of(respawn(server, run_id), 403, "spawn_forbidden")
        assert again["runId"] != run_id
        configure(server)
        run = respawned(server, run_id)
    assert {text: run[text] for text in ("task", "label", "agentId", "respawnedFrom")} == {
        "task": "count the boats",
        "label": "boats",
        "agentId": "scout",
        "respawnedFrom": run_id,
    }
    earlier = server.run(run_id)
    assert (earlier["stage"], earlier["respawns"]) == ("refused", [again["runId"], run["runId"]])
    for path in ("/v1/runs", "/v1/timeline"):
        listed = server.http.get(path, params={"respawnedFrom": run_id}).json()["items"]
        assert [run["runId"] for run in listed] == [run["runId"], again["runId"]]
    tree = server.http.get(f"/v1/sessions/{session}/tree").json()["root"]
    drawn = {
        run["runId"]: run["respawnedFrom"] for node in tree["children"] for run in node["runs"]
    }
    assert drawn == {holding: None, run["runId"]: run_id}


@pytest.mark.server
def test_scripts_that_are_not_on_record_are_named(server: Server) -> None:
    session = "agent:main:nothing"
    first = server.announced("guided", session=session)["runId"]
    assert "said by who" in server.prompt(first)["message"]
    configure(server, returnKey="message")
    again = '"who" has changed since configuration revision'
    assert again in cannot(server, first, scripts="recorded")
    with full(server, session):
        refused = server.spawn(agentId="guided", session=session)
        run_id = problem_of(refused, 403, "spawn_forbidden")["runId"]
    configure(server)
    assert "ended before its context scripts" in cannot(server, run_id, scripts="recorded")
    before = calls(server)
    assert respawned(server, run_id, scripts="again")["outcome"] == "success"
    assert calls(server) == before + 1
    # A priority is no part of a script's output.
    configure(server, priority=7, position="prepend")
    assert respawned(server, first, scripts="recorded")["outcome"] == "success"
    assert calls(server) == before + 1


@pytest.mark.server
def test_child_begins_with_transcript_up_to_entry(server: Server) -> None:
    first = server.announced("scout", "begin", session="agent:main:told")["runId"]
    whole = server.transcript(first)
    changes = {"task": "go on", "agentId": "printer"}
    run = respawned(server, first, transcript={"upTo": 2}, changes=changes)
    head, *entries = server.transcript(run["runId"])
    assert (head["kind"], head["body"]["respawnedFrom"], head["body"]["entries"]) == (
        *("session", first),
        2,
    )
    assert [entry["body"] for entry in entries[:2]] == [item["body"] for item in whole[:2]]
    assert run["contextMode"] == "fork"
    assert "2 entries of what an earlier run was told and said" in run["resultText"]
    (fork,) = [rule for rule in server.explained(run["runId"]) if rule["rule"] == "context_fork"]
    assert fork["compared"]["upTo"] == 2
    far = cannot(server, first, transcript={"upTo": 99})
    assert f"ends at entry {len(whole)}; use that entry" in far


@pytest.mark.server
def test_chosen_revision_decides(server: Server) -> None:
    session = "agent:main:pinned"
    first = server.announced("scout", session=session)
    with full(server, session):
        refused = problem_of(respawn(server, first["runId"]), 403, "spawn_forbidden")
        assert refused["rule"] == "active_children"
        run = respawned(server, first["runId"], configRevision=first["configRevision"])
    assert run["configRevision"] == first["configRevision"]
    (payload,) = server.payloads(run["runId"], "SpawnRequested")
    assert (payload["facts"]["maxChildren"], payload["respawn"]["isRevisionChosen"]) == (CAP, True)
    ahead = problem_of(respawn(server, first["runId"], configRevision=10_000), 404, "not_found")
    assert "configuration revision 10000 does not exist" in ahead["detail"]


@pytest.mark.server
def test_nothing_is_made_of_what_was_erased(databases: Databases) -> None:
    with serving(databases, respawning, checks=()) as server:
        first = server.announced("guided", "a secret")
        run_id = first["runId"]
        kept = respawn(server, run_id, key="kept", scripts="recorded")
        assert kept.status_code == 201
        server.erase_session(first["sessionId"])
        for body in ({}, {"changes": {"task": "another"}}, {"transcript": {"upTo": 1}}):
            assert "erased" in problem_of(respawn(server, run_id, **body), 410, "erased")["detail"]
        again = respawn(server, run_id, key="kept", scripts="recorded")
        assert (again.json(), again.headers["Idempotent-Replayed"]) == (kept.json(), "true")
        # The one made from it has words of its own, until its configuration is erased.
        made = respawned(server, kept.json()["runId"], scripts="recorded")
        configure(server, cap=8)
        revision = made["configRevision"]
        (content,) = [
            event["payload"]["content"]["id"]
            for event in server.whole_log()
            if event["type"] == "ConfigurationActivated"
            and event["payload"]["revision"] == revision
        ]
        server.erase_content(content)
        gone = problem_of(respawn(server, made["runId"], configRevision=revision), 410, "erased")
        assert f"revision {revision} was erased" in gone["detail"]
        assert respawned(server, made["runId"])["outcome"] == "success"


# Killed.

MOMENTS = (
    "after SpawnRequested",
    "before ScriptsResolved",
    "after ScriptsResolved",
    "before step:context_fork",
    "after step:context_fork",
    "after SessionCreated",
)


def killed(server: Server, moment: str, run_id: str, **body: Any) -> None:
    """Let the server die on a respawn, whose key is the moment."""
    server.die_at(moment)
    with contextlib.suppress(httpx2.TransportError):
        respawn(server, run_id, key=moment, **body)
    server.wait_death()


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(MOMENTS, ["after ScriptsResolved"]))
def test_killed_respawn_goes_on_with_what_was_recorded(server: Server, moment: str) -> None:
    first = server.announced("guided", "at first")["runId"]
    before = calls(server)
    changes = {"task": "once more", "cleanup": "delete", "label": moment}
    body = {"scripts": "recorded", "transcript": {"upTo": 1}, "changes": changes}
    killed(server, moment, first, **body)
    # Its recorded output is used again, although the script is gone.
    (server.folder / "who.sh").unlink()
    server.restart()

    def answer() -> httpx2.Response | None:
        found = respawn(server, first, key=moment, **body)
        return found if found.status_code != 409 else None

    accepted = wait_for("an answer to the same request", answer)
    assert accepted.status_code == 201, accepted.text
    run = server.run(accepted.json()["runId"], "archived")
    assert (run["outcome"], run["agentId"], run["requestedAgentId"]) == (
        *("success", "scout"),
        "guided",
    )
    (resolved,) = server.payloads(run["runId"], "ScriptsResolved")
    receipts = [(receipt["outcome"], receipt["reusedFrom"]) for receipt in resolved["receipts"]]
    assert receipts == [("injected", first)]
    assert calls(server) == before
    prompt = server.prompt(run["runId"])
    assert "said by who" in prompt["message"]
    reused = {part["source"]: part["reusedFrom"] for part in prompt["parts"] if part["reusedFrom"]}
    assert reused == {"script:who": first}
    head, result, request, *_ = server.transcript(run["runId"])
    assert (run["contextMode"], head["body"]["respawnedFrom"]) == ("fork", first)
    assert "at first" in result["body"]["text"]
    assert "once more" in request["body"]["text"]
    assert server.run(first)["respawns"] == [run["runId"]]


@pytest.mark.kill
@pytest.mark.parametrize(
    ("body", "rule"),
    [({"scripts": "recorded"}, "erased"), ({"transcript": {"upTo": 1}}, "context_fork")],
)
def test_what_is_erased_meanwhile_is_not_used_again(
    databases: Databases, body: dict[str, Any], rule: str
) -> None:
    with serving(databases, respawning, dies=True) as server:
        agent_id = "guided" if rule == "erased" else "scout"
        earlier = server.announced(agent_id, "at first")
        killed(server, "after SpawnRequested", earlier["runId"], **body)
        server.erase_session(earlier["sessionId"])
        server.restart()
        query = {"respawnedFrom": earlier["runId"], "stage": "refused"}
        (refused,) = wait_for("the refusal", lambda: server.runs(**query))
        assert refused["rule"] == rule
        assert earlier["runId"] in refused["error"]
        decisions = server.explained(refused["runId"])
        assert [decision["rule"] for decision in decisions if decision["result"] == "refused"] == [
            rule
        ]
