"""`GET …/history`, `GET …/compare` and `GET /v1/diff` at the door: answers, and who may ask."""

from typing import Any

import pytest

from application.queries.changes.json_patch import apply_patch
from tests.support.http.problems import problem_of
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

RUNS_OF_A_SCRIPT_MAX = 50
"""Among so many some take another number of milliseconds."""


def get(house: House, path: str, **query: Any) -> dict[str, Any]:
    answer = house.http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def twins(house: House, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two runs of one requester that were asked for with the same words but for `more`."""
    requester = house.session()
    first = house.ended(requester, agentId="talker", task="hello")
    return first, house.ended(requester, agentId="talker", **{"task": "hello", **more})


def compare(house: House, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return get(house, f"/v1/runs/{left['runId']}/compare", **{"with": right["runId"]})


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
        rules = get(house, f"/v1/runs/{run['runId']}/explain")["decisions"]
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
    at_work = get(house, path, **{"with": right["runId"], "at": started})
    assert [at_work[side]["stage"] for side in ("left", "right")] == ["announced", "started"]
    assert not at_work["outcome"]["same"]
    assert at_work["outcome"]["right"]["resultText"] is None
    assert at_work["prompt"]["same"]
    assert at_work["transcript"]["rightEntries"] is None
    queued = get(house, path, **{"with": right["runId"], "at": f"pos:{reached['queued']}"})
    assert {one["verdict"] for one in queued["prompt"]["parts"]} == {"left_only"}
    over = get(house, path, **{"with": right["runId"], "at": ended})
    assert over["right"]["stage"] == "ended"
    assert over["outcome"]["right"]["resultText"] == right["resultText"]
    assert over["transcript"]["same"]
    now = compare(house, left, right)
    assert get(house, path, **{"with": right["runId"], "at": f"pos:{house.head()}"}) == now


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
    told = get(house, path, field="resultText")
    assert told["items"][-1]["changes"] == [{"op": "replace", "path": "/resultText", "value": None}]
    head = house.head()
    patches = get(house, "/v1/diff", runId=right["runId"], **{"from": "pos:0", "to": f"pos:{head}"})
    assert patches["added"][0]["patch"][0]["value"]["task"] is None


def test_a_diff_is_of_two_moments_in_either_order(house: House) -> None:
    before = house.head()
    run = house.ended(house.session(), agentId="talker")
    after = house.head()
    there = get(house, "/v1/diff", **{"from": f"pos:{before}", "to": f"pos:{after}"})
    assert (there["fromConfigRevision"], there["toConfigRevision"]) == (1, 1)
    begun = get(house, "/v1/diff", **{"from": "pos:0", "to": "pos:1"})
    assert (begun["fromConfigRevision"], begun["toConfigRevision"]) == (None, 1)
    added = {one["id"] for one in there["added"]}
    assert {run["runId"], run["childSessionKey"], run["requesterSessionKey"]} <= added
    back = get(house, "/v1/diff", **{"from": f"pos:{after}", "to": f"pos:{before}"})
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
