"""`POST /v1/runs/{runId}/respawn`: permissions, inherited values, and refusals."""

from typing import Any

import httpx2
import pytest

from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import spawn_body
from tests.support.http.sharing import given
from tests.support.servers.server import Server

pytestmark = pytest.mark.server


def respawn(client: httpx2.Client, run_id: str, **body: Any) -> httpx2.Response:
    return client.post(f"/v1/runs/{run_id}/respawn", json=body)


def respawned(server: Server, run_id: str, **changes: Any) -> dict[str, Any]:
    answer = respawn(server.http, run_id, changes=changes)
    assert answer.status_code == 201, answer.text
    return server.run(answer.json()["runId"], "announced")


def replaced(server: Server, run_id: str) -> list[str]:
    (event,) = server.recorded(run_id, "SpawnRequested")
    return list(event["payload"]["respawn"]["replaced"])


def test_free_text_in_place_of_name_is_carried_over(server: Server) -> None:
    refused = server.spawn(
        session=server.new_session(), agentId="No Agent!", model="two words", thinking="a lot of it"
    )
    run_id = problem_of(refused, 422, "spawn_error")["runId"]
    again = problem_of(respawn(server.http, run_id), 422, "spawn_error")
    assert (again["rule"], again["detail"]) == ("agent_id", refused.json()["detail"])
    texts = server.get(f"/v1/runs/{again['runId']}/explain")["given"]
    assert (texts["agentId"], texts["model"]) == ("No Agent!", "two words")
    mended = respawned(server, run_id, agentId="talker", model=None, thinking=None)
    assert mended["outcome"] == "success"


def test_run_of_batch_is_respawned_alone(server: Server) -> None:
    body = spawn_body(server.new_session(), task=["a", "b"], parallel=True, label="both")
    second = server.http.post("/v1/spawns", json=body).json()["runs"][1]["runId"]
    run = respawned(server, second)
    assert (run["task"], run["label"], run["batchId"]) == ("b", "both-2", None)
    answer = respawn(server.http, second, changes={"task": ["a", "b"], "parallel": True})
    assert pointers_of(problem_of(answer, 422, "invalid_request")) == ["/changes/task"]


def test_respawn_waits_for_the_same_runs(server: Server) -> None:
    session = server.new_session()
    first = server.announced(session=session, label="first")
    waiting = server.announced(session=session, dependsOn=[{"run": "first", "require": "ended"}])
    # Another one has the label by now.
    server.announced(session=session, label="first")
    (on,) = respawned(server, waiting["runId"])["dependsOn"]
    assert (on["runId"], on["require"], on["state"]) == (first["runId"], "ended", "met")
    assert respawned(server, waiting["runId"], dependsOn=None)["dependsOn"] == []


@pytest.mark.parametrize(
    ("body", "rule", "named"),
    [
        ({"dependsOn": ["first", "later"]}, "dependency_unknown", {"first", "later"}),
        ({"chainAfter": {"run": "later", "require": "ended"}}, "dependency_unknown", {"later"}),
        ({"sharedContext": {"$later": "reference", "k": "v"}}, "reference_unknown", {"later"}),
    ],
)
def test_unknown_name_is_looked_up_again(
    server: Server, body: dict[str, Any], rule: str, named: set[str]
) -> None:
    session = server.new_session()
    server.announced(session=session, label="first")
    refused = problem_of(server.spawn(session=session, **body), 422, "spawn_error")
    assert refused["rule"] == rule
    shown = server.run(refused["runId"])["dependsOn"]
    assert {(run["name"], run["runId"], run["state"]) for run in shown} == {
        (name, None, "unmet") for name in named
    }
    explained = server.get(f"/v1/runs/{refused['runId']}/explain")["given"]
    assert all(name in explained["dependencies"] for name in named)
    again = problem_of(respawn(server.http, refused["runId"]), 422, "spawn_error")
    assert (again["rule"], again["detail"]) == (rule, refused["detail"])
    assert replaced(server, again["runId"]) == []
    server.announced(session=session, label="later")
    for run_id in (refused["runId"], again["runId"]):
        run = respawned(server, run_id)
        require = "ended" if "chainAfter" in body else "success"
        found = {
            (dependency["name"], dependency["require"], dependency["state"])
            for dependency in run["dependsOn"]
        }
        assert found == {(name, require, "met") for name in named}
        keys = {key.removeprefix("$") for key in body.get("sharedContext", {})}
        assert set(given(server, run["runId"])["values"]) == keys


def test_unknown_name_is_in_no_event_or_list(server: Server) -> None:
    session, name = server.new_session(), "a secret that nobody is called 💧"
    refused = problem_of(server.spawn(session=session, dependsOn=[name]), 422, "spawn_error")
    assert name not in str(server.recorded(refused["runId"]))
    assert [run["dependsOn"] for run in server.runs(requester=session)] == [[]]
    assert server.run(refused["runId"])["dependsOn"][0]["name"] == name


def test_run_of_message_is_not_respawned(server: Server) -> None:
    run = server.announced(session=server.new_session())
    sent = server.http.post(f"/v1/runs/{run['runId']}/messages", json={"message": "and now?"})
    later = server.run(sent.json()["runId"], "announced")
    problem = problem_of(respawn(server.http, later["runId"]), 409, "cannot_respawn")
    assert run["runId"] in problem["detail"]
    assert respawned(server, run["runId"])["outcome"] == "success"


