"""Sessions by each of their names, their first record, and their inboxes."""

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from application.queries.sessions import OWN_RUNS_SHOWN_MAX
from tests.support.builders.key_spellings import spellings
from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import spawn_body
from tests.support.servers.http_server import ONE
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

CHILDREN_MAX = 5
UNKNOWN = "0f7ba0d0-3b5e-4c0f-9d5a-0c1de0f5a001"


@pytest.fixture
def bound_client(server: Server) -> Iterator[httpx2.Client]:
    """Yield a client with the token for one session."""
    with server.with_token(server.secrets["one"]) as client:
        yield client


def session_of(client: httpx2.Client, name: str) -> dict[str, Any]:
    answer = client.get(f"/v1/sessions/{quote(name, safe='')}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def spawn_as(client: httpx2.Client, key: str, **requester: Any) -> httpx2.Response:
    """Spawn with more about the requester; `same` makes the child one of the requester's agent."""
    more = {"agentId": requester["agentIdOverride"]} if requester.pop("same", False) else {}
    body = {"requester": {"sessionKey": key, **requester}, "task": "hello", **more}
    return client.post("/v1/spawns", json=body)


def inbox_of(server: Server, name: str, **query: Any) -> dict[str, Any]:
    return server.get(f"/v1/sessions/{quote(name, safe='')}/announcements", **query)


def test_every_name_of_session_shares_its_places(server: Server) -> None:
    """A child that spawns as `current`, by its id and by its key gets five places, not fifteen."""
    with (
        server.held(server.new_session("parent")) as parent,
        server.with_token(parent.token) as client,
    ):
        by_id = parent.answer["sessionId"]
        names = ["current", by_id, parent.child, " Current: ", by_id.upper(), f" {by_id}\t"]
        bodies = [spawn_body(name, agentId="slow") for name in [*names, *names]]
        with ThreadPoolExecutor(len(bodies)) as pool:
            answers = list(pool.map(lambda body: client.post("/v1/spawns", json=body), bodies))
        answers.sort(key=lambda response: response.status_code)
        assert [response.status_code for response in answers] == [201] * CHILDREN_MAX + [403] * 7
        problem = problem_of(answers[-1], 403, "spawn_forbidden")
        assert problem["rule"] == "active_children"
        assert problem["current"] == problem["limit"] == CHILDREN_MAX
        session = session_of(client, "current")
        assert (session["sessionKey"], session["activeChildren"]) == (parent.child, CHILDREN_MAX)
        by_name = [client.get("/v1/runs", params={"requester": name}).json() for name in names]
        assert {len(page["items"]) for page in by_name} == {len(answers)}
        for accepted in answers[:CHILDREN_MAX]:
            client.post(f"/v1/runs/{accepted.json()['runId']}/stop")
    for name in ("current", by_id):
        problem_of(server.http.get(f"/v1/sessions/agent:main:{name}"), 404, "not_found")


def test_token_of_one_session_takes_every_spelling(
    server: Server, bound_client: httpx2.Client
) -> None:
    for name in ("current", *spellings("the-one")):
        answer = bound_client.post("/v1/spawns", json=spawn_body(name))
        assert answer.status_code == 201, answer.text
        run = server.run(answer.json()["runId"], "announced")
        assert run["requesterSessionKey"] == ONE
    session = session_of(bound_client, "current")
    assert (session["sessionKey"], session["assertedBy"]) == (ONE, ONE)
    assert session["displayKey"] != "current"
    names = ("current", session["sessionId"], *spellings("the-one"))
    problem_of(bound_client.post("/v1/spawns", json=spawn_body("main")), 403, "not_permitted")

    def listed(path: str, **query: str | int) -> list[Any]:
        items = bound_client.get(path, params={**query, "limit": 500}).json()["items"]
        return [item.get("position", item.get("runId")) for item in items]

    questions: list[Callable[[str], Any]] = [
        lambda name: session_of(bound_client, name),
        lambda name: listed("/v1/events", tree=name, types="SpawnRequested"),
        lambda name: listed("/v1/runs", requester=name),
        lambda name: listed("/v1/runs", tree=name),
        lambda name: bound_client.get("/v1/agents", params={"requester": name}).json(),
        lambda name: bound_client.get(f"/v1/sessions/{quote(name)}/announcements").json(),
    ]
    for question in questions:
        answers = [question(name) for name in names]
        assert answers == [answers[0]] * len(names)
    assert run["runId"] in listed("/v1/runs", requester="current")


def test_session_id_reaches_no_more_than_its_key(
    server: Server, bound_client: httpx2.Client
) -> None:
    foreign = server.new_session("stranger")
    server.announced(session=foreign)
    by_id = session_of(server.http, foreign)["sessionId"]
    problem_of(bound_client.post("/v1/spawns", json=spawn_body(by_id)), 403, "not_permitted")
    problem_of(bound_client.get(f"/v1/sessions/{by_id}"), 404, "not_found")
    problem_of(bound_client.get(f"/v1/sessions/{by_id}/announcements"), 403, "not_permitted")
    problem_of(bound_client.get("/v1/agents", params={"requester": by_id}), 404, "not_found")
    for name in ("requester", "tree"):
        assert bound_client.get("/v1/runs", params={name: by_id}).json()["items"] == []
    run_id = server.accepted(session=by_id)
    (requested,) = server.recorded(run_id, "SpawnRequested")
    requester = requested["payload"]["requester"]
    assert (requester["sessionKey"], requester["displayKey"]) == (foreign, foreign)


def test_id_of_no_session_is_a_key(server: Server) -> None:
    of_child = server.accepted(session=server.new_session())
    for name in (UNKNOWN, of_child):
        assert server.announced(session=name)["requesterSessionKey"] == f"agent:main:{name}"


def test_token_of_many_sessions_has_no_current_one(server: Server) -> None:
    get = server.http.get
    for pointer, answer in (
        ("/requester/sessionKey", server.spawn(session="current")),
        ("/path/key", get("/v1/sessions/current")),
        ("/query/tree", get("/v1/events?tree=current")),
        ("/query/requester", get("/v1/runs?requester=current")),
        ("/query/requester", get("/v1/agents?requester=current")),
    ):
        problem = problem_of(answer, 422, "invalid_request")
        assert pointers_of(problem) == [pointer]
        assert "give the session's key" in problem["detail"]
    problem_of(get("/v1/sessions/agent:main:current"), 404, "not_found")


def test_main_session_has_an_alias(server: Server) -> None:
    server.announced(session="main")
    assert session_of(server.http, "main") == session_of(server.http, "agent:main:main")
    agents = server.get("/v1/agents")
    assert agents["requester"] == "main"
    assert agents == server.get("/v1/agents", requester="main")


def test_key_with_slashes_is_a_name(server: Server) -> None:
    key = f"agent:main:chat:group:spaces/{uuid.uuid4().hex}/threads/1"
    run = server.announced(session=key)
    assert session_of(server.http, key)["sessionKey"] == key
    (item,) = inbox_of(server, key)["items"]
    ack = f"/v1/sessions/{quote(key, safe='')}/announcements/{item['id']}/ack"
    assert server.http.post(ack).status_code == 200
    assert inbox_of(server, key)["items"][0]["state"] == "acknowledged"
    assert server.runs(requester=key)[0]["runId"] == run["runId"]
    answer = server.http.get(f"/v1/sessions/{quote(key + 'x', safe='')}")
    assert problem_of(answer, 404, "not_found")["instance"].count("/") == 3


@pytest.mark.parametrize("name", ["agent:main:nobody", UNKNOWN.replace("0f", "1f")])
def test_unseen_session_is_not_found(server: Server, name: str) -> None:
    problem = problem_of(server.http.get(f"/v1/sessions/{name}"), 404, "not_found")
    assert problem["detail"] == f'there is no session "{name}" on record'
    assert inbox_of(server, name)["items"] == []


def test_name_of_a_run_leads_to_its_session(server: Server) -> None:
    label = f"red {uuid.uuid4().hex[:8]}"
    run = server.announced(session=server.new_session(), label=label)
    key, child = run["requesterSessionKey"], run["childSessionKey"]
    of_run = {
        label: f"it is the label of the run {run['runId']}",
        run["runId"]: "it is the id of a run",
    }
    for name, text in of_run.items():
        place = f"/v1/sessions/{quote(name)}"
        detail = f'there is no session "{name}" on record; {text}, which has the session {child}'
        request = [
            server.http.get(place),
            server.http.get(f"{place}/tree"),
            server.http.post(f"{place}/stop"),
            server.http.post(f"{place}/yield"),
            server.http.put(f"{place}/preamble", json={"preamble": "x"}),
        ]
        for answer in request:
            assert problem_of(answer, 404, "not_found")["detail"] == detail
        # A token without access to the session gets the same plain refusal.
        with server.with_token(server.secrets["one"]) as second_client:
            problem = problem_of(second_client.get(place), 404, "not_found")
            assert problem["detail"] == f'there is no session "{name}" on record'
    again = server.announced(session=key, label=label)
    problem = problem_of(server.http.get(f"/v1/sessions/{quote(label)}"), 404, "not_found")
    assert f"it is the label of the newest run {again['runId']}, which" in problem["detail"]


def test_redrive_of_another_name_says_what_to_give(server: Server) -> None:
    label = f"red {uuid.uuid4().hex[:8]}"
    run = server.announced(session=server.new_session(), label=label)
    result = {
        label: f'; "{label}" is the label of the run {run["runId"]}: give the id of the run',
        run["childSessionKey"]: "; give the id of a run, as the inbox of the session lists it",
        UNKNOWN: "",
        "nobody": "",
    }
    for name, advice in result.items():
        place = f"/v1/announcements/{quote(name, safe='')}/redrive"
        problem = problem_of(server.http.post(place, json={"reason": "again"}), 404, "not_found")
        assert problem["detail"] == f"announcement not found{advice}"


def test_wait_ends_with_first_announcement(server: Server) -> None:
    key = server.new_session()
    with ThreadPoolExecutor(2) as pool, server.held(key) as run:
        names = (key, session_of(server.http, key)["sessionId"])
        waiting = [pool.submit(inbox_of, server, name, wait="20s") for name in names]
        for _ in range(3):
            server.announced(session=server.new_session())
        assert not waiting[0].done()
        server.let_go(run.run_id)
        for inbox in waiting:
            assert [item["runId"] for item in inbox.result(20)["items"]] == [run.run_id]
    began = time.monotonic()
    assert len(inbox_of(server, key, wait="30s")["items"]) == 1
    assert time.monotonic() - began < 3


def test_wait_in_vain_takes_its_time(server: Server) -> None:
    key = server.new_session()
    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        waiting = pool.submit(inbox_of, server, key, wait="700ms")
        while not waiting.done():
            server.announced(session=server.new_session())
        seconds = time.monotonic() - began
    assert waiting.result()["items"] == []
    assert 0.7 <= seconds < 5


def test_announcement_is_acknowledged_once(server: Server) -> None:
    run = server.announced(session=server.new_session())
    key = run["requesterSessionKey"]
    path = f"/v1/sessions/{key}/announcements/{run['runId']}/ack"
    for _ in range(2):
        answer = server.http.post(path)
        assert answer.status_code == 200
        assert answer.json() == {"id": run["runId"], "runId": run["runId"]}
    (item,) = inbox_of(server, key)["items"]
    assert item["state"] == "acknowledged"
    assert item["acknowledgedAt"]
    assert server.run(run["runId"])["announcement"]["state"] == "acknowledged"
    assert server.events(run["runId"]).count("AnnouncementAcknowledged") == 1


def test_run_outside_inbox_cannot_be_acknowledged(server: Server) -> None:
    run, second_key = server.announced(session=server.new_session()), server.new_session()
    own = run["requesterSessionKey"]
    for session, run_id in ((second_key, run["runId"]), (own, UNKNOWN), (own, "x")):
        answer = server.http.post(f"/v1/sessions/{session}/announcements/{run_id}/ack")
        problem = problem_of(answer, 404, "not_found")
        assert problem["detail"] in (
            f"this inbox has no such announcement; it is in the inbox of session {own}",
            "announcement not found",
        )
    quiet = server.announced(session=own, expectsCompletionMessage=False)
    running = server.spawned(session=own, agentId="slow")
    for run_id in (quiet["runId"], running["runId"]):
        answer = server.http.post(f"/v1/sessions/{own}/announcements/{run_id}/ack")
        problem_of(answer, 409, "no_announcement")
    server.http.post(f"/v1/runs/{running['runId']}/stop")


@pytest.mark.parametrize("cleanup", ["delete", "keep"])
def test_session_whose_run_is_over_spawns_no_more(server: Server, cleanup: str) -> None:
    run = server.spawned(session=server.new_session(), cleanup=cleanup)
    server.run(run["runId"], "archived" if cleanup == "delete" else "announced")
    child = str(run["childSessionKey"])
    problem = problem_of(server.spawn(session=child), 409, "session_closed")
    session = session_of(server.http, child)
    assert (session["closedAt"] is not None) is (cleanup == "delete")
    if cleanup == "keep":
        assert session["stage"] == "open"
        assert problem["title"] == "The session is closed or its run is over"
        assert "continue it with a message while it is open" in problem["detail"]


def test_session_is_as_first_asserted(server: Server) -> None:
    key = server.new_session("asserted")
    answer = spawn_as(server.http, key, sandboxed=True, agentIdOverride="boxed", same=True)
    assert answer.status_code == 201, answer.text
    session = session_of(server.http, key)
    assert (session["assertedBy"], session["depthFrom"]) == ("admin", "shape")
    assert (session["agentId"], session["sandboxed"]) == ("boxed", True)
    assert session["assertions"] == ["agentId", "sandboxed"]
    assert session["workspaceDir"] is None
    child = session_of(server.http, answer.json()["childSessionKey"])
    assert (child["assertedBy"], child["assertions"], child["depthFrom"]) == ("spawn", [], "spawn")
    run = server.run(answer.json()["runId"])
    assert child["workspaceDir"] == run["workspaceDir"]
    assert child["sandboxed"] is run["sandboxed"] is True
    spawn_as(server.http, key, sandboxed=False, agentIdOverride="narrow")
    for name in ("agentId", "sandboxed", "assertions", "assertedBy", "depthFrom", "depth"):
        assert session_of(server.http, key)[name] == session[name]


def test_agent_on_record_outranks_that_of_key(server: Server) -> None:
    key = server.new_session("narrowed")
    assert spawn_as(server.http, key, agentIdOverride="narrow", same=True).status_code == 201
    session = session_of(server.http, key)
    for spelling in (key, key.upper(), session["sessionId"]):
        found = server.get("/v1/agents", requester=spelling)
        assert (found["requester"], found["allowAny"]) == ("narrow", False)
        assert [agent["id"] for agent in found["agents"]] == ["narrow"]


def test_token_cannot_make_session_another_agents(
    server: Server, bound_client: httpx2.Client
) -> None:
    answer = spawn_as(bound_client, ONE, agentIdOverride="boxed")
    assert 'does not act for agent "boxed"' in problem_of(answer, 403, "not_permitted")["detail"]
    recorded = server.http.get(f"/v1/sessions/{ONE}").json()
    assert recorded.get("agentId", "main") == "main"


def test_session_leaves_no_sandbox_as_another_agent(server: Server) -> None:
    key = "agent:boxed:escape"
    answer = spawn_as(server.http, key, agentIdOverride="main")
    assert problem_of(answer, 403, "spawn_forbidden")["rule"] == "sandbox"
    assert session_of(server.http, key)["sandboxed"] is True


def test_newest_runs_of_session_are_shown(server: Server) -> None:
    first = server.announced(session=server.new_session("many"))
    runs, head = [first["runId"]], 0
    for _ in range(OWN_RUNS_SHOWN_MAX):
        head = server.head()
        runs.append(server.continued(first["runId"], "and then?"))
        server.run(runs[-1], "announced")
    path = f"/v1/sessions/{first['childSessionKey']}"
    newest = runs[::-1]
    assert [run["runId"] for run in server.get(path)["ownRuns"]] == newest[:-1]
    then = server.get(path, at=f"pos:{head}")["ownRuns"]
    assert [run["runId"] for run in then] == newest[1:]
