"""What a run at work has said can be read at once, by whoever asks, with its own times."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.narrating_server import Narrating, narrating_on, said, texts

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(made_data_dir: Path, databases: Databases) -> Iterator[Narrating]:
    with narrating_on(made_data_dir, databases) as running:
        yield running


def position_of(server: Narrating, run_id: str, event_type: str) -> int:
    events = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    return next(int(one["position"]) for one in events if one["type"] == event_type)


def instants(entries: list[dict[str, Any]]) -> list[datetime]:
    return [datetime.fromisoformat(one["recordedAt"]) for one in entries]


def test_fork_of_a_requester_at_work_has_all_it_said(server: Narrating) -> None:
    heir = {"task": json.dumps([said("I remember")]), "agentId": "main", "context": "fork"}
    requester = server.narrates(
        said("I know the word"), {"spawn": heir, "note": "forked", "await": "fork.go"}
    )
    answer = json.loads(server.noted("forked"))
    assert answer["warnings"] == []
    heard = server.entries(answer["runId"])
    assert heard[0]["kind"] == "session"
    assert heard[0]["body"]["entries"] == 2
    assert texts(heard[1:3]) == [texts(server.entries(requester))[0], "I know the word"]
    server.lets("fork.go")
    server.run(answer["runId"], "ended")
    assert texts(server.entries(answer["runId"]))[-1] == "I remember"


def test_transcript_has_what_the_server_has_read(server: Narrating) -> None:
    run_id = server.narrates(said("at work"), {"note": "spoken", "await": "read.go"})
    server.noted("spoken")
    assert texts(server.entries(run_id))[1:] == ["at work"]
    server.lets("read.go")


def test_transcript_at_the_start_holds_the_task(server: Narrating) -> None:
    run_id = server.narrates({"note": "begun", "await": "start.go"})
    server.run(run_id, "started")
    (first,) = server.entries(run_id)
    started = position_of(server, run_id, "RunStarted")
    assert server.entries(run_id, at=f"pos:{started}") == [first]
    assert server.entries(run_id, at=f"pos:{started - 1}") == []
    server.lets("start.go")
    run = server.run(run_id, "ended")
    assert server.entries(run_id, at=f"pos:{started}") == [first]
    assert first["recordedAt"] == run["startedAt"]


@pytest.mark.parametrize("ends", [True, False])
def test_entries_bear_their_own_times(server: Narrating, ends: bool) -> None:
    pause = 0.2
    wait = {} if ends else {"await": "times.go"}
    run_id = server.narrates(
        said("first") | {"pause": pause}, said("second"), {"note": f"told-{ends}"} | wait
    )
    server.noted(f"told-{ends}")
    if ends:
        server.run(run_id, "ended")
    _, first, second = instants(server.entries(run_id))
    assert (second - first).total_seconds() > pause * 0.8
    server.lets("times.go")
