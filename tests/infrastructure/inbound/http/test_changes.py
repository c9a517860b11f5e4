"""Comparisons, diffs and timelines: content and visibility."""

from typing import Any

import pytest

from application.queries.changes.json_patch import apply_patch
from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import spawn_body
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

RUNS_OF_A_SCRIPT_MAX = 50
"""Number of runs of which some take another number of milliseconds."""
Run = dict[str, Any]


def twins(server: Server, **more: Any) -> tuple[Run, Run]:
    """Return two runs of one requester whose requests are the same but for `more`."""
    requester = server.new_session()
    first = server.announced(session=requester, agentId="talker", task="hello")
    return first, server.announced(session=requester, agentId="talker", **{"task": "hello", **more})


def compare(server: Server, left: Run, right: Run, **query: str) -> dict[str, Any]:
    path = f"/v1/runs/{left['runId']}/compare"
    return server.get(path, **{"with": right["runId"], **query})


def test_equal_requests_compare_as_same(server: Server) -> None:
    left, right = twins(server)
    found = compare(server, left, right)
    differing = [decision for decision in found["decisions"] if not decision["same"]]
    # Only the first run created the folder of its agent and recorded the requester.
    assert {item["rule"] for item in differing} <= {"workspace"}
    parts = ("request", "plan", "prompt", "transcript", "outcome")
    assert [found[part]["same"] for part in parts] == [True] * len(parts)
    assert {part["verdict"] for part in found["prompt"]["parts"]} == {"equal"}
    assert found["transcript"]["equalEntries"] == found["transcript"]["leftEntries"] > 0
    assert compare(server, left, left)["same"]


def test_duration_of_script_is_no_difference(server: Server) -> None:
    requester = server.new_session()

    def duration(run: Run) -> int:
        rules = server.get(f"/v1/runs/{run['runId']}/explain")["decisions"]
        (rule,) = [rule["compared"] for rule in rules if rule["rule"] == "context_scripts"]
        return int(rule["durationMs"])

    def ended() -> Run:
        return server.announced(session=requester, agentId="pondering", task="hello")

    ended()  # makes the folder of its agent
    ended_run = ended()
    others = (ended() for _ in range(RUNS_OF_A_SCRIPT_MAX))
    longer = next(run for run in others if duration(run) != duration(ended_run))
    assert compare(server, ended_run, longer)["same"]


def test_difference_is_shown_at_its_place(server: Server) -> None:
    left, right = twins(server, task="hello\nyou", label="other", runTimeoutSeconds=7)
    found = compare(server, left, right)
    assert not found["same"]
    request = found["request"]
    assert apply_patch(request["changes"], request["left"]) == request["right"]
    assert {"/task", "/label", "/runTimeoutSeconds"} <= {
        change["path"] for change in request["changes"]
    }
    plan = [change["path"] for change in found["plan"]["changes"]]
    assert plan == ["/runTimeoutSeconds", "/runTimeoutSource"]
    assert "run_timeout" in {
        decision["rule"] for decision in found["decisions"] if not decision["same"]
    }
    task = next(part for part in found["prompt"]["parts"] if part["source"] == "task")
    assert task["verdict"] == "different"
    assert "+you" in task["diff"].splitlines()
    first = found["transcript"]["firstDifference"]
    assert (first["left"]["sequence"], first["right"]["sequence"]) == (1, 1)


def test_runs_compare_as_of_a_position(server: Server) -> None:
    left, right = twins(server)
    reached = {stage["stage"]: f"pos:{stage['position']}" for stage in right["stages"]}
    started = compare(server, left, right, at=reached["started"])
    assert [started[side]["stage"] for side in ("left", "right")] == ["announced", "started"]
    assert not started["outcome"]["same"]
    assert started["outcome"]["right"]["resultText"] is None
    assert started["prompt"]["same"]
    assert started["transcript"]["rightEntries"] is None
    queued = compare(server, left, right, at=reached["queued"])
    assert {part["verdict"] for part in queued["prompt"]["parts"]} == {"left_only"}
    ended = compare(server, left, right, at=reached["ended"])
    assert ended["right"]["stage"] == "ended"
    assert ended["outcome"]["right"]["resultText"] == right["resultText"]
    assert ended["transcript"]["same"]
    now = compare(server, left, right)
    assert compare(server, left, right, at=f"pos:{server.head()}") == now


def test_refused_run_has_neither_plan_nor_prompt(server: Server) -> None:
    requester = server.new_session()
    refused = server.spawn(session=requester, agentId="not-there").json()
    found = compare(server, refused, server.announced(session=requester, agentId="talker"))
    assert found["left"]["status"] == "refused"
    assert {part["verdict"] for part in found["prompt"]["parts"]} == {"right_only"}
    assert "/rule" in {change["path"] for change in found["outcome"]["changes"]}


def test_erased_text_counts_as_difference(server: Server) -> None:
    left, right = twins(server)
    server.erase_session(right["sessionId"])
    found = compare(server, left, right)
    assert not found["same"]
    assert {"task", "resultText"} <= set(found["request"]["erased"] + found["outcome"]["erased"])
    assert "erased" in {part["verdict"] for part in found["prompt"]["parts"]}
    assert found["transcript"]["erased"]
    assert not found["transcript"]["same"]
    assert found["transcript"]["firstDifference"] is None
    assert compare(server, right, right)["same"], "under one key the recorded hashes tell"
    path = f"/v1/runs/{right['runId']}"
    for at in ({}, {"at": f"run:{right['runId']}@ended"}):
        problem_of(server.http.get(f"{path}/transcript", params=at), 410, "erased")
    last = server.get(f"{path}/history", field="resultText")["items"][-1]
    assert last["changes"] == [{"op": "replace", "path": "/resultText", "value": None}]
    span = {"from": "pos:0", "to": f"pos:{server.head()}"}
    patches = server.get("/v1/diff", runId=right["runId"], **span)
    assert patches["added"][0]["patch"][0]["value"]["task"] is None


