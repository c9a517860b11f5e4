"""What shared contexts look like in the description of the API."""

from typing import Any

from infrastructure.inbound.http.examples.spawns_and_runs import INSTANTS, REQUESTER, RUN_ID

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
