"""Requests of operations, with the required parameters and bodies."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from application.queries.operation import PATH_NAME, Operation

QUERIES: Mapping[str, Mapping[str, str]] = {
    "findEvents": {"types": "RunEnded"},
    "getDiff": {"from": "pos:0", "to": "pos:1"},
    "compareRuns": {"with": "{runId}"},
    "listTreeUsage": {"tree": "{key}"},
}
"""Required query parameters."""
BODIES: Mapping[str, Mapping[str, Any]] = {
    "spawn": {"requester": {"sessionKey": "{key}"}, "task": "another"},
    "respawn": {},
    "stopRun": {"reason": "no longer needed"},
    "stopSession": {"reason": "no longer needed"},
    "sendMessage": {"message": "and now?"},
    "writePreamble": {"preamble": "a beginner"},
    "yieldSession": {},
    "provideTranscript": {"entries": []},
    "patchSharedContext": {"another": 1},
    "acknowledgeAnnouncement": {},
    "redriveAnnouncement": {"reason": "again"},
    "redriveAnnouncements": {"reason": "again"},
    "claimRun": {"executor": "somebody"},
    "prolongClaim": {"epoch": 1},
    "reportTranscript": {"epoch": 1, "first": 1, "entries": []},
    "endRun": {"epoch": 1, "outcome": "success"},
    "whatIf": {"patch": []},
    "startVerification": {},
    "stopVerification": {},
    "makePageCode": {},
    "tradePageCode": {"code": "none"},
}
"""A valid body for each operation that takes one."""


def path_of(operation: Operation, names: Mapping[str, str]) -> str:
    """Return the path of an operation with these values in it."""
    return PATH_NAME.sub(lambda found: quote(names[found[1]], safe=""), operation.path)


def request_of(operation: Operation, names: Mapping[str, str]) -> dict[str, Any]:
    """Return a request that is right for the operation, as arguments of `httpx2.Client.request`."""
    request: dict[str, Any] = {
        "method": operation.method,
        "url": path_of(operation, names),
        "params": _filled(QUERIES.get(operation.name, {}), names),
    }
    if operation.body is not None:
        request["json"] = _filled(BODIES[operation.name], names)
    if operation.if_match:
        request["headers"] = {"If-Match": "*"}
    return request


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _filled(value, names) for name, value in value.items()}
    return value.format(**names) if isinstance(value, str) else value
