"""The registry as pages of one snapshot, narrowed by what is asked."""

from collections import Counter
from typing import Any

import pytest

from tests.support.servers.http_server import GHOST, House

pytestmark = pytest.mark.server


def listed(house: House, **query: Any) -> list[str]:
    """Return the ids of a list, through all its pages."""
    ids: list[str] = []
    while True:
        page = house.get("/v1/runs", **query)
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


def test_list_is_newest_first_unless_ascending(house: House, family: dict[str, Any]) -> None:
    expected = [*family["done"], family["failed"], family["refused"]]
    session = family["session"]
    assert listed(house, requester=session) == expected[::-1]
    for limit in (6, 7, 8):
        assert listed(house, requester=session, order="asc", limit=limit) == expected
        page = house.get("/v1/runs", requester=session, limit=limit)
        assert (page["nextCursor"] is not None) is (limit == 6)


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_of_list_are_one_snapshot(house: House, order: str) -> None:
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


def test_item_is_summary_of_run(house: House) -> None:
    session = house.session()
    run = house.ended(session, task="word " * 1000, label="long")
    (item,) = house.runs(session)
    assert item.pop("taskPreview") == run["task"][:200]
    assert item.pop("taskBytes") == 5000
    assert item == {name: run[name] for name in item}
    assert not {"task", "resultText", "requesterOrigin"} & item.keys()


def test_tree_is_found_by_its_root(house: House) -> None:
    session = house.session("root")
    with house.held(session) as parent:
        below = house.ended(parent.child, agentId="main")["runId"]
        for tree in (session, session.upper()):
            assert listed(house, tree=tree) == [below, parent.run_id]
        assert listed(house, requester=session) == [parent.run_id]
        assert listed(house, requester=parent.child) == [below]


def test_list_is_narrowed_by_each_filter(house: House, family: dict[str, Any]) -> None:
    own = {"requester": family["session"]}
    done, failed, refused = family["done"], family["failed"], family["refused"]
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"label": "done-3"}, [done[3]]),
        ({"label": "done"}, []),
        ({"label": ["done-1", "done-3", "done-1"]}, [done[3], done[1]]),
        ({"labelPrefix": "done-"}, done[::-1]),
        ({"labelPrefix": "done-%"}, []),
        ({"agentId": "failing"}, [failed]),
        ({"agentId": ["failing", "helper"]}, [failed]),
        ({"stage": "refused"}, [refused]),
        ({"stage": "queued"}, []),
        ({"stage": ["refused", "announced"]}, [refused, failed, *done[::-1]]),
        ({"status": "done"}, done[::-1]),
        ({"status": "running"}, []),
        ({"status": ["failed", "refused", "running"]}, [refused, failed]),
        ({"outcome": "error"}, [failed]),
        ({"outcome": ["success", "error"]}, [failed, *done[::-1]]),
        ({"status": "done", "outcome": "error"}, []),
        ({"status": "failed", "outcome": "error", "stage": "announced"}, [failed]),
        ({"status": ["done", "refused"], "stage": ["refused", "queued"]}, [refused]),
        ({"depth": 1}, [refused, failed, *done[::-1]]),
        ({"depth": 2}, []),
        ({"q": "DONE- done"}, done[::-1]),
        ({"q": "no-such-word"}, []),
    ]
    for query, expected in cases:
        assert listed(house, **own, **query) == expected, query


def test_rule_finds_refused_runs(house: House, family: dict[str, Any]) -> None:
    session = family["session"]
    refused = house.server.run(family["refused"])
    rule = refused["rule"]
    assert family["refused"] in listed(house, rule=rule)
    assert listed(house, rule=rule, requester=session) == [family["refused"]]
    assert listed(house, rule="batch", requester=session) == []
    before = f"pos:{refused['stages'][0]['position']}"
    assert listed(house, requester=session, rule=rule, at=before) == []
    bars = house.get("/v1/timeline", rule=rule, tree=session)
    assert [one["runId"] for one in bars["items"]] == [family["refused"]]


def test_status_follows_the_run(house: House) -> None:
    session = house.session()
    with house.held(session) as run:
        assert listed(house, requester=session, status="running") == [run.run_id]
        house.http.post(f"/v1/runs/{run.run_id}/stop")
        house.server.run(run.run_id, "ended")
    assert listed(house, requester=session, status="stopped") == [run.run_id]
    assert listed(house, requester=session, status="running") == []


def test_cursor_ignores_order_of_values_and_limit(house: House, family: dict[str, Any]) -> None:
    params = {"requester": family["session"], "limit": 1, "status": ["failed", "done"]}
    cursor = house.get("/v1/runs", **params)["nextCursor"]
    turned = {**params, "status": ["done", "failed"], "limit": 2, "cursor": cursor}
    found = [run["runId"] for run in house.get("/v1/runs", **turned)["items"]]
    assert found == family["done"][:2:-1]


def test_since_is_inclusive_and_until_is_not(house: House, family: dict[str, Any]) -> None:
    own, done = {"requester": family["session"]}, family["done"]
    third = house.server.run(done[2])["createdAt"]
    assert listed(house, **own, since=third)[-1] == done[2]
    assert listed(house, **own, until=third) == done[:2][::-1]
    assert listed(house, **own, since=third, until=third) == []
    everything = listed(house, **own)
    assert listed(house, **own, since="12h", limit=2) == everything
    assert listed(house, **own, until="12h") == []
    moment = f"run:{done[2]}@ended"
    assert listed(house, **own, since=moment) == everything[: everything.index(done[2])]
    assert listed(house, **own, until=moment) == done[2::-1]


def test_totals_are_on_first_page(house: House, family: dict[str, Any]) -> None:
    query = {"requester": family["session"], "totals": True, "limit": 1}
    page = house.get("/v1/runs", **query)
    statuses = Counter(run["status"] for run in house.runs(family["session"]))
    assert page["totals"]["statuses"] == statuses
    assert page["totals"]["runs"] == statuses.total()
    assert page["totals"]["countedTo"] is None
    assert house.get("/v1/runs", **query, cursor=page["nextCursor"])["totals"] is None