def test_diff_names_revisions_of_both_moments(server: Server) -> None:
    run = server.announced(session=server.new_session())
    span = {"from": "pos:0", "to": f"pos:{server.head()}", "runId": run["runId"]}
    found = server.get("/v1/diff", **span)
    assert (found["fromConfigRevision"], found["toConfigRevision"]) == (None, 1)
    assert [item["id"] for item in found["added"]] == [run["runId"]]
    back = server.get("/v1/diff", **{**span, "from": span["to"], "to": span["from"]})
    assert [item["id"] for item in back["removed"]] == [run["runId"]]


def test_child_compares_no_run_of_others(server: Server) -> None:
    requester = server.new_session()
    sibling, stranger = (
        server.announced(session=requester),
        server.announced(session=server.new_session()),
    )
    with server.held(requester) as held, server.with_token(held.token) as child:
        path = f"/v1/runs/{held.run_id}/compare"
        assert child.get(path, params={"with": held.run_id}).is_success
        answer = child.get(path, params={"with": sibling["runId"]})
        problem_of(answer, 403, "not_permitted")
        problem_of(child.get(path, params={"with": stranger["runId"]}), 404, "not_found")
        span = {"from": "pos:0", "to": f"pos:{server.head()}", "runId": held.run_id}
        assert child.get("/v1/diff", params=span).is_success


def test_token_counts_its_own_trees_alone(server: Server) -> None:
    server.announced(session=server.new_session())
    own = server.new_session("reader")
    run = server.announced(session=own)
    with server.with_token(server.secrets["reader"]) as narrow:
        refused = problem_of(narrow.get("/v1/events/histogram"), 403, "not_permitted")
        assert refused["detail"] == (
            "counts of the whole log require a token for all sessions (*); name a run or a tree"
        )
        counts = narrow.get("/v1/events/histogram", params={"tree": own, "buckets": 1}).json()
        assert counts["items"][0]["outcomes"] == {"success": 1}
        bars = narrow.get("/v1/timeline", params={"limit": 5000}).json()
        assert run["runId"] in {item["runId"] for item in bars["items"]}
        assert all("reader-" in item["requesterSessionKey"] for item in bars["items"])
        assert bars["buckets"] == []
        assert narrow.get("/v1/timeline", params={"buckets": 3}).status_code == 403
        near = narrow.get("/v1/moments", params={"around": 50}).json()
        trees = {item["tree"] for item in (*near["before"], *near["after"])}
        assert trees <= {item["requesterSessionKey"] for item in bars["items"]}
        assert near["configRevision"] is None
    with server.with_token(server.secrets["one"]) as only:
        # With the session's own token, because other tests read by which token it was recorded.
        accepted = only.post("/v1/spawns", json=spawn_body("current")).json()
        server.run(accepted["runId"], "announced")
        counted = only.get("/v1/timeline", params={"buckets": 10}).json()
        assert sum(bucket["outcomes"].get("success", 0) for bucket in counted["buckets"]) >= 1


def test_time_ago_is_fixed_by_the_first_page(server: Server) -> None:
    session = server.new_session()
    runs = [server.announced(session=session)["runId"] for _ in range(2)]
    query = {"from": "-1s", "limit": 1, "buckets": 0, "requester": session}
    first = server.get("/v1/timeline", **query)
    assert [item["runId"] for item in first["items"]] == [runs[1]]
    wait_for(
        "a second to pass",
        lambda: server.get("/v1/moments", at="-1s")["position"] >= first["until"],
    )
    second = server.get("/v1/timeline", **query, cursor=first["nextCursor"])
    assert [item["runId"] for item in second["items"]] == [runs[0]]
    assert (second["after"], second["until"]) == (first["after"], first["until"])


NAMING_A_TREE: list[tuple[str, dict[str, str]]] = [
    ("/v1/diff", {"from": "pos:0", "to": "-0s"}),
    ("/v1/events/find", {"field": "stage", "changes": "true"}),
    ("/v1/events", {}),
    ("/v1/events/histogram", {}),
    ("/v1/runs", {}),
    ("/v1/timeline", {}),
]


@pytest.mark.parametrize(("path", "query"), NAMING_A_TREE)
def test_tree_is_named_by_its_root(server: Server, path: str, query: dict[str, str]) -> None:
    child = server.announced(session=server.new_session())["childSessionKey"]
    answer = server.http.get(path, params={**query, "tree": child})
    assert pointers_of(problem_of(answer, 422, "invalid_request")) == ["/query/tree"]
    with server.with_token(server.secrets["one"]) as stranger:
        # A token without access does not learn which session is a root.
        hidden = stranger.get(path, params={**query, "tree": child})
        assert hidden.status_code != 422, hidden.text
    if path in ("/v1/diff", "/v1/events/find"):
        nobody = server.http.get(path, params={**query, "tree": "agent:main:nobody"})
        problem_of(nobody, 404, "not_found")
