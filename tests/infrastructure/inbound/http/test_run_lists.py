"""The registry as pages of one snapshot, narrowed by what is asked."""

from collections import Counter
from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.http_server import GHOST, House

pytestmark = pytest.mark.server

SUMMARY_ONLY = {"taskPreview", "taskBytes"}
NOT_IN_SUMMARIES = {
    "task",
    "respawns",
    "resultText",
    "requesterOrigin",
    "contextPreamble",
    "progress",
    "transcriptEntries",
}


def listed(house: House, **query: Any) -> list[str]:
    """The ids of a list, through all its pages."""
    ids: list[str] = []
    while True:
        answer = house.http.get("/v1/runs", params=query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        ids += [run["runId"] for run in page["items"]]
        if page["nextCursor"] is None:
            return ids
        query["cursor"] = page["nextCursor"]


@pytest.fixture(scope="module")
def family(house: House) -> dict[str, Any]:
    """Runs of one requester: five that are done, one that failed, one that was refused."""
    session = house.session("family")
    done = [house.ended(session, label=f"done-{number}")["runId"] for number in range(5)]
    failed = house.ended(session, agentId="failing", label="failed")["runId"]
    refused = house.spawn(session, agentId=GHOST).json()["runId"]
    return {"session": session, "done": done, "failed": failed, "refused": refused}


def test_a_list_is_newest_first_or_oldest_first(house: House, family: dict[str, Any]) -> None:
    expected = [*family["done"], family["failed"], family["refused"]]
    session = family["session"]
    assert listed(house, requester=session) == expected[::-1]
    for limit in (2, 7, 8):
        assert listed(house, requester=session, order="asc", limit=limit) == expected
        assert listed(house, requester=session, order="desc", limit=limit) == expected[::-1]


def test_the_last_page_has_no_cursor(house: House, family: dict[str, Any]) -> None:
    for limit, more in ((6, True), (7, False), (8, False)):
        params = {"requester": family["session"], "limit": limit}
        page = house.get("/v1/runs", **params)
        assert (page["nextCursor"] is not None) is more


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_the_pages_of_one_list_are_one_snapshot(house: House, order: str) -> None:
    session = house.session()
    old = [house.accepted(session, agentId="slow")["runId"] for _ in range(4)]
    params: dict[str, Any] = {"requester": session, "limit": 1, "order": order}
    page = house.http.get("/v1/runs", params=params)
    position = page.headers["spawnlog-position"]
    seen = page.json()["items"]
    while cursor := page.json()["nextCursor"]:
        other = house.accepted(session)["runId"]
        house.http.post(f"/v1/runs/{old[len(seen) - 1]}/stop")
        house.server.run(old[len(seen) - 1], "announced")
        house.server.run(other, "ended")
        page = house.http.get("/v1/runs", params={**params, "cursor": cursor})
        assert page.headers["spawnlog-position"] == position
        seen += page.json()["items"]
    assert [run["runId"] for run in seen] == (old if order == "asc" else old[::-1])
    assert {run["outcome"] for run in seen} == {None}
    assert len(house.runs(session)) == 7
    for run_id in old:
        house.http.post(f"/v1/runs/{run_id}/stop")


def test_items_are_summaries(house: House) -> None:
    session = house.session()
    run = house.ended(session, task="word " * 1000, label="long")
    (item,) = house.runs(session)
    assert set(item) - SUMMARY_ONLY == set(run) - NOT_IN_SUMMARIES
    assert item["taskPreview"] == run["task"][:200]
    assert item["taskBytes"] == 5000
    assert all(item[name] == run[name] for name in set(item) - SUMMARY_ONLY)


def test_a_run_has_every_member_of_the_contract(house: House, family: dict[str, Any]) -> None:
    run = house.server.run(family["done"][0])
    names = """runId stage status outcome agentId requestedAgentId requesterSessionKey
        requesterOrigin childSessionKey sessionId controllerSessionKey continues respawnedFrom
        batchId label task depth role modelProvider model thinking runTimeoutSeconds mode cleanup
        contextMode workspaceDir sandboxed tools attachments warnings lane createdAt startedAt
        endedAt announcedAt archivedAt archiveAt runtimeMs resultText error usage estimatedCostUsd
        transcriptPath announcement dependsOn configRevision version"""
    assert set(names.split()) <= set(run)
    assert set(run["tools"]) == {"allow", "deny"}
    assert {"state", "attempts", "lastError"} <= set(run["announcement"])
    talker = house.ended(house.session(), agentId="talker")
    (share,) = talker["usage"].pop("models")
    cache = {"cacheReadTokens": 0, "cacheWriteTokens": 0}
    assert talker["usage"] == {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10, **cache}
    assert (share["inputTokens"], share["outputTokens"]) == (7, 3)


def test_a_tree_is_found_by_its_root(house: House) -> None:
    session = house.session("root")
    with house.held(session) as parent:
        with house.with_token(parent.token) as client:
            asked = {"requester": {"sessionKey": parent.child}, "task": "x", "agentId": "main"}
            below = client.post("/v1/spawns", json=asked).json()["runId"]
            house.server.run(below, "ended")
        assert listed(house, tree=session) == [below, parent.run_id]
        assert listed(house, tree=session.upper()) == [below, parent.run_id]
        assert listed(house, requester=session) == [parent.run_id]
        assert listed(house, requester=parent.child) == [below]
        below_it = house.http.get("/v1/runs", params={"tree": parent.child})
        problem_of(below_it, 422, "invalid_request")


def test_a_list_is_narrowed_by_each_filter(house: House, family: dict[str, Any]) -> None:
    own = {"requester": family["session"]}
    done, failed, refused = family["done"], family["failed"], family["refused"]
    for query, expected in (
        ({"label": "done-3"}, [done[3]]),
        ({"label": "done"}, []),
        ({"agentId": "failing"}, [failed]),
        ({"agentId": "main"}, done[::-1]),
        ({"stage": "refused"}, [refused]),
        ({"stage": "announced"}, [failed, *done[::-1]]),
        ({"stage": "queued"}, []),
        ({"status": "done"}, done[::-1]),
        ({"status": "failed"}, [failed]),
        ({"status": "refused"}, [refused]),
        ({"status": "running"}, []),
        ({"status": "waiting"}, []),
        ({"outcome": "error"}, [failed]),
        ({"outcome": "success"}, done[::-1]),
        ({"status": "done", "outcome": "error"}, []),
        ({"status": "done", "stage": "refused"}, []),
        ({"status": "failed", "outcome": "error", "stage": "announced"}, [failed]),
        ({"label": ["done-1", "done-3", "done-1"]}, [done[3], done[1]]),
        ({"agentId": ["failing", "helper"]}, [failed]),
        ({"stage": ["refused", "announced"]}, [refused, failed, *done[::-1]]),
        ({"status": ["failed", "refused", "running"]}, [refused, failed]),
        ({"status": ["done", "failed"], "outcome": "success"}, done[::-1]),
        ({"status": ["done", "refused"], "stage": ["refused", "queued"]}, [refused]),
        ({"outcome": ["success", "error"]}, [failed, *done[::-1]]),
    ):
        assert listed(house, **own, **query) == expected, query


def test_the_status_of_what_runs_is_running(house: House) -> None:
    session = house.session()
    with house.held(session) as run:
        assert listed(house, requester=session, status="running") == [run.run_id]
        house.http.post(f"/v1/runs/{run.run_id}/stop")
        house.server.run(run.run_id, "ended")
    assert listed(house, requester=session, status="stopped") == [run.run_id]
    assert listed(house, requester=session, status="running") == []


def test_the_order_of_the_values_of_a_filter_is_not_of_the_question(
    house: House, family: dict[str, Any]
) -> None:
    params = {"requester": family["session"], "limit": 1, "status": ["failed", "done"]}
    page = house.get("/v1/runs", **params)
    turned = {**params, "status": ["done", "failed"], "cursor": page["nextCursor"]}
    page = house.get("/v1/runs", **turned)
    assert [run["runId"] for run in page["items"]] == [family["done"][-1]]


def test_since_is_inclusive_and_until_is_not(house: House, family: dict[str, Any]) -> None:
    own = {"requester": family["session"]}
    third = house.server.run(family["done"][2])["createdAt"]
    assert listed(house, **own, since=third)[-1] == family["done"][2]
    assert listed(house, **own, until=third) == family["done"][:2][::-1]
    assert listed(house, **own, since=third, until=third) == []


def test_since_and_until_take_times_ago_and_moments_of_runs(
    house: House, family: dict[str, Any]
) -> None:
    own = {"requester": family["session"]}
    done = family["done"]
    everything = listed(house, **own)
    assert listed(house, **own, since="12h", limit=2) == everything
    assert listed(house, **own, until="12h") == []
    moment = f"run:{done[2]}@ended"
    assert listed(house, **own, since=moment) == everything[: everything.index(done[2])]
    assert listed(house, **own, until=moment) == done[2::-1]


def test_a_cursor_belongs_to_its_question(house: House, family: dict[str, Any]) -> None:
    own = {"requester": family["session"], "limit": 1}
    cursor = house.get("/v1/runs", **own)["nextCursor"]
    for other in ({"order": "asc"}, {"label": "x"}, {"requester": "main"}, {"status": "done"}):
        answer = house.http.get("/v1/runs", params={**own, **other, "cursor": cursor})
        problem_of(answer, 422, "invalid_request")
    answer = house.http.get("/v1/runs", params={**own, "limit": 5, "cursor": cursor})
    assert len(answer.json()["items"]) == 5


def test_runs_are_found_by_the_rule_that_refused_them_their_depth_and_how_labels_begin(
    house: House, family: dict[str, Any]
) -> None:
    session = family["session"]
    (refused,) = [run for run in house.runs(session) if run["status"] == "refused"]
    rule = refused["rule"]
    assert family["refused"] in listed(house, rule=rule)
    assert listed(house, rule=rule, requester=session) == [family["refused"]]
    assert listed(house, rule="batch", requester=session) == []
    assert listed(house, requester=session, labelPrefix="done-") == family["done"][::-1]
    assert listed(house, tree=session, labelPrefix="done-%") == []
    assert len(listed(house, requester=session, depth=1)) == 7
    assert listed(house, requester=session, depth=2) == []
    before = refused["stages"][0]["position"]
    assert listed(house, requester=session, rule=rule, at=f"pos:{before}") == []
    bars = house.get("/v1/timeline", rule=rule, tree=session)
    assert [one["runId"] for one in bars["items"]] == [family["refused"]]


def test_runs_are_found_by_words_and_counted(house: House, family: dict[str, Any]) -> None:
    session = family["session"]
    assert listed(house, requester=session, q="DONE- done") == family["done"][::-1]
    assert listed(house, requester=session, q="no-such-word") == []
    first = house.http.get("/v1/runs", params={"requester": session, "totals": True, "limit": 1})
    page = first.json()
    statuses = Counter(run["status"] for run in house.runs(session))
    assert page["totals"]["statuses"] == statuses
    assert page["totals"]["runs"] == statuses.total()
    assert page["totals"]["countedTo"] is None
    following = {"requester": session, "totals": True, "limit": 1, "cursor": page["nextCursor"]}
    assert house.get("/v1/runs", **following)["totals"] is None


@pytest.mark.parametrize("query", [{"q": " "}, {"q": "a b c d e f g h i"}])
def test_words_that_cannot_be_looked_for_are_refused(house: House, query: dict[str, Any]) -> None:
    problem = problem_of(house.http.get("/v1/runs", params=query), 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == "/query/q"


@pytest.mark.parametrize("query", [{"depth": 1}, {"labelPrefix": "x"}, {"rule": "no such rule"}])
def test_what_no_index_has_needs_a_family_or_a_tree(house: House, query: dict[str, Any]) -> None:
    answer = house.http.get("/v1/runs", params=query)
    problem = problem_of(answer, 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == f"/query/{next(iter(query))}"
