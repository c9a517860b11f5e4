"""Shared contexts: patched, read, given to runs, and refused."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from domain.prompt.untrusted import BEGIN, END
from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.sharing import given, patched, prompt, shared, types
from tests.support.http.wire import client_of
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

GOAL = {"projectGoal": "Build a modern web app", "targetAudience": "Developers"}


def referring(*names: str, **values: Any) -> dict[str, Any]:
    return {**values, **{f"${name}": "reference" for name in names}}


def test_refused_spawn_shares_nothing(server: Server) -> None:
    session = server.new_session()
    answer = server.spawn(session=session, agentId="ghost", sharedContext=GOAL)
    run_id = problem_of(answer, 422, "spawn_error")["runId"]
    problem_of(server.http.get(f"/v1/runs/{run_id}/shared-context"), 409, "not_started")
    server.announced(session=session)
    assert shared(server, session)["values"] == {}


def test_patch_needs_version_on_record(server: Server) -> None:
    session = server.new_session()
    first = patched(server, session, '"0"', a=1)
    assert first.status_code == 200, first.text
    problem = problem_of(patched(server, session, '"0"', b=2), 412, "precondition_failed")
    assert problem["current"] == first.json()["version"]
    again = patched(server, session, first.headers["etag"], a=1)
    assert again.json()["version"] == first.json()["version"], "it changes nothing"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: patched(server, session, **{f"k{n}": n}), range(24)))
    assert [response.status_code for response in answers] == [200] * 24
    assert shared(server, session)["values"] == {"a": 1} | {f"k{n}": n for n in range(24)}


def test_patch_without_valid_version_is_refused(server: Server) -> None:
    path = f"/v1/sessions/{server.new_session()}/shared-context"
    beyond_all_versions = '"' + "0" * 19 + '7"'
    for match in (None, "7", 'W/"0"', '"x"', '"0", "1"', '"00"', beyond_all_versions):
        headers = {} if match is None else {"If-Match": match}
        answer = server.http.patch(path, json={"a": 1}, headers=headers)
        assert pointers_of(problem_of(answer, 422, "invalid_request")) == ["/headers/If-Match"]
    answer = server.http.patch(path, json={"$a": "reference"}, headers={"If-Match": "*"})
    assert pointers_of(problem_of(answer, 422, "invalid_request")) == ["/$a"]
    assert server.http.get(path).status_code == 404
    merge = {"Content-Type": "application/merge-patch+json", "If-Match": "*"}
    assert server.http.patch(path, content=b'{"a": 1}', headers=merge).status_code == 200


def test_child_patches_its_own_session_alone(server: Server) -> None:
    session = server.new_session()
    with server.held(session, sharedContext=GOAL) as child:
        with server.with_token(child.token) as own:
            assert patched(server, child.child, client=own, projectGoal=None).status_code == 200
            problem_of(patched(server, session, client=own, projectGoal=None), 403, "not_permitted")
            assert own.get(f"/v1/sessions/{session}/shared-context").status_code in (403, 404)
        below = server.announced(session=child.child, agentId="main")
        assert given(server, below["runId"])["values"] == {"targetAudience": "Developers"}
    assert shared(server, session)["values"] == GOAL


def test_writer_without_content_is_told_sizes(server: Server) -> None:
    session = server.new_session("spawner")
    whole = patched(server, session, goal="a canary", other=[1])
    assert whole.json()["values"] == {"goal": "a canary", "other": [1]}
    assert whole.json()["sizes"] == {"goal": 10, "other": 3}
    with client_of(server.url, server.secrets["spawner"]) as client:
        changes: list[dict[str, Any]] = [{"other": None, "more": "x"}, {}]
        for values in changes:
            answer = patched(server, session, client=client, **values)
            assert answer.status_code == 200, answer.text
            body = answer.json()
            assert set(body) == {"sessionKey", "version", "position", "sizes"}
            assert body["sizes"] == {"goal": 10, "more": 3}
            assert answer.headers["etag"] == f'"{body["version"]}"'
        path = f"/v1/sessions/{session}/shared-context"
        assert problem_of(client.get(path), 403, "not_permitted")["detail"].endswith('"content"')
    assert shared(server, session)["values"] == {"goal": "a canary", "more": "x"}


def test_context_over_limit_is_refused_and_recorded(server: Server) -> None:
    session = server.new_session()
    server.announced(session=session, sharedContext={"a": "x" * 40_000})
    more = {"b": "x" * 40_000}
    problem = problem_of(server.spawn(session=session, sharedContext=more), 422, "spawn_error")
    assert problem["rule"] == "shared_context"
    assert (
        "would have 80015 bytes, more than the 65536 allowed (40008 are in use)"
        in problem["detail"]
    )
    assert types(server, problem["runId"]) == ["SpawnRequested", "SpawnRefused"]
    answer = server.spawn(session=session, sharedContext=more, sharedContextScope="child")
    assert "share less with this child" in problem_of(answer, 422, "spawn_error")["detail"]
    assert server.spawn(session=session, sharedContext={"a": "x" * 50_000}).status_code == 201
    problem = problem_of(patched(server, session, c="x" * 40_000), 422, "invalid_request")
    assert problem["detail"].endswith("Remove keys with null in the same patch, or share less.")
    assert patched(server, session, a=None).json()["values"] == {}


def test_prepared_spawn_may_find_no_room(server: Server, label: str) -> None:
    session = server.new_session()
    slow = {"slow": "x" * 40_000}
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(
            server.spawn, session=session, agentId="pondering", label=label, sharedContext=slow
        )
        server.began(label)
        server.spawned(session=session, sharedContext={"quick": "x" * 40_000})
        server.let_go(label)
        problem = problem_of(asking.result(), 422, "spawn_error")
    assert problem["rule"] == "shared_context"
    assert list(shared(server, session)["values"]) == ["quick"]
    explained = server.get(f"/v1/runs/{problem['runId']}/explain")["decisions"]
    assert [rule["rule"] for rule in explained if rule["result"] == "refused"] == ["shared_context"]


def test_reference_by_beginning_of_label(server: Server) -> None:
    session = server.new_session()
    for label in ("alpha-1", "alpha-2", "alpha", "beta-report"):
        server.announced(session=session, label=label)
    ids = {run["label"]: run["runId"] for run in server.runs(requester=session)}
    names = {"beta": "beta-report", "alpha": "alpha", ids["alpha-2"]: "alpha-2"}
    run = server.announced(session=session, sharedContext=referring(*names))
    found = {dependency["name"]: dependency["runId"] for dependency in run["dependsOn"]}
    assert found == {name: ids[label] for name, label in names.items()}
    problem = problem_of(
        server.spawn(session=session, sharedContext=referring("alp")), 422, "spawn_error"
    )
    assert problem["rule"] == "reference_ambiguous"
    assert problem["detail"] == (
        f'sharedContext.$alp: "alp" is a prefix of 3 labels: "alpha" (run {ids["alpha"]}),'
        f' "alpha-2" (run {ids["alpha-2"]}), "alpha-1" (run {ids["alpha-1"]}); give a whole'
        " label or a run id"
    )
    problem = problem_of(
        server.spawn(session=session, sharedContext=referring("gamma")), 422, "spawn_error"
    )
    assert problem["rule"] == "reference_unknown"
    assert f'"beta-report" (run {ids["beta-report"]})' in problem["detail"]


def test_result_of_silent_run_is_null(server: Server) -> None:
    session = server.new_session()
    server.announced(session=session, label="quiet", agentId="quiet")
    run = server.announced(session=session, sharedContext=referring("quiet"))
    assert given(server, run["runId"])["values"] == {"quiet": None}
    assert f"{BEGIN}\nnull\n{END}" in prompt(server, run["runId"])
