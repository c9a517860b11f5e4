"""The registry as pages of one snapshot, with filters."""

from collections import Counter
from typing import Any

import pytest

from tests.support.servers.http_server import GHOST
from tests.support.servers.server import Server

pytestmark = pytest.mark.server


def listed(server: Server, **query: Any) -> list[str]:
    """Return the ids of a list, through all its pages."""
    ids: list[str] = []
    while True:
        page = server.get("/v1/runs", **query)
        ids += [run["runId"] for run in page["items"]]
        if page["nextCursor"] is None:
            return ids
        query["cursor"] = page["nextCursor"]


@pytest.fixture(scope="module")
def family(server: Server) -> dict[str, Any]:
    """Return runs of one requester: five done, one failed, one refused."""
    session = server.new_session("family")
    done = [
        server.announced(session=session, label=f"done-{number}")["runId"] for number in range(5)
    ]
    failed = server.announced(session=session, agentId="failing", label="failed")["runId"]
    refused = server.spawn(session=session, agentId=GHOST).json()["runId"]
    return {"session": session, "done": done, "failed": failed, "refused": refused}


def test_list_is_newest_first_unless_ascending(server: Server, family: dict[str, Any]) -> None:
    expected = [*family["done"], family["failed"], family["refused"]]
    session = family["session"]
    assert listed(server, requester=session) == expected[::-1]
    for limit in (6, 7, 8):
        assert listed(server, requester=session, order="asc", limit=limit) == expected
        page = server.get("/v1/runs", requester=session, limit=limit)
        assert (page["nextCursor"] is not None) is (limit == 6)


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_of_list_are_one_snapshot(server: Server, order: str) -> None:
    session = server.new_session()
    old = [server.accepted(session=session, agentId="slow") for _ in range(4)]
    params: dict[str, Any] = {"requester": session, "limit": 1, "order": order}
    page = server.http.get("/v1/runs", params=params)
    position = page.headers["spawnlog-position"]
    seen = page.json()["items"]
    while cursor := page.json()["nextCursor"]:
        second_run = server.accepted(session=session)
        server.http.post(f"/v1/runs/{old[len(seen) - 1]}/stop")
        server.run(old[len(seen) - 1], "announced")
        server.run(second_run, "ended")
        page = server.http.get("/v1/runs", params={**params, "cursor": cursor})
        assert page.headers["spawnlog-position"] == position
        seen += page.json()["items"]
    assert [run["runId"] for run in seen] == (old if order == "asc" else old[::-1])
    assert {run["outcome"] for run in seen} == {None}
    assert len(server.runs(requester=session)) == 7
    for run_id in old:
        server.http.post(f"/v1/runs/{run_id}/stop")


def test_item_is_summary_of_run(server: Server) -> None:
    session = server.new_session()
    run = server.announced(session=session, task="word " * 1000, label="long")
    (item,) = server.runs(requester=session)
    assert item.pop("taskPreview") == run["task"][:200]
    assert item.pop("taskBytes") == 5000
    assert item.pop("errorCause") is None
    assert item == {name: run[name] for name in item}
    assert not {"task", "resultText", "requesterOrigin"} & item.keys()


def test_tree_is_found_by_its_root(server: Server) -> None:
    session = server.new_session("root")
    with server.held(session) as parent:
        below = server.announced(session=parent.child, agentId="main")["runId"]
        for tree in (session, session.upper()):
            assert listed(server, tree=tree) == [below, parent.run_id]
        assert listed(server, requester=session) == [parent.run_id]
        assert listed(server, requester=parent.child) == [below]


def test_list_is_narrowed_by_each_filter(server: Server, family: dict[str, Any]) -> None:
    own = {"requester": family["session"]}
    done, failed, refused = family["done"], family["failed"], family["refused"]
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"label": "done-3"}, [done[3]]),
        ({"label": "done"}, []),
        ({"label": ["done-1", "done-3", "done-1"]}, [done[3], done[1]]),
        ({"labelPrefix": "done-"}, done[::-1]),
        ({"labelPrefix": ["done-3", "failed", "done-1"]}, [failed, done[3], done[1]]),
        ({"labelPrefix": "done-%"}, []),
        ({"label": "failed", "labelPrefix": ["done-3", "none"]}, [failed, done[3]]),
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
        assert listed(server, **own, **query) == expected, query


def test_rule_finds_refused_runs(server: Server, family: dict[str, Any]) -> None:
    session = family["session"]
    refused = server.run(family["refused"])
    rule = refused["rule"]
    assert family["refused"] in listed(server, rule=rule)
    assert listed(server, rule=rule, requester=session) == [family["refused"]]
    assert listed(server, rule="batch", requester=session) == []
    before = f"pos:{refused['stages'][0]['position']}"
    assert listed(server, requester=session, rule=rule, at=before) == []
    bars = server.get("/v1/timeline", rule=rule, tree=session)
    assert [item["runId"] for item in bars["items"]] == [family["refused"]]


def test_status_follows_the_run(server: Server) -> None:
    session = server.new_session()
    with server.held(session) as run:
        assert listed(server, requester=session, status="running") == [run.run_id]
        server.http.post(f"/v1/runs/{run.run_id}/stop")
        server.run(run.run_id, "ended")
    assert listed(server, requester=session, status="stopped") == [run.run_id]
    assert listed(server, requester=session, status="running") == []


def test_cursor_ignores_order_of_values_and_limit(server: Server, family: dict[str, Any]) -> None:
    params = {"requester": family["session"], "limit": 1, "status": ["failed", "done"]}
    cursor = server.get("/v1/runs", **params)["nextCursor"]
    turned = {**params, "status": ["done", "failed"], "limit": 2, "cursor": cursor}
    found = [run["runId"] for run in server.get("/v1/runs", **turned)["items"]]
    assert found == family["done"][:2:-1]


def test_since_is_inclusive_and_until_is_not(server: Server, family: dict[str, Any]) -> None:
    own, done = {"requester": family["session"]}, family["done"]
    third = server.run(done[2])["createdAt"]
    assert listed(server, **own, since=third)[-1] == done[2]
    assert listed(server, **own, until=third) == done[:2][::-1]
    assert listed(server, **own, since=third, until=third) == []
    everything = listed(server, **own)
    assert listed(server, **own, since="12h", limit=2) == everything
    assert listed(server, **own, until="12h") == []
    moment = f"run:{done[2]}@ended"
    assert listed(server, **own, since=moment) == everything[: everything.index(done[2])]
    assert listed(server, **own, until=moment) == done[2::-1]


def test_totals_are_on_first_page(server: Server, family: dict[str, Any]) -> None:
    query = {"requester": family["session"], "totals": True, "limit": 1}
    page = server.get("/v1/runs", **query)
    statuses = Counter(run["status"] for run in server.runs(requester=family["session"]))
    assert page["totals"]["statuses"] == statuses
    assert page["totals"]["runs"] == statuses.total()
    assert page["totals"]["countedTo"] is None
    assert server.get("/v1/runs", **query, cursor=page["nextCursor"])["totals"] is None
