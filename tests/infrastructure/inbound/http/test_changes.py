"""Histories, comparisons, diffs, timelines, moments and trees: what they show, and to whom."""

from typing import Any
from urllib.parse import quote

import pytest

from application.queries.changes.json_patch import apply_patch
from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import spawn_body
from tests.support.servers.http_server import House
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


RUNS_OF_A_SCRIPT_MAX = 50
"""Among so many some take another number of milliseconds."""


def twins(house: House, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two runs of one requester that were asked for with the same words but for `more`."""
    requester = house.session()
    first = house.ended(requester, agentId="talker", task="hello")
    return first, house.ended(requester, agentId="talker", **{"task": "hello", **more})


def compare(house: House, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return house.get(f"/v1/runs/{left['runId']}/compare", **{"with": right["runId"]})


def test_two_runs_that_were_asked_for_alike_are_the_same(house: House) -> None:
    left, right = twins(house)
    found = compare(house, left, right)
    differing = [one for one in found["decisions"] if not one["same"]]
    # The first one made the folder of its agent, and is why the requester is on record.
    assert {one["rule"] for one in differing} <= {"workspace"}
    assert found["request"]["same"]
    assert found["plan"]["same"]
    assert found["prompt"]["same"]
    assert found["transcript"]["same"]
    assert found["outcome"]["same"]
    assert {one["verdict"] for one in found["prompt"]["parts"]} == {"equal"}
    assert found["transcript"]["equalEntries"] == found["transcript"]["leftEntries"] > 0


def test_how_long_a_context_script_took_is_no_difference(house: House) -> None:
    requester = house.session()

    def took(run: dict[str, Any]) -> int:
        rules = house.get(f"/v1/runs/{run['runId']}/explain")["decisions"]
        (told,) = [one["compared"] for one in rules if one["rule"] == "context_scripts"]
        return int(told["durationMs"])

    def ended() -> dict[str, Any]:
        return house.ended(requester, agentId="pondering", task="hello")

    ended()  # makes the folder of its agent
    one = ended()
    others = (ended() for _ in range(RUNS_OF_A_SCRIPT_MAX))
    other = next(run for run in others if took(run) != took(one))
    assert compare(house, one, other)["same"]


def test_a_run_is_the_same_as_itself(house: House) -> None:
    run = house.ended(house.session(), agentId="talker")
    assert compare(house, run, run)["same"]


def test_what_differs_is_shown_where_it_differs(house: House) -> None:
    left, right = twins(house, task="hello\nyou", label="other", runTimeoutSeconds=7)
    found = compare(house, left, right)
    assert not found["same"]
    request = found["request"]
    assert apply_patch(request["changes"], request["left"]) == request["right"]
    assert {"/task", "/label", "/runTimeoutSeconds"} <= {one["path"] for one in request["changes"]}
    assert [one["path"] for one in found["plan"]["changes"]] == [
        "/runTimeoutSeconds",
        "/runTimeoutSource",
    ]
    rules = {one["rule"] for one in found["decisions"] if not one["same"]}
    assert "run_timeout" in rules
    task = next(one for one in found["prompt"]["parts"] if one["source"] == "task")
    assert task["verdict"] == "different"
    assert "+you" in task["diff"].splitlines()
    first = found["transcript"]["firstDifference"]
    assert (first["left"]["sequence"], first["right"]["sequence"]) == (1, 1)


def test_two_runs_are_compared_as_they_were(house: House) -> None:
    left, right = twins(house)
    path = f"/v1/runs/{left['runId']}/compare"
    reached = {one["stage"]: one["position"] for one in right["stages"]}
    started, ended = f"pos:{reached['started']}", f"pos:{reached['ended']}"
    at_work = house.get(path, **{"with": right["runId"], "at": started})
    assert [at_work[side]["stage"] for side in ("left", "right")] == ["announced", "started"]
    assert not at_work["outcome"]["same"]
    assert at_work["outcome"]["right"]["resultText"] is None
    assert at_work["prompt"]["same"]
    assert at_work["transcript"]["rightEntries"] is None
    queued = house.get(path, **{"with": right["runId"], "at": f"pos:{reached['queued']}"})
    assert {one["verdict"] for one in queued["prompt"]["parts"]} == {"left_only"}
    over = house.get(path, **{"with": right["runId"], "at": ended})
    assert over["right"]["stage"] == "ended"
    assert over["outcome"]["right"]["resultText"] == right["resultText"]
    assert over["transcript"]["same"]
    now = compare(house, left, right)
    assert house.get(path, **{"with": right["runId"], "at": f"pos:{house.head()}"}) == now


def test_a_run_that_was_refused_has_neither_plan_nor_prompt(house: House) -> None:
    requester = house.session()
    refused = house.spawn(requester, agentId="not-there").json()["runId"]
    run = house.ended(requester, agentId="talker")
    found = compare(house, {"runId": refused}, run)
    assert found["left"]["status"] == "refused"
    assert {one["verdict"] for one in found["prompt"]["parts"]} == {"right_only"}
    assert "/rule" in {one["path"] for one in found["outcome"]["changes"]}
    assert any(one["left"] is None or not one["same"] for one in found["decisions"])


def test_what_was_erased_reads_as_erased_and_counts_as_a_difference(house: House) -> None:
    left, right = twins(house)
    house.server.erase_session(right["sessionId"])
    found = compare(house, left, right)
    assert not found["same"]
    assert {"task", "resultText"} <= set(found["request"]["erased"] + found["outcome"]["erased"])
    assert "erased" in {one["verdict"] for one in found["prompt"]["parts"]}
    assert found["transcript"]["erased"]
    assert not found["transcript"]["same"]
    assert found["transcript"]["firstDifference"] is None
    assert compare(house, right, right)["same"], "under one key the recorded hashes tell"
    for at in ({}, {"at": f"run:{right['runId']}@ended"}):
        said = house.http.get(f"/v1/runs/{right['runId']}/transcript", params=at)
        problem_of(said, 410, "erased")
    path = f"/v1/runs/{right['runId']}/history"
    told = house.get(path, field="resultText")
    assert told["items"][-1]["changes"] == [{"op": "replace", "path": "/resultText", "value": None}]
    head = house.head()
    patches = house.get("/v1/diff", runId=right["runId"], **{"from": "pos:0", "to": f"pos:{head}"})
    assert patches["added"][0]["patch"][0]["value"]["task"] is None


def test_a_diff_is_of_two_moments_in_either_order(house: House) -> None:
    before = house.head()
    run = house.ended(house.session(), agentId="talker")
    after = house.head()
    there = house.get("/v1/diff", **{"from": f"pos:{before}", "to": f"pos:{after}"})
    assert (there["fromConfigRevision"], there["toConfigRevision"]) == (1, 1)
    begun = house.get("/v1/diff", **{"from": "pos:0", "to": "pos:1"})
    assert (begun["fromConfigRevision"], begun["toConfigRevision"]) == (None, 1)
    added = {one["id"] for one in there["added"]}
    assert {run["runId"], run["childSessionKey"], run["requesterSessionKey"]} <= added
    back = house.get("/v1/diff", **{"from": f"pos:{after}", "to": f"pos:{before}"})
    assert {one["id"] for one in back["removed"]} == added
    assert back["counts"]["removed"] == len(added)


def test_child_compares_its_run_with_no_run_of_others(house: House) -> None:
    requester = house.session()
    sibling, stranger = house.ended(requester), house.ended(house.session())
    with house.held(requester) as held, house.with_token(held.token) as child:
        path = f"/v1/runs/{held.run_id}/compare"
        assert child.get(path, params={"with": held.run_id}).is_success
        answer = child.get(path, params={"with": sibling["runId"]})
        problem_of(answer, 403, "not_permitted")
        problem_of(child.get(path, params={"with": stranger["runId"]}), 404, "not_found")
        span = {"from": "pos:0", "to": f"pos:{house.head()}", "runId": held.run_id}
        assert child.get("/v1/diff", params=span).is_success


def tree_path(key: str) -> str:
    return f"/v1/sessions/{quote(key, safe='')}/tree"


def test_the_whole_log_is_counted_and_what_is_behind_the_head_is_kept(house: House) -> None:
    session = house.session()
    for _ in range(12):
        house.ended(session)
    events = house.get("/v1/events", limit=1)
    found = house.get("/v1/events/histogram", buckets=7, to=f"pos:{events['head']}")
    assert sum(one["events"] for one in found["items"]) == events["head"]
    assert found["items"][0]["firstPosition"] == 1
    assert found["items"][-1]["lastPosition"] == events["head"]
    by_time = house.get("/v1/events/histogram", buckets=50, by="time", to=f"pos:{events['head']}")
    for kinds in ("types", "outcomes", "rules"):
        sums = [
            {
                name: sum(one[kinds].get(name, 0) for one in each["items"])
                for name in {name for one in each["items"] for name in one[kinds]}
            }
            for each in (found, by_time)
        ]
        assert sums[0] == sums[1]
    own = house.get("/v1/events/histogram", tree=session, types="RunEnded,SpawnRequested")
    assert own["countedTo"] is None
    assert sum(one["outcomes"].get("success", 0) for one in own["items"]) == 12
    assert sum(one["types"].get("SpawnRequested", 0) for one in own["items"]) == 12
    by_system = house.get("/v1/events/histogram", tree=session, actor="system")
    by_admin = house.get("/v1/events/histogram", tree=session, actor="admin")
    whole = house.get("/v1/events/histogram", tree=session)
    counts = [sum(one["events"] for one in each["items"]) for each in (by_system, by_admin, whole)]
    assert counts[0] + counts[1] == counts[2]
    assert counts[1] > 0


def test_a_tree_shows_a_session_and_all_below_it_as_it_was(house: House) -> None:
    session = house.session()
    with house.held(session, label="above") as above:
        before = house.head()
        with house.held(above.child, label="below") as below:
            now = house.get(tree_path(session))
            (first,) = now["root"]["children"]
            (second,) = first["children"]
            assert (first["sessionKey"], second["sessionKey"]) == (above.child, below.child)
            assert (first["activeChildren"], second["activeChildren"]) == (1, 0)
            assert second["runs"][0]["status"] == "running"
            then = house.get(tree_path(session), at=f"pos:{before}")
            assert then["root"]["children"][0]["children"] == []
            assert then["root"]["children"][0]["activeChildren"] == 0
            cut = house.get(tree_path(session), depth=1)
            assert cut["cut"]
            assert cut["root"]["children"][0]["childrenCut"]
            assert house.get(tree_path(above.child))["root"]["runs"] == first["runs"]
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
    first = house.get("/v1/timeline", **asked)
    assert [one["runId"] for one in first["items"]] == [runs[1]]

    def is_all_longer_ago() -> bool:
        moment = house.get("/v1/moments", at="-1s")
        return bool(moment["position"] >= first["until"])

    wait_for("a second to pass", is_all_longer_ago)
    second = house.get("/v1/timeline", **asked, cursor=first["nextCursor"])
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
