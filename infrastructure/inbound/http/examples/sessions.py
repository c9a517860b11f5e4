"""What sessions look like in the description of the API."""

from typing import Any

from infrastructure.inbound.http.examples.spawns_and_runs import CHILD, INSTANTS, REQUESTER, RUN_ID

STOPPED: dict[str, Any] = {
    "sessionKey": CHILD,
    "sessionId": "5d0f1d2c-90bd-4b4e-8a64-6a1f2a6f2b11",
    "runId": RUN_ID,
    "wasOver": True,
    "closed": True,
}
SESSION: dict[str, Any] = {
    "sessionKey": REQUESTER,
    "displayKey": "main",
    "sessionId": "1d05a56a-890b-4da9-982f-40e1b3e92aa1",
    "agentId": "main",
    "depth": 0,
    "role": "main",
    "controlScope": "children",
    "sandboxed": False,
    "workspaceDir": None,
    "spawnedBy": None,
    "rootSessionKey": REQUESTER,
    "runId": None,
    "stage": "open",
    "createdAt": INSTANTS[0],
    "closedAt": None,
    "assertedBy": "admin",
    "assertions": [],
    "depthFrom": "shape",
    "activeChildren": 1,
    "activeRuns": [RUN_ID],
    "maxChildren": 5,
    "pendingDescendants": 1,
    "runningDescendants": 1,
    "runs": [{"runId": RUN_ID, "label": "counter", "stage": "started", "agentId": "counter"}],
    "ownRuns": [],
    "version": 2,
}


# What shared contexts look like in the description of the API.


PATCH: dict[str, Any] = {"projectGoal": "Build a modern web app", "constraints": None}
VALUES: dict[str, Any] = {"projectGoal": "Build a modern web app"}
SOURCES: dict[str, Any] = {
    "projectGoal": {
        "kind": "literal",
        "sessionKey": REQUESTER,
        "position": 52,
        "runId": RUN_ID,
        "by": None,
    }
}
RUN_CONTEXT: dict[str, Any] = {
    "runId": RUN_ID,
    "position": 57,
    "values": VALUES,
    "erased": [],
    "sources": SOURCES,
}
SESSION_CONTEXT: dict[str, Any] = {
    "sessionKey": REQUESTER,
    "version": 52,
    "position": 60,
    "sizes": {"projectGoal": 24},
    "values": VALUES,
    "erased": [],
    "sources": SOURCES,
    "history": [
        {
            "position": 52,
            "recordedAt": INSTANTS[0],
            "cause": "spawn",
            "by": None,
            "runId": RUN_ID,
            "keys": ["projectGoal"],
        }
    ],
    "startedWith": [{"runId": RUN_ID, "position": 57, "version": 52, "label": "researcher"}],
}
