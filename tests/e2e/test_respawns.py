"""A spawn is made from an earlier run: of what was refused, with changes, with what context scripts
said then, with its transcript, under an earlier revision; lineage stands on both."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.reloaded_server import ReloadedServer
from tests.support.servers.respawning_server import Scripts, respawn, respawning
from tests.support.servers.verified_servers import must_be_whole

pytestmark = pytest.mark.server


class Changing(ReloadedServer):
    """A server whose file changes, and its scripts."""

    scripts: Scripts
    folder: Path

    def with_file(self, *sections: dict[str, Any], cap: int = 20) -> None:
        self.reload(respawning(self.folder, *sections, cap=cap))

    def let_go(self, run_id: str) -> None:
        notes = self.folder / "notes"
        notes.mkdir(exist_ok=True)
        (notes / f"{run_id}.go").touch()
        self.run(run_id, "announced")

    def event(self, run_id: str, kind: str) -> dict[str, Any]:
        items = self.http.get(f"/v1/runs/{run_id}/events").json()["items"]
        return dict(next(one for one in items if one["type"] == kind)["payload"])

    def accepted(self, run_id: str, **body: Any) -> dict[str, Any]:
        answer = respawn(self, run_id, **body)
        assert answer.status_code == 201, answer.text
        assert answer.headers["Location"] == f"/v1/runs/{answer.json()['runId']}"
        return self.run(answer.json()["runId"], "announced")

    def done(self, session: str, **body: Any) -> dict[str, Any]:
        answer = self.spawn(requester={"sessionKey": session}, **body)
        assert answer.status_code == 201, answer.text
        return self.run(answer.json()["runId"], "announced")


@contextmanager
def changing_on(databases: Databases) -> Iterator[Changing]:
    url = databases.create()
    with new_place() as place:
        scripts = Scripts(place / "scripts")
        config = respawning(place)
        with Changing(place / "data", config, database_url=url) as server:
            server.scripts, server.folder = scripts, place
            yield server
    databases.drop(url)


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Changing]:
    with changing_on(databases) as server:
        yield server
        differing = server.differing_decisions()
        server.stop()
        must_be_whole(server)
    assert not differing, json.dumps(differing)


@pytest.fixture
def forgetful(databases: Databases) -> Iterator[Changing]:
    """A server whose log is not verified afterwards."""
    with changing_on(databases) as server:
        yield server


def test_what_a_cap_refused_is_respawned_once_the_cap_is_larger(server: Changing) -> None:
    session = "agent:main:capped"
    server.with_file(cap=1)
    holding = server.spawn(requester={"sessionKey": session}, agentId="waiter").json()["runId"]
    refused = server.spawn(
        task="count the boats", label="boats", requester={"sessionKey": session}, agentId="scout"
    )
    problem = problem_of(refused, 403, "spawn_forbidden")
    assert problem["rule"] == "active_children"
    again = problem_of(respawn(server, problem["runId"]), 403, "spawn_forbidden")
    assert again["runId"] != problem["runId"]
    server.with_file(cap=3)
    run = server.accepted(problem["runId"])
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
    server.let_go(holding)


def test_an_ended_run_is_respawned_with_another_model_and_task(server: Changing) -> None:
    server.with_file()
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
    run = server.accepted(
        first["runId"], changes={"model": "large/one", "task": "look again", "thinking": None}
    )
    assert (run["task"], run["model"], run["modelProvider"]) == ("look again", "one", "large")
    assert (run["label"], run["cleanup"], run["runTimeoutSeconds"]) == ("look", "delete", 90)
    assert run["requesterOrigin"] == origin
    assert run["contextPreamble"]["givenCharacters"] == len("be brief")
    asked = server.event(run["runId"], "SpawnRequested")
    assert asked["respawn"] == {
        "runId": first["runId"],
        "replaced": ["model", "task", "thinking"],
        "scripts": "again",
        "transcriptUpTo": None,
        "isRevisionChosen": False,
    }
    assert asked["options"]["thinking"] is None


def test_what_scripts_said_is_used_again_though_they_are_gone(server: Changing) -> None:
    section = server.scripts.write("who", override="scout")
    silent = server.scripts.write("fails") | {"returnKey": "nothing"}
    server.with_file(section, silent)
    first = server.done("agent:main:scripts", task="who am I", agentId="guided")
    assert (first["agentId"], first["requestedAgentId"]) == ("scout", "guided")
    assert server.scripts.calls("who") == 1
    server.scripts.remove("who")
    server.scripts.remove("fails")
    run = server.accepted(first["runId"], scripts="recorded", changes={"task": "and who am I now"})
    assert (server.scripts.calls("who"), server.scripts.calls("fails")) == (1, 1)
    assert (run["agentId"], run["outcome"]) == ("scout", "success")
    then = server.event(first["runId"], "ScriptsResolved")["receipts"]
    now = server.event(run["runId"], "ScriptsResolved")["receipts"]
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
    second = server.accepted(run["runId"], scripts="recorded")
    assert server.scripts.calls("who") == 1
    found = server.event(second["runId"], "ScriptsResolved")["receipts"]
    assert {one["reusedFrom"] for one in found} == {run["runId"]}


def test_what_is_not_on_record_of_scripts_is_refused_by_name(server: Changing) -> None:
    section = server.scripts.write("guide")
    server.with_file(section)
    first = server.done("agent:main:nothing", task="go", agentId="guided")
    plain = server.done("agent:main:nothing", task="go", agentId="scout")
    server.with_file(section | {"returnKey": "message"})
    problem = problem_of(respawn(server, first["runId"], scripts="recorded"), 409, "cannot_respawn")
    assert '"guide" is another one now than under its configuration revision' in problem["detail"]
    moved = respawn(server, plain["runId"], scripts="recorded", changes={"agentId": "guided"})
    assert '"guide" did not run for it' in problem_of(moved, 409, "cannot_respawn")["detail"]
    server.with_file(section, cap=1)
    holding = server.spawn(requester={"sessionKey": "agent:main:nothing"}, agentId="waiter")
    refused = server.spawn(agentId="guided", requester={"sessionKey": "agent:main:nothing"})
    run_id = problem_of(refused, 403, "spawn_forbidden")["runId"]
    server.let_go(holding.json()["runId"])
    server.with_file(section)
    never = problem_of(respawn(server, run_id, scripts="recorded"), 409, "cannot_respawn")
    assert "never came to its context scripts" in never["detail"]
    calls = server.scripts.calls("guide")
    assert server.accepted(run_id, scripts="again")["outcome"] == "success"
    assert server.scripts.calls("guide") == calls + 1
    # A priority is no part of what a script said.
    server.with_file(section | {"priority": 7, "position": "prepend"})
    assert server.accepted(first["runId"], scripts="recorded")["outcome"] == "success"
    assert server.scripts.calls("guide") == calls + 1


def test_a_child_begins_with_the_transcript_up_to_an_entry(server: Changing) -> None:
    server.with_file()
    first = server.done("agent:main:told", task="begin", agentId="scout")
    whole = entries(server, first["runId"])
    assert [one["body"].get("text") for one in whole][1:3] == ["first", "second"]
    run = server.accepted(
        first["runId"], transcript={"upTo": 2}, changes={"task": "go on", "agentId": "printer"}
    )
    found = entries(server, run["runId"])
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


def test_a_spawn_is_decided_under_the_revision_that_was_chosen(server: Changing) -> None:
    server.with_file(cap=2)
    first = server.done("agent:main:pinned", task="go", agentId="scout")
    server.with_file(cap=1)
    holding = server.spawn(requester={"sessionKey": "agent:main:pinned"}, agentId="waiter")
    refused = respawn(server, first["runId"])
    assert problem_of(refused, 403, "spawn_forbidden")["rule"] == "active_children"
    run = server.accepted(first["runId"], configRevision=first["configRevision"])
    assert run["configRevision"] == first["configRevision"]
    assert server.event(run["runId"], "SpawnRequested")["facts"]["maxChildren"] == 2
    assert server.event(run["runId"], "SpawnRequested")["respawn"]["isRevisionChosen"] is True
    ahead = respawn(server, first["runId"], configRevision=10_000)
    assert (
        "there is no configuration revision 10000"
        in problem_of(ahead, 409, "cannot_respawn")["detail"]
    )
    server.let_go(holding.json()["runId"])


def test_lineage_reads_as_it_was(server: Changing) -> None:
    server.with_file()
    first = server.done("agent:main:past", task="go", agentId="scout")
    before = server.http.get(f"/v1/runs/{first['runId']}")
    run = server.accepted(first["runId"])
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


def test_of_what_was_erased_nothing_is_made(server: Changing) -> None:
    section = server.scripts.write("teller")
    server.with_file(section)
    first = server.done("agent:main:erased", task="a secret", agentId="guided")
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
    assert server.accepted(kept.json()["runId"], scripts="recorded")["outcome"] == "success"


def test_a_revision_whose_text_was_erased_decides_nothing(forgetful: Changing) -> None:
    forgetful.with_file(cap=7)
    first = forgetful.done("agent:main:revision", task="go", agentId="scout")
    forgetful.with_file(cap=8)
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
    assert forgetful.accepted(first["runId"])["outcome"] == "success"


def test_one_key_is_one_respawn(server: Changing) -> None:
    server.with_file()
    first = server.done("agent:main:key", task="go", agentId="scout")
    one = respawn(server, first["runId"], key="once", changes={"task": "a"})
    two = respawn(server, first["runId"], key="once", changes={"task": "a"})
    assert one.json() == two.json()
    assert two.headers["Idempotent-Replayed"] == "true"
    other = respawn(server, first["runId"], key="once", changes={"task": "b"})
    problem_of(other, 422, "idempotency_key_reused")
    assert len(server.run(first["runId"])["respawns"]) == 1


def entries(server: Changing, run_id: str) -> list[dict[str, Any]]:
    answer = server.http.get(f"/v1/runs/{run_id}/transcript", params={"tools": True, "limit": 500})
    return list(answer.json()["items"])