def test_run_at_work_is_respawned_beside_it(server: Server) -> None:
    with server.held(server.new_session()) as held:
        run = respawned(server, held.run_id, agentId="talker")
        assert run["respawnedFrom"] == held.run_id
        began = respawn(server.http, held.run_id, transcript={"upTo": 2})
        text = problem_of(began, 409, "cannot_respawn")["detail"]
        assert "ends at entry 1; use that entry" in text


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"tusk": "x"}, "/changes/tusk"),
    ({"tusk": None}, "/changes/tusk"),
    ({"task": None}, "/changes/task"),
    ({"task": "  "}, "/changes/task"),
    ({"task": ["a"]}, "/changes/task"),
    ({"label": "a\u001b[31m"}, "/changes/label"),
    ({"requester": None}, "/changes/requester"),
    ({"requester": "main"}, "/changes/requester"),
    ({"requester": {"sessionKey": None}}, "/changes/requester/sessionKey"),
    ({"requester": {"chanel": None}}, "/changes/requester/chanel"),
    ({"requester": {"workspaceDir": "../x"}}, "/changes/requester/workspaceDir"),
    ({"attachAs": {"mountPth": None}}, "/changes/attachAs/mountPth"),
    ({"sharedContext": {"$x": 1}}, "/changes/sharedContext/$x"),
    ({"runTimeoutSeconds": "1"}, "/changes/runTimeoutSeconds"),
]


def test_invalid_change_is_refused_with_its_place(server: Server) -> None:
    run_id = server.announced(session=server.new_session())["runId"]
    bodies: list[tuple[dict[str, Any], str]] = [
        ({"changes": changes}, pointer) for changes, pointer in INVALID
    ]
    fork: dict[str, Any] = {"transcript": {"upTo": 1}, "changes": {"context": "fork"}}
    bodies.append((fork, "/changes/context"))
    for body, pointer in bodies:
        problem = problem_of(respawn(server.http, run_id, **body), 422, "invalid_request")
        assert pointers_of(problem) == [pointer]
    assert server.run(run_id)["respawns"] == []


def test_token_respawns_what_it_may_spawn(server: Server) -> None:
    own, foreign = server.new_session("spawner"), server.new_session("other")
    run, foreign_run = (
        server.announced(session=own)["runId"],
        server.announced(session=foreign)["runId"],
    )
    to_another = {"requester": {"sessionKey": foreign}}
    # Its texts would come to another session, or to be read in a transcript.
    to_its_own = {"requester": {"sessionKey": server.new_session("spawner")}}
    beyond: list[dict[str, Any]] = [
        {"changes": to_another},
        {"changes": to_its_own},
        {"transcript": {"upTo": 1}},
        {"configRevision": 1},
    ]
    with server.with_token(server.secrets["spawner"]) as spawner:
        assert respawn(spawner, run).status_code == 201
        problem_of(respawn(spawner, foreign_run), 404, "not_found")
        for body in beyond:
            problem_of(respawn(spawner, run, **body), 403, "not_permitted")
    with server.with_token(server.secrets["everything"]) as administrator:
        found = respawn(administrator, run, changes=to_another, transcript={"upTo": 1})
        assert found.status_code == 201, found.text
        assert respawn(administrator, run, configRevision=1).status_code == 201
    moved = server.run(found.json()["runId"], "announced")
    assert (moved["requesterSessionKey"], moved["respawnedFrom"]) == (foreign, run)
    assert replaced(server, moved["runId"]) == ["requester"]
    assert moved["runId"] in server.run(run)["respawns"]


def test_lineage_shows_visible_runs_alone(server: Server) -> None:
    run_id = server.announced(session=server.new_session("reader"))["runId"]
    beside = respawned(server, run_id)
    respawned(server, run_id, requester={"sessionKey": server.new_session("other")})
    with server.with_token(server.secrets["texts"]) as reader:
        seen = reader.get(f"/v1/runs/{run_id}").json()
        assert seen["respawns"] == [beside["runId"]]
        listed = reader.get("/v1/runs", params={"respawnedFrom": run_id}).json()["items"]
        assert [run["runId"] for run in listed] == [beside["runId"]]


def test_child_respawns_its_own_children_alone(server: Server) -> None:
    session = server.new_session()
    sibling = server.announced(session=session)["runId"]
    with server.held(session) as held, server.with_token(held.token) as child:
        for answer in (
            respawn(child, held.run_id),
            respawn(child, sibling),
            respawn(child, held.run_id, configRevision=1),
        ):
            problem_of(answer, 403, "not_permitted")
        below = child.post("/v1/spawns", json=spawn_body("current")).json()["runId"]
        answer = respawn(child, below, changes={"task": "help me"})
        assert answer.status_code == 201, answer.text
        assert server.run(answer.json()["runId"])["requesterSessionKey"] == held.child
        for run_id in (below, answer.json()["runId"]):
            server.let_go(run_id)


def test_files_of_refused_spawn_are_left_out(server: Server) -> None:
    files = [{"name": "a.txt", "content": "x"}]
    refused = server.spawn(session=server.new_session(), attachments=files, attachAs={})
    run_id = problem_of(refused, 403, "spawn_forbidden")["runId"]
    problem = problem_of(respawn(server.http, run_id), 409, "cannot_respawn")
    assert "are not stored: set attachments in the changes, or null" in problem["detail"]
    without = respawned(server, run_id, attachments=None)
    assert replaced(server, without["runId"]) == ["attachments"]
