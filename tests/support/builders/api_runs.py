"""Runs as the API returns them to the command line."""

from typing import Any

from tests.support.servers.recorded_api import Reply

FIRST = "11111111-0000-4000-8000-000000000001"
SECOND = "22222222-0000-4000-8000-000000000002"
KEY = "agent:counter:subagent:99999999-0000-4000-8000-000000000009"


def run_of(run_id: str, **members: Any) -> dict[str, Any]:
    return {
        "runId": run_id,
        "stage": "announced",
        "status": "done",
        "outcome": "success",
        "agentId": "counter",
        "requestedAgentId": "counter",
        "requesterSessionKey": "agent:main:main",
        "childSessionKey": KEY,
        "label": None,
        "taskPreview": "Count the words",
        "createdAt": "2026-03-01T09:30:00.125Z",
        "runtimeMs": 1200,
        **members,
    }


def listed(*runs: dict[str, Any]) -> Reply:
    return Reply({"items": list(runs), "nextCursor": None}, headers={"Spawnlog-Position": "42"})
