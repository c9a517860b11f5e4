"""The one line about an event."""

from typing import Any

import pytest

from infrastructure.inbound.command_line.display.event_line import event_facts

UNDO_FAILED = {"kind": "undo", "name": "attachments", "attempt": 3, "retryAfterSeconds": 4}
REQUESTER = {"sessionKey": "agent:main:main"}
INJECTED = {
    "id": "identity",
    "outcome": "injected",
    "durationMs": 34,
    "injected": {"id": "c", "bytes": 120, "hmac": "h"},
    "candidate": "main",
}
FAILED = {
    "id": "notes",
    "outcome": "failed",
    "durationMs": 1200,
    "statusCode": 503,
    "injected": None,
}
LINES: list[tuple[str, dict[str, Any], str]] = [
    (
        "SpawnRequested",
        {"requestedAgentId": "steward", "label": "reviewer", "requester": REQUESTER},
        "agent steward, label reviewer, for agent:main:main",
    ),
    (
        "SpawnRequested",
        {
            "requestedAgentId": "steward",
            "batch": {"batchId": "b", "index": 1, "runIds": ["x", "y", "z"]},
            "dependencies": [{"runId": "r", "name": "research"}, {"runId": "s", "name": "s"}],
            "attachments": {"count": 2, "manifest": {"bytes": 9}},
        },
        "agent steward, 2 file(s), task 2/3 of batch b, after research and s",
    ),
    ("ScriptsResolved", {"receipts": [], "candidates": []}, "no context script"),
    (
        "ScriptsResolved",
        {"receipts": [INJECTED, FAILED]},
        "identity injected 120 B in 34ms proposes main, notes failed HTTP 503 in 1.2s",
    ),
    ("AgentOverridden", {"fromAgentId": "steward", "toAgentId": "main"}, "steward → main"),
    (
        "SessionCreated",
        {
            **{"agentId": "main", "depth": 1, "role": "leaf"},
            "plan": {"modelProvider": "example", "model": "words", "runTimeoutSeconds": 0},
        },
        "agent main, depth 1, leaf, model example/words",
    ),
    (
        "MessageReceived",
        {
            **{"continues": "r1", "agentId": "main", "label": "scout", "by": "admin"},
            "message": {"id": "c", "bytes": 40, "hmac": "h"},
            "requester": REQUESTER,
        },
        "continues run r1, agent main, label scout, message 40 B, by admin, for agent:main:main",
    ),
    (
        "ContinuationPlanned",
        {"role": "leaf", "plan": {"runTimeoutSeconds": 9}, "directDelivery": True},
        "leaf, timeout 9s, delivers its result to its thread",
    ),
    ("RunContinued", {"runId": "r2"}, "by run r2"),
    ("RunWaits", {"runIds": ["r1", "r2"]}, "for r1, r2"),
    ("DependencyMet", {"runId": "r1", "outcome": "success"}, "run r1, success"),
    (
        "SharedContextChanged",
        {"cause": "patch", "changes": [{"key": "a", "value": {}}, {"key": "b"}], "by": "x"},
        "a removed, b removed, by x",
    ),
    (
        "SharedContextChanged",
        {"cause": "spawn", "changes": [{"key": "a", "value": {"id": "c"}}], "runId": "r1"},
        "a, by run r1",
    ),
    (
        "SharedContextInherited",
        {"keys": [{"key": "a", "value": {"id": "c"}}], "fromSession": "agent:main:main"},
        "a, of agent:main:main",
    ),
    ("SessionContinued", {"runId": "r2", "role": "leaf"}, "run r2, leaf"),
    ("SessionClosed", {"reason": "archived"}, "archived"),
    ("RunClaimed", {"attempt": 1, "laneRunning": 2, "laneWidth": 8}, "attempt 1, lane 3/8"),
    ("RunClaimed", {"attempt": 2, "laneWidth": None}, "attempt 2, taken over"),
    ("RunEnded", {"outcome": "timeout", "reason": "timeout"}, "timeout"),
    (
        "RunEnded",
        {
            **{"outcome": "error", "reason": "exit", "exitCode": 3, "runtimeMs": 1500},
            "usage": {"totalTokens": 9},
        },
        "error, exit, exit 3, 1.5s, 9 tokens",
    ),
    ("StopRequested", {"by": "admin", "byRequester": False, "reason": None}, "by admin"),
    (
        "SpawnRefused",
        {"rule": "depth", "step": "admission", "inputs": {"current": 5, "limit": 5}},
        "rule depth, at admission, current 5, limit 5",
    ),
    (
        "ChildAdmitted",
        {"runId": "r", "activeChildren": 0, "maxChildren": 5},
        "run r, children 1/5",
    ),
    ("StepBegun", {"step": "workspace", "key": "k", "limitSeconds": 5}, "workspace"),
    (
        "StepBegun",
        {"step": "attachments", "root": "/srv/work", "relative": ".openclaw/x"},
        "attachments, in /srv/work, .openclaw/x",
    ),
    (
        "StepTaken",
        {"step": "attachments", "outcome": "written", "fileCount": 2, "totalBytes": 0},
        "attachments written, 2 file(s), 0 B",
    ),
    (
        "EffectAttempted",
        {"kind": "undo", "name": "workspace", "attempt": 1, "outcome": "left_in_place"},
        "undo workspace, attempt 1, left_in_place",
    ),
    (
        "EffectAttempted",
        {"kind": "hook", "name": "subagentEnded", "attempt": 1, "statusCode": 204},
        "hook subagentEnded, attempt 1, HTTP 204, done",
    ),
    ("EffectAttempted", UNDO_FAILED, "undo attachments, attempt 3, failed, again in 4.0s"),
    (
        "EffectParked",
        {"kind": "webhook", "name": "ops", "attempts": 15, "reason": "attempts"},
        "webhook ops, 15 attempt(s), attempts",
    ),
    ("FromTheFuture", {"colour": "red", "parts": [1]}, "colour red"),
]


