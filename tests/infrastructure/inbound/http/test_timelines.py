"""Histogram, timeline, moments and trees over HTTP: what they show, and to whom."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import spawn_body
from tests.support.servers.http_server import House
from tests.support.servers.running_server import wait_for

pytestmark = pytest.mark.server


def get(house: House, path: str, **query: Any) -> dict[str, Any]:
    answer = house.http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def tree_path(key: str) -> str:
    return f"/v1/sessions/{quote(key, safe='')}/tree"


def test_the_whole_log_is_counted_and_what_is_behind_the_head_is_kept(house: House) -> None:
    session = house.session()
    for _ in range(12):
        house.ended(session)
    events = house.http.get("/v1/events", params={"limit": 1}).json()
    found = get(house, "/v1/events/histogram", buckets=7, to=f"pos:{events['head']}")
    assert sum(one["events"] for one in found["items"]) == events["head"]
    assert found["items"][0]["firstPosition"] == 1
    assert found["items"][-1]["lastPosition"] == events["head"]
    by_time = get(house, "/v1/events/histogram", buckets=50, by="time", to=f"pos:{events['head']}")
    for kinds in ("types", "outcomes", "rules"):
        sums = [
            {
                name: sum(one[kinds].get(name, 0) for one in each["items"])
                for name in {name for one in each["items"] for name in one[kinds]}
            }
            for each in (found, by_time)
        ]
        assert sums[0] == sums[1]
    own = get(house, "/v1/events/histogram", tree=session, types="RunEnded,SpawnRequested")
    assert own["countedTo"] is None
    assert sum(one["outcomes"].get("success", 0) for one in own["items"]) == 12
    assert sum(one["types"].get("SpawnRequested", 0) for one in own["items"]) == 12
    by_system = get(house, "/v1/events/histogram", tree=session, actor="system")
    by_admin = get(house, "/v1/events/histogram", tree=session, actor="admin")
    whole = get(house, "/v1/events/histogram", tree=session)
    counts = [sum(one["events"] for one in each["items"]) for each in (by_system, by_admin, whole)]
    assert counts[0] + counts[1] == counts[2]
    assert counts[1] > 0


def test_a_tree_shows_a_session_and_all_below_it_as_it_was(house: House) -> None:
    session = house.session()
    with house.held(session, label="above") as above:
        before = house.head()
        with house.held(above.child, label="below") as below:
            now = get(house, tree_path(session))
            (first,) = now["root"]["children"]
            (second,) = first["children"]
            assert (first["sessionKey"], second["sessionKey"]) == (above.child, below.child)
            assert (first["activeChildren"], second["activeChildren"]) == (1, 0)
            assert second["runs"][0]["status"] == "running"
            then = get(house, tree_path(session), at=f"pos:{before}")
            assert then["root"]["children"][0]["children"] == []
            assert then["root"]["children"][0]["activeChildren"] == 0
            cut = get(house, tree_path(session), depth=1)
            assert cut["cut"]
            assert cut["root"]["children"][0]["childrenCut"]
            assert get(house, tree_path(above.child))["root"]["runs"] == first["runs"]
            with house.with_token(above.token) as child:
                assert child.get(tree_path("current")).json()["root"]["sessionKey"] == above.child
                bars = child.get("/v1/timeline").json()
                assert {one["runId"] for one in bars["items"]} == {above.run_id, below.run_id}
                assert bars["buckets"] == []
                own = child.get("/v1/events/histogram", params={"runId": above.run_id})
                assert sum(one["events"] for one in own.json()["items"]) > 0


def test_what_a_token_does_not_cover_is_not_counted(house: House) -> None:
    house.ended(house.session())
    reader = f"agent:main:reader-{house.session()[-12:]}"
    run = house.ended(reader)
    with house.with_token(house.secrets["reader"]) as narrow:
        refused = problem_of(narrow.get("/v1/events/histogram"), 403, "not_permitted")
        assert refused["detail"] == (
            "counts of the whole log are for tokens with the pattern *; give tree or runId"
        )
        own = narrow.get("/v1/events/histogram", params={"tree": reader, "buckets": 1}).json()
        assert own["items"][0]["outcomes"] == {"success": 1}
        bars = narrow.get("/v1/timeline", params={"limit": 5000}).json()
        assert run["runId"] in {one["runId"] for one in bars["items"]}
        assert all("reader-" in one["requesterSessionKey"] for one in bars["items"])
        assert bars["buckets"] == []
        assert narrow.get("/v1/timeline", params={"buckets": 3}).status_code == 403
        near = narrow.get("/v1/moments", params={"around": 50}).json()
        assert {one["tree"] for one in (*near["before"], *near["after"])} <= {
            one["requesterSessionKey"] for one in bars["items"]
        }
        assert near["configRevision"] is None
    with house.with_token(house.secrets["one"]) as only:
        # By its own token: tests beside read on whose word this session is on record.
        accepted = only.post("/v1/spawns", json=spawn_body("current")).json()
        house.server.run(accepted["runId"], "announced")
        counted = only.get("/v1/timeline", params={"buckets": 10}).json()
        assert sum(one["outcomes"].get("success", 0) for one in counted["buckets"]) >= 1


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/v1/events/histogram", {"from": "pos:2", "to": "pos:1"}),
        ("/v1/events/histogram", {"to": "pos:999999999"}),
        ("/v1/events/histogram", {"actor": "admin"}),
    ],
)
def test_what_cannot_be_meant_is_refused(house: House, path: str, query: dict[str, Any]) -> None:
    house.ended("main")
    problem_of(house.http.get(path, params=query), 422, "invalid_request")


def test_what_so_long_ago_means_is_said_by_the_first_page(house: House) -> None:
    session = house.session()
    runs = [house.ended(session)["runId"] for _ in range(2)]
    asked = {"from": "-1s", "limit": 1, "buckets": 0, "requester": session}
    first = get(house, "/v1/timeline", **asked)
    assert [one["runId"] for one in first["items"]] == [runs[1]]

    def is_all_longer_ago() -> bool:
        moment = house.http.get("/v1/moments", params={"at": "-1s"}).json()
        return bool(moment["position"] >= first["until"])

    wait_for("a second to pass", is_all_longer_ago)
    second = get(house, "/v1/timeline", **asked, cursor=first["nextCursor"])
    assert [one["runId"] for one in second["items"]] == [runs[0]]
    assert (second["after"], second["until"]) == (first["after"], first["until"])


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/v1/diff", {"from": "pos:0", "to": "-0s"}),
        ("/v1/events/find", {"field": "stage", "changes": "true"}),
        ("/v1/events", {}),
        ("/v1/events/histogram", {}),
        ("/v1/runs", {}),
        ("/v1/timeline", {}),
    ],
)
def test_a_tree_is_named_by_its_root(house: House, path: str, query: dict[str, str]) -> None:
    child = house.ended(house.session())["childSessionKey"]
    problem = problem_of(
        house.http.get(path, params={**query, "tree": child}), 422, "invalid_request"
    )
    assert pointers_of(problem) == ["/query/tree"]
    with house.with_token(house.secrets["one"]) as stranger:
        # Whom it does not concern is not told what is a root.
        hidden = stranger.get(path, params={**query, "tree": child})
        assert hidden.status_code != 422, hidden.text


@pytest.mark.parametrize(
    ("path", "query"),
    [("/v1/diff", {"from": "pos:0", "to": "-0s"}), ("/v1/events/find", {"rule": "depth"})],
)
def test_where_no_tree_is_nothing_can_have_changed(
    house: House, path: str, query: dict[str, str]
) -> None:
    house.ended(house.session())
    nobody = house.http.get(path, params={**query, "tree": "agent:main:nobody"})
    problem_of(nobody, 404, "not_found")


def test_the_end_of_a_range_that_means_nothing_is_pointed_at(house: House) -> None:
    house.ended(house.session())
    for name, range_ in (
        ("from", {"from": "yesterday", "to": "pos:1"}),
        ("to", {"from": "pos:1", "to": "run:nobody"}),
    ):
        problem = problem_of(house.http.get("/v1/diff", params=range_), 422, "invalid_request")
        assert pointers_of(problem) == [f"/query/{name}"]
