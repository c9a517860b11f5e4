"""A server whose agents are models, with their endpoint and a server of tools beside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.servers.model_endpoint import KEY, ModelEndpoint
from tests.support.servers.running_server import RunningServer, configuration
from tests.support.servers.tool_server import ToolServer, tool_server_beside

LEASE_SECONDS = 4
TOOLS_TOKEN = "tools-token-4c1f77"


class ModelServer(RunningServer):
    """What its models say is said by `endpoint`; their tools are those of `tools`."""

    endpoint: ModelEndpoint
    tools: ToolServer

    def accepted(self, agent_id: str, task: str = "hello", **body: Any) -> str:
        """Spawn; gives the run's id."""
        answer = self.spawn(task, agentId=agent_id, **body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["runId"])

    def transcript(self, run_id: str) -> list[dict[str, Any]]:
        """Its entries."""
        answer = self.http.get(f"/v1/runs/{run_id}/transcript", params={"tools": "true"})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["items"])

    def everything(self) -> str:
        """The log, and what the server itself wrote."""
        return self.http.get("/v1/events", params={"limit": 500}).text + self.log()


def _agent(agent_id: str, *fallbacks: str, **runtime: Any) -> dict[str, Any]:
    names = [f"house/{name}" for name in (agent_id, *fallbacks)]
    agent: dict[str, Any] = {
        "id": agent_id,
        "subagents": {"model": {"primary": names[0], "fallbacks": names[1:]}},
    }
    if runtime:
        agent["runtime"] = runtime
    return agent


@contextmanager
def models_on(data_dir: Path, database_url: str) -> Iterator[ModelServer]:
    """One that runs: `clerk` has tools and stands in for itself as `deputy`, `boss` may spawn."""
    with ModelEndpoint() as endpoint, tool_server_beside() as tools:
        runtime = {
            "type": "model",
            "baseUrl": endpoint.url,
            "apiKey": "${HOUSE_KEY}",
            "attemptsMax": 1,
        }
        desk = {"url": tools.url, "headers": {"Authorization": "Bearer ${DESK_TOKEN}"}}
        config = configuration(
            {**_agent("main"), "default": True},
            _agent("clerk", "deputy", **runtime, mcpServers={"desk": desk}),
            _agent("boss"),
            maxSpawnDepth=2,
        )
        config["agents"]["defaults"]["runtime"] = runtime
        config["spawnlog"]["leaseSeconds"] = LEASE_SECONDS
        costs = [
            {"id": name, "cost": {"input": dollars, "output": 10 * dollars}}
            for name, dollars in (("clerk", 1), ("deputy", 100))
        ]
        config["models"] = {"providers": {"house": {"models": costs}}}
        secrets = {"HOUSE_KEY": KEY, "DESK_TOKEN": TOOLS_TOKEN}
        server = ModelServer(data_dir, config, database_url=database_url, environment=secrets)
        server.endpoint, server.tools = endpoint, tools
        with server:
            yield server
