"""What cannot be shared is refused where it stands, in the words of the caller."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.sharing import patched, shared, types
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


def test_what_does_not_fit_beside_what_is_there_is_refused_and_recorded(house: House) -> None:
    session = house.session()
    house.ended(session, sharedContext={"a": "x" * 40_000})
    more = {"b": "x" * 40_000}
    problem = problem_of(house.spawn(session, sharedContext=more), 422, "spawn_error")
    assert problem["rule"] == "shared_context"
    assert "would have 80015 bytes and may have 65536 (40008 are taken)" in problem["detail"]
    assert types(house, problem["runId"]) == ["SpawnRequested", "SpawnRefused"]
    explained = house.http.get(f"/v1/runs/{problem['runId']}/explain").json()["decisions"]
    assert [one["rule"] for one in explained if one["result"] == "refused"] == ["shared_context"]
    answer = house.spawn(session, sharedContext=more, sharedContextScope="child")
    assert "share less with this child" in problem_of(answer, 422, "spawn_error")["detail"]
    assert house.spawn(session, sharedContext={"a": "x" * 50_000}).status_code == 201
    problem = problem_of(patched(house, session, c="x" * 40_000), 422, "invalid_request")
    assert problem["detail"].endswith("Take keys away with null in the same patch, or share less.")
    assert patched(house, session, a=None).json()["values"] == {}


def test_a_patch_says_for_which_version_it_is(house: House) -> None:
    path = f"/v1/sessions/{house.session()}/shared-context"
    beyond_all_versions = '"' + "0" * 19 + '7"'
    for match in (None, "7", 'W/"0"', '"x"', '"0", "1"', '"00"', beyond_all_versions):
        headers = {} if match is None else {"If-Match": match}
        problem = problem_of(
            house.http.patch(path, json={"a": 1}, headers=headers), 422, "invalid_request"
        )
        assert pointers_of(problem) == ["/headers/If-Match"]
    problem = problem_of(
        house.http.patch(path, json={"$a": "reference"}, headers={"If-Match": "*"}),
        422,
        "invalid_request",
    )
    assert pointers_of(problem) == ["/$a"]
    assert house.http.get(path).status_code == 404
    merge = {"Content-Type": "application/merge-patch+json", "If-Match": "*"}
    assert house.http.patch(path, content=b'{"a": 1}', headers=merge).status_code == 200


def test_of_two_that_are_prepared_at_once_the_later_one_may_find_no_room(
    house: House, label: str
) -> None:
    session = house.session()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(
            house.spawn,
            session,
            agentId="pondering",
            label=label,
            sharedContext={"slow": "x" * 40_000},
        )
        house.gates.wait(label)
        house.accepted(session, sharedContext={"quick": "x" * 40_000})
        house.gates.open(label)
        problem = problem_of(slow.result(), 422, "spawn_error")
    assert problem["rule"] == "shared_context"
    assert "may have 65536" in problem["detail"]
    assert list(shared(house, session)["values"]) == ["quick"]
    explained = house.http.get(f"/v1/runs/{problem['runId']}/explain").json()
    (refused,) = [one for one in explained["decisions"] if one["result"] == "refused"]
    assert refused["rule"] == "shared_context"
