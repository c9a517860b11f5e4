"""One session under all its names: its key in any spelling, its id, and `current`."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

import httpx2
import pytest

from application.log.envelope import Actor
from application.queries.access import Caller
from application.queries.services import QueryServices
from application.queries.session_reference import resolve_session_reference
from tests.support.builders.key_spellings import spellings
from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import spawn_body
from tests.support.servers.http_server import ONE, House

CHILDREN_MAX = 5
UNKNOWN = "0f7ba0d0-3b5e-4c0f-9d5a-0c1de0f5a001"
POINTER = "/requester/sessionKey"


@pytest.fixture
def one(house: House) -> Iterator[httpx2.Client]:
    """A client with the token that acts for one session."""
    with house.with_token(house.secrets["one"]) as client:
        yield client


def session_of(client: httpx2.Client, name: str) -> dict[str, Any]:
    answer = client.get(f"/v1/sessions/{quote(name, safe='')}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.server
def test_every_name_of_a_session_has_the_same_places(house: House) -> None:
    """A child that asks as `current`, by its id and by its key gets five places, not fifteen."""
    with house.held(house.session("parent")) as parent, house.with_token(parent.token) as client:
        by_id = parent.answer["sessionId"]
        names = ["current", by_id, parent.child, " Current: ", by_id.upper(), f" {by_id}\t"]
        bodies = [spawn_body(name, agentId="slow") for name in [*names, *names]]
        with ThreadPoolExecutor(len(bodies)) as pool:
            answers = list(pool.map(lambda body: client.post("/v1/spawns", json=body), bodies))
        answers.sort(key=lambda one: one.status_code)
        assert [one.status_code for one in answers] == [201] * CHILDREN_MAX + [403] * 7
        for refused in answers[CHILDREN_MAX:]:
            problem = problem_of(refused, 403, "spawn_forbidden")
            assert (problem["rule"], problem["current"], problem["limit"]) == (
                "active_children",
                CHILDREN_MAX,
                CHILDREN_MAX,
            )
        session = session_of(client, "current")
        assert (session["sessionKey"], session["activeChildren"]) == (parent.child, CHILDREN_MAX)
        by_name = [client.get("/v1/runs", params={"requester": name}).json() for name in names]
        assert {len(page["items"]) for page in by_name} == {len(answers)}
        for accepted in answers[:CHILDREN_MAX]:
            client.post(f"/v1/runs/{accepted.json()['runId']}/stop")
    for name in ("current", by_id):
        unseen = house.http.get(f"/v1/sessions/agent:main:{name}")
        problem_of(unseen, 404, "not_found")


@pytest.mark.server
def test_a_token_of_one_session_is_spelled_like_a_key(house: House, one: httpx2.Client) -> None:
    for name in ("current", *spellings("the-one")):
        answer = one.post("/v1/spawns", json=spawn_body(name))
        assert answer.status_code == 201, answer.text
        run = house.server.run(answer.json()["runId"], "announced")
        assert run["requesterSessionKey"] == ONE
    session = session_of(one, "current")
    assert (session["sessionKey"], session["assertedBy"]) == (ONE, ONE)
    for name in (session["sessionId"], *spellings("the-one")):
        assert session_of(one, name) == session
    problem_of(one.post("/v1/spawns", json=spawn_body("main")), 403, "not_permitted")


@pytest.mark.server
def test_the_name_it_was_given_is_not_put_on_record_in_place_of_the_key(
    house: House, one: httpx2.Client
) -> None:
    answer = one.post("/v1/spawns", json=spawn_body("current"))
    assert answer.status_code == 201, answer.text
    assert session_of(one, "current")["displayKey"] != "current"
    key = house.session("displayed")
    house.ended(key)
    by_id = session_of(house.http, key)["sessionId"]
    run_id = house.accepted(by_id)["runId"]
    (requested,) = house.get(f"/v1/runs/{run_id}/events", limit=1)["items"]
    asked_by = requested["payload"]["requester"]
    assert (asked_by["sessionKey"], asked_by["displayKey"]) == (key, key)


@pytest.mark.server
def test_lists_and_pages_take_every_name(house: House, one: httpx2.Client) -> None:
    run_id = one.post("/v1/spawns", json=spawn_body("current")).json()["runId"]
    names = ("current", session_of(one, "current")["sessionId"], *spellings("the-one"))

    def positions(name: str) -> list[int]:
        query: dict[str, str | int] = {"tree": name, "types": "SpawnRequested", "limit": 500}
        items = one.get("/v1/events", params=query).json()["items"]
        return [item["position"] for item in items]

    def told(path: str, name: str) -> list[str]:
        query: dict[str, str | int] = {path: name, "limit": 500}
        return [run["runId"] for run in one.get("/v1/runs", params=query).json()["items"]]

    questions: list[Callable[[str], Any]] = [
        positions,
        lambda name: told("requester", name),
        lambda name: told("tree", name),
        lambda name: one.get("/v1/agents", params={"requester": name}).json(),
        lambda name: one.get(f"/v1/sessions/{quote(name)}/announcements").json(),
    ]
    for question in questions:
        answers = [question(name) for name in names]
        assert answers == [answers[0]] * len(names)
    assert run_id in told("requester", "current")
    assert len(positions("current")) == len(told("tree", "current"))


@pytest.mark.server
def test_a_session_id_is_no_way_around_what_a_token_may(house: House, one: httpx2.Client) -> None:
    foreign = house.session("stranger")
    house.ended(foreign)
    by_id = session_of(house.http, foreign)["sessionId"]
    problem_of(one.post("/v1/spawns", json=spawn_body(by_id)), 403, "not_permitted")
    problem_of(one.get(f"/v1/sessions/{by_id}"), 404, "not_found")
    problem_of(one.get(f"/v1/sessions/{by_id}/announcements"), 403, "not_permitted")
    problem_of(one.get("/v1/agents", params={"requester": by_id}), 404, "not_found")
    for name in ("requester", "tree"):
        assert one.get("/v1/runs", params={name: by_id}).json()["items"] == []
    assert len(house.runs(foreign)) == 1


@pytest.mark.server
def test_an_id_that_is_no_sessions_is_a_key_like_any_other(house: House) -> None:
    run = house.ended(UNKNOWN)
    assert run["requesterSessionKey"] == f"agent:main:{UNKNOWN}"
    of_child = house.accepted(house.session())["runId"]
    assert house.ended(of_child)["requesterSessionKey"] == f"agent:main:{of_child}"


@pytest.mark.server
def test_who_acts_for_many_sessions_has_no_current_one(house: House) -> None:
    advice = "give the session's key"
    refused: dict[str, httpx2.Response] = {
        POINTER: house.spawn("current"),
        "/path/key": house.http.get("/v1/sessions/current"),
        "/query/tree": house.http.get("/v1/events", params={"tree": "current"}),
    }
    for pointer, answer in refused.items():
        problem = problem_of(answer, 422, "invalid_request")
        assert pointers_of(problem) == [pointer]
        assert advice in problem["detail"]
    for path in ("/v1/runs", "/v1/agents"):
        answer = house.http.get(path, params={"requester": "current"})
        assert pointers_of(problem_of(answer, 422, "invalid_request")) == ["/query/requester"]
    problem_of(house.http.get("/v1/sessions/agent:main:current"), 404, "not_found")


class Asked:
    """Doors behind which is nothing but sessions by their ids, and what was looked up."""

    def __init__(self, sessions: Mapping[str, str]) -> None:
        self._sessions = sessions
        self.looked_up: list[str] = []

    async def session(self, name: str, *, at: int | None = None) -> object:
        """The session with this id, whenever."""
        assert at is None
        self.looked_up.append(name)
        key = self._sessions.get(name)
        return SimpleNamespace(session_key=key) if key else None

    async def named(self, spelling: str, *patterns: str) -> str | None:
        """What a spelling stands for."""
        services = cast(QueryServices, SimpleNamespace(work=SimpleNamespace(registry=self)))
        actor = Actor(kind="token", token="t")
        caller = Caller(actor=actor, scopes=frozenset(), patterns=patterns)
        return await resolve_session_reference(services, caller, spelling, POINTER)


async def test_only_what_looks_like_an_id_is_looked_up() -> None:
    asked = Asked({UNKNOWN: ONE})
    for key in (*spellings("the-one"), "main", "global", "", "::", f"agent:main:{UNKNOWN}"):
        assert await asked.named(key, ONE) is None
    assert await asked.named("current", ONE) == ONE
    assert asked.looked_up == []
    assert await asked.named(f" {UNKNOWN.upper()} ", ONE) == ONE
    assert asked.looked_up == [UNKNOWN]
