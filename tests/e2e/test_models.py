"""Children that are models, from the spawn to their record."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.configurations import agent, configuration
from tests.support.servers.databases import Databases
from tests.support.servers.model_endpoint import (
    HANG,
    KEY,
    ModelEndpoint,
    call,
    said,
    text,
    usage,
)
from tests.support.servers.server import Server, serving
from tests.support.servers.tool_server import ToolServer, tool_server_beside
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


LEASE_SECONDS = 4
TOOLS_TOKEN = "tools-token-4c1f77"


@pytest.fixture(scope="module")
def tools() -> Iterator[ToolServer]:
    with tool_server_beside() as beside:
        yield beside


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ModelEndpoint]:
    """Yield the endpoint of the models."""
    with ModelEndpoint() as beside:
        yield beside


@pytest.fixture(scope="module")
def server(databases: Databases, endpoint: ModelEndpoint, tools: ToolServer) -> Iterator[Server]:
    """Yield a server on which `clerk` has tools, and `deputy` as its fallback; `boss` may spawn."""
    runtime = {
        "type": "model",
        "baseUrl": endpoint.url,
        "apiKey": "${HOUSE_KEY}",
        "attemptsMax": 1,
    }
    desk = {"url": tools.url, "headers": {"Authorization": "Bearer ${DESK_TOKEN}"}}
    costs = [
        {"id": name, "cost": {"input": dollars, "output": 10 * dollars}}
        for name, dollars in (("clerk", 1), ("deputy", 100))
    ]
    config = configuration(
        agent("main", runtime, default=True, subagents=named("main")),
        agent(
            "clerk", runtime | {"mcpServers": {"desk": desk}}, subagents=named("clerk", "deputy")
        ),
        agent("boss", runtime, subagents=named("boss")),
        maxSpawnDepth=2,
        leaseSeconds=LEASE_SECONDS,
        models={"providers": {"house": {"models": costs}}},
    )
    secrets = {"HOUSE_KEY": KEY, "DESK_TOKEN": TOOLS_TOKEN}
    with serving(databases, config, environment=secrets) as running:
        yield running
        result = running.http.get("/v1/events", params={"limit": 500}).text + running.log()
        assert KEY not in result
        assert TOOLS_TOKEN not in result


def named(model: str, *fallbacks: str) -> dict[str, Any]:
    """Return the section of an agent with these models."""
    primary, *others = (f"house/{name}" for name in (model, *fallbacks))
    return {"model": {"primary": primary, "fallbacks": others}}


def kinds(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["kind"] for entry in entries]


def asked_as(endpoint: ModelEndpoint, model: str) -> list[dict[str, Any]]:
    """Return the requests to this model."""
    return [body for body in endpoint.bodies if body["model"] == model]


def until_session_says(server: Server, key: str, result: str) -> None:
    """Wait until the newest run of a session has ended with this result."""

    def has_said() -> bool:
        last = server.http.get(f"/v1/sessions/{key}").json()["ownRuns"][0]
        return bool(server.run(last["runId"])["resultText"] == result)

    wait_for(f"{key} to say {result}", has_said)


def test_a_model_answers_with_tools_and_its_tokens_and_cost_are_on_record(
    server: Server, endpoint: ModelEndpoint, tools: ToolServer
) -> None:
    endpoint.answers(
        "clerk",
        said(text("I add."), call("desk_add", first=2, second=3), usage(1000, 100), calls=True),
        said(text("It is 5."), usage(2000, 50)),
    )
    run_id = server.accepted("clerk", "Add 2 and 3.", thinking="xhigh")
    run = server.run(run_id, "announced")
    assert (run["outcome"], run["resultText"], run["error"]) == ("success", "It is 5.", None)
    assert (run["usage"]["inputTokens"], run["usage"]["outputTokens"]) == (3000, 150)
    assert run["estimatedCostUsd"] == pytest.approx(0.0045)
    entries = server.transcript(run_id)
    assert kinds(entries) == ["message", "message", "usage", "tool", "message", "usage"]
    assert (entries[3]["body"]["name"], entries[3]["body"]["output"]) == ("desk_add", "5")
    assert asked_as(endpoint, "clerk")[0]["reasoning_effort"] == "high"
    assert f"Bearer {TOOLS_TOKEN}" in tools.authorizations


def test_a_stop_reaches_the_endpoint_and_what_was_said_stays(
    server: Server, endpoint: ModelEndpoint
) -> None:
    endpoint.answers("main", (text("half a sentence"), call("nothing"), HANG))
    run_id = server.accepted("main")
    wait_for("the model to speak", lambda: len(server.transcript(run_id)) == 2)
    assert endpoint.server.open == 1
    assert server.http.post(f"/v1/runs/{run_id}/stop", json={}).status_code in (200, 202)
    wait_for("the request to end", lambda: endpoint.server.open == 0, seconds=5)
    run = server.run(run_id, "ended")
    assert (run["outcome"], run["resultText"]) == ("stopped", "half a sentence")


def test_a_session_that_goes_on_has_its_earlier_turns(
    server: Server, endpoint: ModelEndpoint
) -> None:
    endpoint.answers("main", said(text("I am Ada."), usage(1, 1)), said(text("Ada.")))
    first = server.run(server.accepted("main", "Who are you?"), "announced")
    sent = server.http.post(
        f"/v1/runs/{first['runId']}/messages", json={"message": "And your name?"}
    )
    assert sent.status_code in (200, 201, 202), sent.text
    second = server.run(sent.json()["runId"], "ended")
    assert second["resultText"] == "Ada."
    earlier = asked_as(endpoint, "main")[-1]["messages"][1:]
    assert [item["role"] for item in earlier] == ["user", "assistant", "user"]
    assert "Who are you?" in earlier[0]["content"]
    assert earlier[1]["content"] == "I am Ada."


def test_a_steer_breaks_off_what_is_said_and_the_next_turn_knows_it(
    server: Server, endpoint: ModelEndpoint
) -> None:
    begun = (text("half a sentence"), call("nothing"), HANG)
    endpoint.answers("main", begun, said(text("Done otherwise.")))
    run_id = server.accepted("main", "Do it.")
    wait_for("the model to speak", lambda: len(server.transcript(run_id)) == 2)
    steered = server.http.post(
        f"/v1/runs/{run_id}/messages", json={"message": "Do it otherwise.", "mode": "steer"}
    )
    assert steered.status_code in (200, 201, 202), steered.text
    until_session_says(server, server.run(run_id)["childSessionKey"], "Done otherwise.")
    contents = [message["content"] for message in asked_as(endpoint, "main")[-1]["messages"][1:]]
    assert "Do it." in contents[0]
    assert contents[1] == "half a sentence"
    assert "Do it otherwise." in contents[2]


def test_a_model_hands_out_work_yields_and_is_woken_with_what_came_of_it(
    server: Server, endpoint: ModelEndpoint
) -> None:
    endpoint.answers(
        "boss",
        said(
            call(
                "sessions_spawn",
                task=["Add.", "Multiply."],
                parallel=True,
                agentId="clerk",
                label="sum",
            ),
            calls=True,
        ),
        said(text("I wait."), call("sessions_yield"), calls=True),
        said(text("The clerk says 5 and 6.")),
    )
    endpoint.answers(
        "clerk", said(text("It is 5."), usage(10, 10)), said(text("It is 6."), usage(10, 10))
    )
    run = server.run(server.accepted("boss", "Have it added."), "ended")
    offered = {tool["function"]["name"] for tool in asked_as(endpoint, "boss")[0]["tools"]}
    assert {"sessions_spawn", "sessions_yield", "subagents_wait"} <= offered
    assert "sessions_send" not in offered
    until_session_says(server, run["childSessionKey"], "The clerk says 5 and 6.")
    messages = asked_as(endpoint, "boss")[-1]["messages"]
    assert "It is 5." in messages[-1]["content"]
    assert "It is 6." in messages[-1]["content"]
    assert "sessions_yield" in str(messages)


def test_a_server_that_is_killed_leaves_no_request_and_a_run_that_was_interrupted(
    server: Server, endpoint: ModelEndpoint
) -> None:
    endpoint.answers("main", (text("half a sentence"), call("nothing"), HANG))
    run_id = server.accepted("main")
    wait_for("the model to speak", lambda: len(server.transcript(run_id)) == 2)
    server.kill()
    wait_for("the request to end", lambda: endpoint.server.open == 0, seconds=5)
    server.start()
    run = server.run(run_id, "ended")
    assert (run["outcome"], run["error"].partition(":")[0]) == ("error", "interrupted")
    assert kinds(server.transcript(run_id)) == ["message", "message"]