@pytest.mark.parametrize(("event_type", "payload", "line"), LINES)
def test_event_has_its_line(event_type: str, payload: dict[str, Any], line: str) -> None:
    assert event_facts({"type": event_type, "payload": payload}) == line


@pytest.mark.parametrize("payload", [None, [], "text", {}, {"receipts": 7}, {"usage": []}])
@pytest.mark.parametrize("event_type", ["ScriptsResolved", "RunEnded", "StepTaken"])
def test_event_of_another_shape_breaks_nothing(event_type: str, payload: object) -> None:
    assert isinstance(event_facts({"type": event_type, "payload": payload}), str)


def test_failure_is_shown_with_its_text() -> None:
    event: dict[str, Any] = {"type": "EffectAttempted", "payload": UNDO_FAILED}
    texts: dict[str, Any] = {"error": "Access denied\x1b"}
    assert event_facts({**event, "texts": texts}) == f"{event_facts(event)}: Access denied\\x1b"
    event = {"type": "ScriptsResolved", "payload": {"receipts": [FAILED]}}
    texts = {"errors": {"notes": "Script not\x1b found"}}
    shown = f"{event_facts(event)}; notes: Script not\\x1b found"
    assert event_facts({**event, "texts": texts}) == shown
    nothing: list[object] = [None, {}, [], {"error": None}, {"errors": []}]
    for unreadable in (*nothing, {"errors": {"notes": None}}):
        assert event_facts({**event, "texts": unreadable}) == event_facts(event)


@pytest.mark.parametrize(
    ("event_type", "payload", "start"),
    [
        ("StopRequested", {"by": "admin", "reason": {"bytes": 6}}, "by admin, reason"),
        (
            "EffectRedriven",
            {"kind": "hook", "name": "x", "by": "ops", "reason": {"bytes": 6}},
            "hook x, by ops, reason",
        ),
    ],
)
def test_reason_is_shown_with_its_text(
    event_type: str, payload: dict[str, Any], start: str
) -> None:
    event = {"type": event_type, "payload": payload}
    assert event_facts(event) == f"{start} 6 B"
    assert event_facts({**event, "texts": {"reason": "enough\x1b"}}) == f"{start} enough\\x1b"
    assert event_facts({**event, "texts": {"reason": None}}) == f"{start} 6 B"


def test_line_is_safe_and_short() -> None:
    event = {"type": "SpawnRequested", "payload": {"label": "a\x1b[31m\nb" + "x" * 1000}}
    line = event_facts(event)
    assert not {"\x1b", "\n"} & set(line)
    assert len(line) <= 400
