"""Spawns that are made from an earlier run, also after a kill; lineage stands on both."""

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
from tests.support.servers.server import SOUND, Server, serving
from tests.support.servers.stories import mortal_stories
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

SCRIPT = """#!/bin/sh
echo x >> "{calls}"
printf '{{"message": "said by {name}", "agent": "{override}"}}'
"""
SCOUT = "scout"
DONE = {"steps": [{"message": "first"}, {"message": "second"}], "result": "found it"}


class Scripts:
    """Context scripts in a folder, each with a file that has a letter for every time it ran."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, *, override: str = "") -> dict[str, Any]:
        """The script and its section."""
        text = SCRIPT.format(calls=self._folder / f"{name}.calls", name=name, override=override)
        path = program(self._folder / f"{name}.sh", text)
        return {
            "id": name,
            "uri": str(path),
            "format": "json",
            "argMap": {"task": "task"},
            "agentIdOverrideKey": "agent",
        }

    def remove(self, name: str) -> None:
        """The script is no more."""
        (self._folder / f"{name}.sh").unlink()

    def calls(self, name: str) -> int:
        """How often it ran."""
        path = self._folder / f"{name}.calls"
        return len(path.read_text().split()) if path.exists() else 0


def respawning(folder: Path, *sections: dict[str, Any], cap: int = 20) -> dict[str, Any]:
    """Agents `main`, `scout`, which says two things, `guided`, which has these context scripts,
    `printer`, which prints its own prompt, and `waiter`, which stays until it is let go."""
    scripts = {"contextScripts": {"run": list(sections)}}
    guided = agent("guided", scripted(**DONE), subagents=scripts)
    return configuration(
        agent("main", default=True),
        agent(SCOUT, scripted(**DONE)),
        guided,
        agent("printer", shell("cat")),
        waiter("waiter", folder),
        maxChildrenPerAgent=cap,
        maxSpawnDepth=2,
    )


def respawn(server: Server, run_id: str, *, key: str | None = None, **body: Any) -> httpx2.Response:
    """`POST /v1/runs/{runId}/respawn`."""
    headers = {"Idempotency-Key": key} if key else {}
    return server.http.post(f"/v1/runs/{run_id}/respawn", json=body, headers=headers)


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Server]:
    with serving(databases, respawning, checks=SOUND) as running:
        yield running


@pytest.fixture
def scripts(server: Server) -> Scripts:
    return Scripts(server.folder)


@pytest.fixture
def forgetful(databases: Databases) -> Iterator[Server]:
    """A server whose log is not verified afterwards."""
    with serving(databases, respawning, checks=()) as running:
        yield running


def configure(server: Server, *sections: dict[str, Any], cap: int = 20) -> None:
    """Change its context scripts and its cap."""
    server.reload(respawning(server.folder, *sections, cap=cap))


def respawned(server: Server, run_id: str, **body: Any) -> dict[str, Any]:
    """Respawn a run, which must be accepted. Return the new run, announced."""
    answer = respawn(server, run_id, **body)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == f"/v1/runs/{answer.json()['runId']}"
    return server.run(answer.json()["runId"], "announced")


def let_go(server: Server, run_id: str) -> None:
    """Let a waiter end."""
    server.let_go(run_id)
    server.run(run_id, "announced")


@pytest.mark.server
def test_what_a_cap_refused_is_respawned_once_the_cap_is_larger(server: Server) -> None:
    session = "agent:main:capped"
    configure(server, cap=1)
    holding = server.spawn(session=session, agentId="waiter").json()["runId"]
    refused = server.spawn(task="count the boats", label="boats", session=session, agentId="scout")
    problem = problem_of(refused, 403, "spawn_forbidden")
    assert problem["rule"] == "active_children"
    again = problem_of(respawn(server, problem["runId"]), 403, "spawn_forbidden")
    assert again["runId"] != problem["runId"]
    configure(server, cap=3)
    run = respawned(server, problem["runId"])
    assert run["respawnedFrom"] == problem["runId"]
    assert (run["task"], run["label"], run["agentId"]) == ("count the boats", "boats", "scout")
    assert (run["requesterSessionKey"], run["outcome"]) == (session, "success")
    earlier = server.run(problem["runId"])
    assert earlier["respawns"] == [again["runId"], run["runId"]]
    assert earlier["stage"] == "refused"
    assert server.run(again["runId"])["respawnedFrom"] == problem["runId"]
    listed = server.http.get("/v1/runs", params={"respawnedFrom": problem["runId"]}).json()
    assert [one["runId"] for one in listed["items"]] == [run["runId"], again["runId"]]
    bars = server.http.get("/v1/timeline", params={"respawnedFrom": problem["runId"]}).json()
    assert [one["runId"] for one in bars["items"]] == [run["runId"], again["runId"]]
    tree = server.http.get(f"/v1/sessions/{session}/tree").json()["root"]
    drawn = {
        one["runId"]: one["respawnedFrom"] for node in tree["children"] for one in node["runs"]
    }
    assert drawn == {holding: None, run["runId"]: problem["runId"]}
    let_go(server, holding)


@pytest.mark.server
def test_an_ended_run_is_respawned_with_another_model_and_task(server: Server) -> None:
    configure(server)
    origin = {"channel": "tides", "to": "harbour"}
    answer = server.spawn(
        task="look",
        agentId="scout",
        label="look",
        contextPreamble="be brief",
        thinking="high",
        cleanup="delete",
        runTimeoutSeconds=90.5,
        requester={"sessionKey": "agent:main:ended", **origin},
    )
    first = server.run(answer.json()["runId"], "archived")
    run = respawned(
        server,
        first["runId"],
        changes={"model": "large/one", "task": "look again", "thinking": None},
    )
    assert (run["task"], run["model"], run["modelProvider"]) == ("look again", "one", "large")
    assert (run["label"], run["cleanup"], run["runTimeoutSeconds"]) == ("look", "delete", 90)
    assert run["requesterOrigin"] == origin
    assert run["contextPreamble"]["givenCharacters"] == len("be brief")
    asked = server.payloads(run["runId"], "SpawnRequested")[0]
    assert asked["respawn"] == {
        "runId": first["runId"],
        "replaced": ["model", "task", "thinking"],
        "scripts": "again",
        "transcriptUpTo": None,
        "isRevisionChosen": False,
    }
    assert asked["options"]["thinking"] is None


@pytest.mark.server
def test_what_scripts_said_is_used_again_though_they_are_gone(
    server: Server, scripts: Scripts
) -> None:
    section = scripts.write("who", override="scout")
    silent = scripts.write("fails") | {"returnKey": "nothing"}
    configure(server, section, silent)
    first = server.announced("guided", "who am I", session="agent:main:scripts")
    assert (first["agentId"], first["requestedAgentId"]) == ("scout", "guided")
    assert scripts.calls("who") == 1
    scripts.remove("who")
    scripts.remove("fails")
    run = respawned(
        server, first["runId"], scripts="recorded", changes={"task": "and who am I now"}
    )
    assert (scripts.calls("who"), scripts.calls("fails")) == (1, 1)
    assert (run["agentId"], run["outcome"]) == ("scout", "success")
    then = server.payloads(first["runId"], "ScriptsResolved")[0]["receipts"]
    now = server.payloads(run["runId"], "ScriptsResolved")[0]["receipts"]
    assert [one["outcome"] for one in now] == [one["outcome"] for one in then]
    assert [one["outcome"] for one in now] == ["injected", "failed"]
    assert {one["reusedFrom"] for one in now} == {first["runId"]}
    assert {one["reusedFrom"] for one in then} == {None}
    assert [one["outputBytes"] for one in now] == [one["outputBytes"] for one in then]
    prompt = server.http.get(f"/v1/runs/{run['runId']}/prompt").json()
    assert "said by who" in prompt["message"]
    assert "and who am I now" in prompt["message"]
    reused = {one["source"]: one["reusedFrom"] for one in prompt["parts"] if one["reusedFrom"]}
    assert reused == {"script:who": first["runId"]}
    why = server.http.get(f"/v1/runs/{run['runId']}/explain").json()["decisions"]
    texts = [one["text"] for one in why if one["rule"] == "context_scripts"]
    assert all(f"it was not run: what it said for run {first['runId']}" in one for one in texts)
    # What was used again is on record in its own right.
    second = respawned(server, run["runId"], scripts="recorded")
    assert scripts.calls("who") == 1
    found = server.payloads(second["runId"], "ScriptsResolved")[0]["receipts"]
    assert {one["reusedFrom"] for one in found} == {run["runId"]}


@pytest.mark.server
def test_what_is_not_on_record_of_scripts_is_refused_by_name(
    server: Server, scripts: Scripts
) -> None:
    section = scripts.write("guide")
    configure(server, section)
    first = server.announced(session="agent:main:nothing", task="go", agentId="guided")
    plain = server.announced(session="agent:main:nothing", task="go", agentId="scout")
    configure(server, section | {"returnKey": "message"})
    problem = problem_of(respawn(server, first["runId"], scripts="recorded"), 409, "cannot_respawn")
    assert '"guide" is another one now than under its configuration revision' in problem["detail"]
    moved = respawn(server, plain["runId"], scripts="recorded", changes={"agentId": "guided"})
    assert '"guide" did not run for it' in problem_of(moved, 409, "cannot_respawn")["detail"]
    configure(server, section, cap=1)
    holding = server.spawn(session="agent:main:nothing", agentId="waiter")
    refused = server.spawn(agentId="guided", session="agent:main:nothing")
    run_id = problem_of(refused, 403, "spawn_forbidden")["runId"]
    let_go(server, holding.json()["runId"])
    configure(server, section)
    never = problem_of(respawn(server, run_id, scripts="recorded"), 409, "cannot_respawn")
    assert "never came to its context scripts" in never["detail"]
    calls = scripts.calls("guide")
    assert respawned(server, run_id, scripts="again")["outcome"] == "success"
    assert scripts.calls("guide") == calls + 1
    # A priority is no part of what a script said.
    configure(server, section | {"priority": 7, "position": "prepend"})
    assert respawned(server, first["runId"], scripts="recorded")["outcome"] == "success"
    assert scripts.calls("guide") == calls + 1


@pytest.mark.server
def test_a_child_begins_with_the_transcript_up_to_an_entry(server: Server) -> None:
    configure(server)
    first = server.announced(session="agent:main:told", task="begin", agentId="scout")
    whole = server.transcript(first["runId"])
    assert [one["body"].get("text") for one in whole][1:3] == ["first", "second"]
    run = respawned(
        server,
        first["runId"],
        transcript={"upTo": 2},
        changes={"task": "go on", "agentId": "printer"},
    )
    found = server.transcript(run["runId"])
    assert found[0]["kind"] == "session"
    assert found[0]["body"]["respawnedFrom"] == first["runId"]
    assert found[0]["body"]["entries"] == 2
    assert [(one["kind"], one["body"]) for one in found[1:3]] == [
        (one["kind"], one["body"]) for one in whole[:2]
    ]
    assert run["contextMode"] == "fork"
    assert "2 entries of what an earlier run was told and said" in run["resultText"]
    why = server.http.get(f"/v1/runs/{run['runId']}/explain").json()["decisions"]
    (fork,) = [one for one in why if one["rule"] == "context_fork"]
    assert fork["compared"]["upTo"] == 2
    assert f"transcript of run {first['runId']}" in fork["text"]
    far = problem_of(
        respawn(server, first["runId"], transcript={"upTo": 99}), 409, "cannot_respawn"
    )
    assert f"ends at entry {len(whole)} by now" in far["detail"]


@pytest.mark.server
def test_a_spawn_is_decided_under_the_revision_that_was_chosen(server: Server) -> None:
    configure(server, cap=2)
    first = server.announced(session="agent:main:pinned", task="go", agentId="scout")
    configure(server, cap=1)
    holding = server.spawn(session="agent:main:pinned", agentId="waiter")
    refused = respawn(server, first["runId"])
    assert problem_of(refused, 403, "spawn_forbidden")["rule"] == "active_children"
    run = respawned(server, first["runId"], configRevision=first["configRevision"])
    assert run["configRevision"] == first["configRevision"]
    assert server.payloads(run["runId"], "SpawnRequested")[0]["facts"]["maxChildren"] == 2
    assert server.payloads(run["runId"], "SpawnRequested")[0]["respawn"]["isRevisionChosen"] is True
    ahead = respawn(server, first["runId"], configRevision=10_000)
    assert (
        "there is no configuration revision 10000"
        in problem_of(ahead, 409, "cannot_respawn")["detail"]
    )
    let_go(server, holding.json()["runId"])


@pytest.mark.server
def test_lineage_reads_as_it_was(server: Server) -> None:
    configure(server)
    first = server.announced(session="agent:main:past", task="go", agentId="scout")
    before = server.http.get(f"/v1/runs/{first['runId']}")
    run = respawned(server, first["runId"])
    after = server.http.get(f"/v1/runs/{first['runId']}")
    assert before.json()["respawns"] == []
    assert after.json()["respawns"] == [run["runId"]]
    # Nothing of the run itself changed, and yet it reads in another way.
    assert before.headers["ETag"] != after.headers["ETag"]
    at = int(before.headers["Spawnlog-Position"])
    then = server.http.get(f"/v1/runs/{first['runId']}", params={"at": f"pos:{at}"})
    assert then.json() == before.json()
    created = next(
        one["position"]
        for one in server.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
        if one["type"] == "SpawnRequested"
    )
    for position, respawns in ((created - 1, []), (created, [run["runId"]])):
        answer = server.http.get(f"/v1/runs/{first['runId']}", params={"at": f"pos:{position}"})
        assert answer.json()["respawns"] == respawns
        query = {"respawnedFrom": first["runId"], "at": f"pos:{position}"}
        listed = server.http.get("/v1/runs", params=query).json()["items"]
        assert [one["runId"] for one in listed] == respawns
    whole = server.http.get(f"/v1/runs/{first['runId']}", params={"version": first["version"]})
    assert whole.json()["respawns"] == []


@pytest.mark.server
def test_of_what_was_erased_nothing_is_made(server: Server, scripts: Scripts) -> None:
    section = scripts.write("teller")
    configure(server, section)
    first = server.announced(session="agent:main:erased", task="a secret", agentId="guided")
    kept = respawn(server, first["runId"], key="kept", scripts="recorded")
    assert kept.status_code == 201
    server.erase_session(first["sessionId"])
    for body in ({}, {"changes": {"task": "another"}}, {"transcript": {"upTo": 1}}):
        problem = problem_of(respawn(server, first["runId"], **body), 410, "erased")
        assert "erased" in problem["detail"]
    # What was answered once is told again.
    again = respawn(server, first["runId"], key="kept", scripts="recorded")
    assert again.json() == kept.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert server.run(first["runId"])["respawns"] == [kept.json()["runId"]]
    # The one made from it has words of its own.
    assert respawned(server, kept.json()["runId"], scripts="recorded")["outcome"] == "success"


@pytest.mark.server
def test_a_revision_whose_text_was_erased_decides_nothing(forgetful: Server) -> None:
    configure(forgetful, cap=7)
    first = forgetful.announced(session="agent:main:revision", task="go", agentId="scout")
    configure(forgetful, cap=8)
    query: dict[str, str | int] = {"types": "ConfigurationActivated", "limit": 500}
    events = forgetful.http.get("/v1/events", params=query).json()["items"]
    payloads = [one["payload"] for one in events]
    (content,) = [
        one["content"]["id"] for one in payloads if one["revision"] == first["configRevision"]
    ]
    forgetful.erase_content(content)
    answer = respawn(forgetful, first["runId"], configRevision=first["configRevision"])
    text = problem_of(answer, 410, "erased")["detail"]
    assert f"revision {first['configRevision']} was erased" in text
    assert respawned(forgetful, first["runId"])["outcome"] == "success"


@pytest.mark.server
def test_one_key_is_one_respawn(server: Server) -> None:
    configure(server)
    first = server.announced("scout", "go", session="agent:main:key")
    one = respawn(server, first["runId"], key="once", changes={"task": "a"})
    two = respawn(server, first["runId"], key="once", changes={"task": "a"})
    assert one.json() == two.json()
    assert two.headers["Idempotent-Replayed"] == "true"
    other = respawn(server, first["runId"], key="once", changes={"task": "b"})
    problem_of(other, 422, "idempotency_key_reused")
    assert len(server.run(first["runId"])["respawns"]) == 1


MOMENTS = (
    "after SpawnRequested",
    "before ScriptsResolved",
    "after ScriptsResolved",
    "before step:context_fork",
    "after step:context_fork",
    "after SessionCreated",
)


def body_at(moment: str) -> dict[str, Any]:
    """A respawn whose label says when its server dies."""
    changes = {"task": "once more", "cleanup": "delete", "label": moment}
    return {"scripts": "recorded", "transcript": {"upTo": 1}, "changes": changes}


@pytest.fixture(scope="module")
def mortal(databases: Databases) -> Iterator[Server]:
    """Its log is verified once all is over."""
    with serving(databases, mortal_stories, dies=True) as mortal:
        yield mortal


@pytest.fixture(scope="module")
def earlier(mortal: Server) -> dict[str, Any]:
    """A run to which a context script gave another agent; the script is no more."""
    run = mortal.run(mortal.accepted("steward", "at first"), "announced")
    assert run["agentId"] == "echo"
    (mortal.folder / "identity.sh").unlink()
    return run


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(MOMENTS, ["after ScriptsResolved"]))
def test_it_goes_on_with_what_was_recorded(
    mortal: Server, earlier: dict[str, Any], moment: str
) -> None:
    mortal.ensure_running()
    body = body_at(moment)
    mortal.die_at(moment)
    with contextlib.suppress(httpx2.TransportError):
        respawn(mortal, earlier["runId"], key=moment, **body)
    mortal.wait_death()
    mortal.restart()

    def answer() -> httpx2.Response | None:
        found = respawn(mortal, earlier["runId"], key=moment, **body)
        return found if found.status_code != 409 else None

    accepted = wait_for("an answer to the same request", answer)
    assert accepted.status_code == 201, accepted.text
    run = mortal.run(accepted.json()["runId"], "archived")
    assert (run["outcome"], run["agentId"], run["contextMode"]) == ("success", "echo", "fork")
    assert run["respawnedFrom"] == earlier["runId"]
    events = mortal.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
    (resolved,) = [one["payload"] for one in events if one["type"] == "ScriptsResolved"]
    assert [one["reusedFrom"] for one in resolved["receipts"]] == [earlier["runId"]]
    assert [one["outcome"] for one in resolved["receipts"]] == ["injected"]
    entries = mortal.http.get(f"/v1/runs/{run['runId']}/transcript").json()["items"]
    assert entries[0]["body"]["respawnedFrom"] == earlier["runId"]
    assert entries[1]["body"]["text"].endswith("at first")
    assert "once more" in entries[2]["body"]["text"]
    assert mortal.run(earlier["runId"])["respawns"].count(run["runId"]) == 1
    query = {"respawnedFrom": earlier["runId"], "label": moment}
    (only,) = mortal.http.get("/v1/runs", params=query).json()["items"]
    assert only["runId"] == run["runId"]


@pytest.mark.kill
@pytest.mark.parametrize(
    ("body", "rule"),
    [({"scripts": "recorded"}, "erased"), ({"transcript": {"upTo": 1}}, "context_fork")],
)
def test_what_is_erased_meanwhile_is_not_used_again(
    mortal: Server, body: dict[str, Any], rule: str
) -> None:
    mortal.ensure_running()
    earlier = mortal.run(mortal.accepted("bare", "at first"), "announced")
    if rule == "erased":
        # One that has a context script; it fails, which is on record too.
        earlier = mortal.run(mortal.accepted("plain", "at first"), "announced")
    mortal.die_at("after SpawnRequested")
    with contextlib.suppress(httpx2.TransportError):
        respawn(mortal, earlier["runId"], key=rule, **body)
    mortal.wait_death()
    mortal.erase_session(earlier["sessionId"])
    mortal.restart()
    query = {"respawnedFrom": earlier["runId"], "stage": "refused"}
    (refused,) = wait_for(
        "the refusal", lambda: mortal.http.get("/v1/runs", params=query).json()["items"]
    )
    assert refused["rule"] == rule
    assert earlier["runId"] in refused["error"]
    why = mortal.http.get(f"/v1/runs/{refused['runId']}/explain").json()
    assert [one["rule"] for one in why["decisions"] if one["result"] == "refused"] == [rule]
