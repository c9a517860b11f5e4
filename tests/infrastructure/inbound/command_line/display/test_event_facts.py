"""The one line about an event."""

from typing import Any

import pytest

from infrastructure.inbound.command_line.display.event_line import event_facts

UNDO_FAILED = {"kind": "undo", "name": "attachments", "attempt": 3, "retryAfterSeconds": 4}


@pytest.mark.parametrize(
    ("event_type", "payload", "line"),
    [
        (
            "SpawnRequested",
            {
                "requestedAgentId": "steward",
                "label": "reviewer",
                "requester": {"sessionKey": "agent:main:main"},
            },
            "agent steward, label reviewer, for agent:main:main",
        ),
        (
            "SpawnRequested",
            {
                "requestedAgentId": "steward",
                "requester": {"sessionKey": "agent:main:main"},
                "batch": {"batchId": "b", "index": 1, "runIds": ["x", "y", "z"]},
                "dependencies": [{"runId": "r", "name": "research"}, {"runId": "s", "name": "s"}],
            },
            "agent steward, for agent:main:main, task 2/3 of batch b, after research and s",
        ),
        ("ScriptsResolved", {"receipts": [], "candidates": []}, "no context script"),
        (
            "ScriptsResolved",
            {
                "receipts": [
                    {
                        "id": "identity",
                        "outcome": "injected",
                        "durationMs": 34,
                        "injected": {"id": "c", "bytes": 120, "hmac": "h"},
                        "candidate": "main",
                    },
                    {
                        "id": "notes",
                        "outcome": "failed",
                        "durationMs": 1200,
                        "statusCode": 503,
                        "injected": None,
                    },
                ]
            },
            "identity injected 120 B in 34ms proposes main, notes failed HTTP 503 in 1.2s",
        ),
        ("AgentOverridden", {"fromAgentId": "steward", "toAgentId": "main"}, "steward → main"),
        (
            "SessionCreated",
            {
                "agentId": "main",
                "depth": 1,
                "role": "leaf",
                "plan": {"modelProvider": "example", "model": "words", "runTimeoutSeconds": 0},
            },
            "agent main, depth 1, leaf, model example/words",
        ),
        (
            "MessageReceived",
            {
                "continues": "r1",
                "agentId": "main",
                "label": "scout",
                "message": {"id": "c", "bytes": 40, "hmac": "h"},
                "by": "admin",
                "requester": {"sessionKey": "agent:main:main"},
            },
            "continues run r1, agent main, label scout, message 40 B, by admin,"
            " for agent:main:main",
        ),
        (
            "ContinuationPlanned",
            {"role": "leaf", "plan": {"runTimeoutSeconds": 9}, "directDelivery": True},
            "leaf, timeout 9s, brings its result to its thread",
        ),
        ("RunContinued", {"runId": "r2"}, "by run r2"),
        ("RunWaits", {"runIds": ["r1", "r2"]}, "for r1, r2"),
        ("DependencyMet", {"runId": "r1", "outcome": "success"}, "run r1, success"),
        (
            "SharedContextChanged",
            {"cause": "patch", "changes": [{"key": "a", "value": {}}, {"key": "b"}], "by": "x"},
            "a taken away, b taken away, by x",
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
        ("ArchiveScheduled", {"reason": "session_closed"}, "session_closed"),
        ("SessionContinued", {"runId": "r2", "role": "leaf"}, "run r2, leaf"),
        ("SessionClosed", {"reason": "archived"}, "archived"),
        ("RunClaimed", {"attempt": 1, "laneRunning": 2, "laneWidth": 8}, "attempt 1, lane 3/8"),
        (
            "RunClaimed",
            {"attempt": 2, "laneRunning": None, "laneWidth": None},
            "attempt 2, taken over",
        ),
        ("RunEnded", {"outcome": "timeout", "reason": "timeout"}, "timeout"),
        ("StopRequested", {"by": "admin", "byRequester": False, "reason": None}, "by admin"),
        (
            "RunEnded",
            {
                "outcome": "error",
                "reason": "exit",
                "exitCode": 3,
                "runtimeMs": 1500,
                "usage": {"totalTokens": 9},
            },
            "error, exit, exit 3, 1.5s, 9 tokens",
        ),
        (
            "SpawnRefused",
            {
                "rule": "active_children",
                "step": "admission",
                "inputs": {"current": 5, "limit": 5},
            },
            "rule active_children, at admission, current 5, limit 5",
        ),
        (
            "ChildAdmitted",
            {"runId": "r", "activeChildren": 0, "maxChildren": 5},
            "run r, children 1/5",
        ),
        (
            "SpawnRequested",
            {"requestedAgentId": "main", "attachments": {"count": 2, "manifest": {"bytes": 9}}},
            "agent main, 2 file(s)",
        ),
        ("StepBegun", {"step": "workspace", "key": "k", "limitSeconds": 5}, "workspace"),
        (
            "StepBegun",
            {"step": "attachments", "root": "/srv/work", "relative": ".openclaw/attachments/x"},
            "attachments, in /srv/work, .openclaw/attachments/x",
        ),
        ("StepTaken", {"step": "workspace", "outcome": "made"}, "workspace made"),
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
    ],
)
def test_each_event_says_what_matters(event_type: str, payload: dict[str, Any], line: str) -> None:
    assert event_facts({"type": event_type, "payload": payload}) == line


@pytest.mark.parametrize("payload", [None, [], "text", {}, {"receipts": 7}, {"usage": []}])
@pytest.mark.parametrize(
    "event_type",
    ["ScriptsResolved", "RunEnded", "ChildAdmitted", "RunQueued", "StepTaken", "EffectAttempted"],
)
def test_an_event_of_another_shape_breaks_nothing(event_type: str, payload: object) -> None:
    assert isinstance(event_facts({"type": event_type, "payload": payload}), str)


def test_why_an_undo_failed_is_told_where_the_text_is_given() -> None:
    texts = {"error": "Access denied\x1b"}
    event = {"type": "EffectAttempted", "payload": UNDO_FAILED, "texts": texts}
    line = "undo attachments, attempt 3, failed, again in 4.0s"
    assert event_facts(event) == f"{line}: Access denied\\x1b"
    without: tuple[object, ...] = (None, {}, [], {"error": None})
    for other in without:
        assert event_facts({**event, "texts": other}) == line


def test_why_scripts_failed_is_told_where_the_texts_are_given() -> None:
    receipts = [{"id": id, "outcome": "failed", "durationMs": 7} for id in ("a", "b")]
    event = {"type": "ScriptsResolved", "payload": {"receipts": receipts}}
    plain = event_facts(event)
    texts = {"errors": {"a": "Script not\x1b found", "b": "no time was left"}}
    assert event_facts({**event, "texts": texts}) == (
        f"{plain}; a: Script not\\x1b found; b: no time was left"
    )
    others: tuple[object, ...] = ({"errors": None}, {"errors": []}, {"errors": {"a": None}})
    for other in others:
        assert event_facts({**event, "texts": other}) == plain


def test_facts_of_others_are_one_safe_line() -> None:
    event = {"type": "SpawnRequested", "payload": {"label": "a\x1b[31m\nb" + "x" * 1000}}
    line = event_facts(event)
    assert "\x1b" not in line
    assert "\n" not in line
    assert len(line) <= 400
