"""Spans of a real server as a receiver gets them: trees, traces of callers, deaths."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.servers.configurations import (
    EXTERNAL,
    agent,
    configuration,
    scripted,
    shell,
)
from tests.support.servers.databases import Databases
from tests.support.servers.server import Server, serving
from tests.support.servers.span_server import SpanServer
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

CANARY = "the-task-nobody-may-see"
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SECRET = "canary-header-value"


@pytest.fixture(scope="module")
def receiver() -> Iterator[SpanServer]:
    with SpanServer() as server:
        yield server


def environment(receiver: SpanServer) -> dict[str, str]:
    """Return variables of the machine that must not affect the server."""
    return {
        "SPAN_HEADER": SECRET,
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "FASTAPI_OTEL_AUTO_CONFIGURE": "true",
    }


@pytest.fixture(scope="module")
def server(databases: Databases, receiver: SpanServer) -> Iterator[Server]:
    def config(folder: Path) -> dict[str, Any]:
        holds = (
            f'printf %s "$TRACEPARENT" > "{folder}/$SPAWNLOG_RUN_ID.trace";'
            f' while [ ! -e "{folder}/$SPAWNLOG_RUN_ID.go" ]; do sleep 0.02; done; echo over'
        )
        usage = {"usage": {"inputTokens": 70, "outputTokens": 7}}
        return configuration(
            agent("main", scripted(steps=[usage], result=CANARY)),
            agent("broken", scripted(outcome="error", error="no luck")),
            agent("holder", shell(holds)),
            agent("outside", EXTERNAL),
            maxSpawnDepth=2,
            maxConcurrent=1,
            drainSeconds=1,
            telemetry={
                "otlpEndpoint": receiver.url,
                "headers": {"x-scope": "${SPAN_HEADER}"},
            },
        )

    with serving(databases, config, environment=environment(receiver)) as running:
        yield running
        assert SECRET not in running.log()
        assert "Traceback" not in running.log()


def spawned(server: Server, requester: str, **more: str) -> tuple[str, str]:
    """Return the run and session of an accepted child."""
    trace = {"traceparent": more.pop("traceparent")} if "traceparent" in more else {}
    body = {"requester": {"sessionKey": requester}, "task": CANARY, **more}
    answer = server.http.post("/v1/spawns", json=body, headers=trace)
    assert answer.status_code == 201, answer.text
    return answer.json()["runId"], answer.json()["childSessionKey"]


def a_tree(server: Server, **more: str) -> tuple[str, str, str]:
    """Return a child with two children, one of which fails; all are announced."""
    parent, key = spawned(server, "agent:main:main", agentId="holder", **more)
    children = [spawned(server, key, agentId=agent)[0] for agent in ("main", "broken")]
    server.let_go(parent)
    for run_id in (*children, parent):
        server.run(run_id, "announced")
    return parent, children[0], children[1]


def test_a_tree_is_one_trace(server: Server, receiver: SpanServer) -> None:
    parent, child, broken = a_tree(server)

    top, below, failed = map(receiver.of_run, (parent, child, broken))
    announced = receiver.of_run(child, "announce")

    note = server.note(f"{parent}.trace")
    assert note == f"00-{top.trace}-{top.id}-01"
    assert {item.trace for item in (top, below, failed, announced)} == {parent.replace("-", "")}
    assert (top.name, below.name) == ("invoke_agent holder", "invoke_agent main")
    assert top.parent == ""
    assert {below.parent, failed.parent, announced.parent} == {top.id}
    assert announced.links == (below.id,)
    assert below.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert below.attributes["gen_ai.agent.name"] == "main"
    assert below.attributes["gen_ai.usage.input_tokens"] == 70
    assert below.attributes["spawnlog.outcome"] == "success"
    assert failed.is_error
    assert not below.is_error
    assert failed.attributes["error.type"] == "error"
    stages = {span.name for span in receiver.spans if span.parent == below.id}
    assert stages == {"prepare", "queue", "execute"}
    assert below.resource["service.name"] == "spawnlog"
    assert receiver.headers["x-scope"] == SECRET
    assert CANARY not in repr(receiver.spans)
    assert all("spawnlog.run.id" in span.attributes for span in receiver.spans)


@pytest.mark.nightly
def test_who_executes_a_run_outside_is_told_its_trace(server: Server, receiver: SpanServer) -> None:
    caller = f"00-{TRACE}-{CALLER}-01"
    run_id, _ = spawned(server, "agent:main:main", agentId="outside", traceparent=caller)
    assert server.run(run_id)["stage"] == "queued"
    claim = server.http.post(f"/v1/runs/{run_id}/claim", json={"executor": "mine"}).json()
    end = {"epoch": claim["epoch"], "outcome": "success"}
    server.http.post(f"/v1/runs/{run_id}/end", json=end)
    span = receiver.of_run(run_id)
    assert claim["launch"]["traceparent"] == f"00-{TRACE}-{span.id}-01"


@pytest.mark.nightly
def test_a_server_that_was_killed_sends_nothing_again(server: Server, receiver: SpanServer) -> None:
    before, _ = spawned(server, "agent:main:main")
    server.run(before, "announced")
    receiver.of_run(before, "announce")
    server.kill()
    server.start()
    behind, _ = spawned(server, "agent:main:main")
    server.run(behind, "announced")
    receiver.of_run(behind, "announce")
    assert [
        span_id
        for span_id, times in Counter(span.id for span in receiver.spans).items()
        if times > 1
    ] == []


@pytest.mark.nightly
def test_a_receiver_that_takes_nothing_hinders_nobody(server: Server, receiver: SpanServer) -> None:
    receiver.status = 400
    run_id, _ = spawned(server, "agent:main:main")
    assert server.run(run_id, "announced")["stage"] in ("announced", "archived")
    wait_for("spans to be counted as failed", lambda: result(server, "failed"))
    assert f"{receiver.url}/v1/traces did not accept" in server.log()
    receiver.status = 200
    run_id, _ = spawned(server, "agent:main:main")
    receiver.of_run(run_id)
    assert result(server, "sent") > 0


@pytest.mark.nightly
def test_a_run_asked_of_one_server_and_executed_by_another_is_in_one_trace(
    server: Server, receiver: SpanServer
) -> None:
    with server.twin("other") as second_server:
        holding, _ = spawned(server, "agent:main:main", agentId="holder")
        server.run(holding, "started")
        request = {"agentId": "holder", "traceparent": f"00-{TRACE}-{CALLER}-01"}
        run_id, key = spawned(server, "agent:main:main", **request)
        assert server.run(run_id)["stage"] == "queued"
        server.stop()
        # The lane has room again, and the server that accepted the run is gone.
        second_server.run(run_id, "started")
        child, _ = spawned(second_server, key, agentId="main")
        second_server.run(child, "announced")
        server.let_go(run_id)
        second_server.run(run_id, "announced")
        first, top, below = map(receiver.of_run, (holding, run_id, child))
        announced = receiver.of_run(run_id, "announce")
    server.start()
    sent_by = [item.resource["service.instance.id"] for item in (first, top, below)]
    assert sent_by[0] != sent_by[1] == sent_by[2]
    assert server.note(f"{run_id}.trace") == f"00-{TRACE}-{top.id}-01"
    assert (top.trace, top.parent) == (TRACE, CALLER)
    assert (below.trace, below.parent) == (TRACE, top.id)
    assert (announced.trace, announced.parent) == (TRACE, CALLER)
    stages = {span.name for span in receiver.spans if span.parent == top.id}
    assert {"prepare", "queue", "execute"} <= stages


def result(server: Server, name: str) -> float:
    """Return the number of spans with this result."""
    return next(
        sample.value
        for family in text_string_to_metric_families(server.http.get("/metrics").text)
        for sample in family.samples
        if sample.name == "spawnlog_spans_total" and sample.labels["result"] == name
    )


@pytest.mark.nightly
def test_without_the_library_a_server_that_is_to_send_spans_says_what_to_install(
    tmp_path: Path,
) -> None:
    begin = (
        "import sys; sys.modules['opentelemetry.exporter'] = None\n"
        "from infrastructure.inbound.command_line.main import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", begin, "serve", "--data-dir", str(tmp_path / "data"), "--port", "0"],
        env={"SPAWNLOG_OTLP_ENDPOINT": "http://127.0.0.1:4318", "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode != 0
    assert "run pip install ./client '.[otel]' (of a wheel: " in ended.stderr
