"""`/metrics`: its values after known lives, its readers, and its cost."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(server: Server) -> Samples:
    """Return every sample, by name and labels."""
    answer = server.http.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def values_by(samples: Samples, name: str, label: str) -> dict[str, float]:
    """Return the values of a metric by one of its labels."""
    return {dict(labels)[label]: value for (each, labels), value in samples.items() if each == name}


def sample(samples: Samples, name: str, **labels: str) -> float:
    """Return the value of a metric with these labels."""
    return samples[name, frozenset(labels.items())]


def recorded_events(server: Server) -> list[dict[str, Any]]:
    """Return every event of the log."""
    return list(server.http.get("/v1/events", params={"limit": 500}).json()["items"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("metrics")
    folder.chmod(0o755)
    config = configuration(
        agent("main", scripted(steps=[{"usage": {"inputTokens": 70, "outputTokens": 7}}])),
        agent("broken", scripted(outcome="error", error="no luck")),
        agent("endless", scripted(steps=[{"afterMs": 600_000}])),
        maxConcurrent=1,
        maxSpawnDepth=1,
    )
    with Server(folder / "data", config) as running:
        yield running


def test_counters_are_those_of_the_log(server: Server) -> None:
    for agent_id in ("main", "main", "broken"):
        run = server.spawn(agentId=agent_id).json()["runId"]
        server.run(run, "announced")
    rule = server.spawn(agentId="nobody").json()["rule"]
    for _ in range(2):
        assert server.spawn(agentId="endless").status_code == 201
    wait_for(
        "one to be at work", lambda: values_by(scraped(server), "spawnlog_runs_due", "work")["run"]
    )

    samples, events = scraped(server), recorded_events(server)

    types = Counter(event["type"] for event in events)
    assert values_by(samples, "spawnlog_events_appended_total", "type") == types
    assert values_by(samples, "spawnlog_runs_ended_total", "outcome") == {"success": 2, "error": 1}
    assert values_by(samples, "spawnlog_spawns_total", "step") == {"requested": 6, "accepted": 5}
    assert values_by(samples, "spawnlog_spawns_refused_total", "rule") == {rule: 1}
    assert values_by(samples, "spawnlog_tokens_total", "direction") == {"input": 140, "output": 14}
    assert sample(samples, "spawnlog_run_seconds_count") == 3
    assert sample(samples, "spawnlog_log_position") == events[-1]["position"]
    assert sample(samples, "spawnlog_tail_lag_events") == 0
    assert sample(samples, "spawnlog_append_seconds_count") > len(types)
    assert sample(samples, "spawnlog_database_up") == 1
    lane = {"lane": "subagent", "depth": "1"}
    assert sample(samples, "spawnlog_lane_runs", **lane, state="running") == 1
    assert sample(samples, "spawnlog_lane_runs", **lane, state="queued") == 1
    assert sample(samples, "spawnlog_lane_width") == 1
    assert sample(samples, "process_open_fds") > 0


def test_requests_are_counted_by_route(server: Server) -> None:
    run = server.spawn().json()["runId"]
    for path in (f"/v1/runs/{run}", f"/v1/runs/{run}?at=0", "/v1/runs/nobody/events", "/nowhere/7"):
        server.http.get(path)
    server.http.post("/mcp", json={})
    # Known paths with methods that they do not have share one label.
    for path in ("/v1/spawns", "/v1/agents"):
        assert server.http.put(path).status_code == 405

    samples = scraped(server)

    routes = set(values_by(samples, "spawnlog_http_requests_total", "route"))
    assert {"/v1/spawns", "/v1/runs/{runId}", "/v1/runs/{runId}/events", "/mcp"} <= routes
    assert not {route for route in routes if run in route or "nobody" in route or "7" in route}
    request = {"method": "GET", "route": "/v1/runs/{runId}"}
    answered = sum(
        value
        for (name, labels), value in samples.items()
        if name == "spawnlog_http_requests_total" and request.items() <= dict(labels).items()
    )
    assert sample(samples, "spawnlog_http_request_seconds_count", **request) == answered > 1
    other_route = {"method": "GET", "route": "other", "status": "404"}
    assert sample(samples, "spawnlog_http_requests_total", **other_route) == 1
    unserved = {"method": "PUT", "route": "other", "status": "405"}
    assert sample(samples, "spawnlog_http_requests_total", **unserved) == 2


def test_unwatched_server_loads_no_library() -> None:
    look = (
        "import sys, infrastructure.server.compose, infrastructure.inbound.http.application\n"
        "libraries = ('prometheus_client', 'opentelemetry.sdk', 'opentelemetry.exporter')\n"
        "print([one for one in sys.modules if one.startswith(libraries)])"
    )
    found = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "[]"
