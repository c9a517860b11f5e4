"""What answers look like, for the description of the API. Each is whole: it has every member that a
real answer has, which a test compares."""

from typing import Any

RUN_ID = "69eae0f9-12a6-46eb-a892-2dcc416bb8c6"
SESSION_ID = "bbe0fd64-7b82-4284-8a00-9040d90c9a4d"
CHILD = "agent:counter:subagent:7fe18655-90fe-4276-b743-ccf1f2581fa4"
REQUESTER = "agent:main:main"
TASK = "Count the words of the attached file"
INSTANTS = [f"2026-03-01T09:00:0{second}.000000Z" for second in range(4)]
SPAWN: dict[str, Any] = {
    "requester": {"sessionKey": REQUESTER},
    "task": TASK,
    "agentId": "counter",
    "label": "counter",
    "attachments": [{"name": "tides.txt", "content": "low tide at noon\n"}],
}
_SHORT_RECEIPT: dict[str, Any] = {
    "count": 1,
    "totalBytes": 17,
    "relDir": f".openclaw/attachments/{RUN_ID}",
}
_RECEIPT: dict[str, Any] = {
    **_SHORT_RECEIPT,
    "files": [
        {
            "name": "tides.txt",
            "bytes": 17,
            "sha256": "841d87e6c41979c1c91e71f1247607e5bc75dbcaed15b841b08190f4b838f5e2",
        }
    ],
}
_SPAWNED: dict[str, Any] = {
    "runId": RUN_ID,
    "childSessionKey": CHILD,
    "sessionId": SESSION_ID,
    "label": "counter",
    "mode": "run",
    "note": "Auto-announce is push-based. …",
    "modelApplied": True,
    "attachments": _RECEIPT,
    "warnings": [],
}
SPAWNED: dict[str, Any] = {"status": "accepted", "runs": [_SPAWNED], **_SPAWNED}
_RUN_BOTH: dict[str, Any] = {
    "runId": RUN_ID,
    "stage": "announced",
    "status": "done",
    "outcome": "success",
    "agentId": "counter",
    "requestedAgentId": "counter",
    "requesterSessionKey": REQUESTER,
    "childSessionKey": CHILD,
    "sessionId": SESSION_ID,
    "controllerSessionKey": REQUESTER,
    "continues": None,
    "respawnedFrom": None,
    "batchId": None,
    "label": "counter",
    "depth": 1,
    "role": "leaf",
    "modelProvider": "example",
    "model": "words",
    "thinking": None,
    "runTimeoutSeconds": 300,
    "mode": "run",
    "cleanup": "keep",
    "contextMode": "isolated",
    "workspaceDir": "/srv/agents/counter",
    "sandboxed": False,
    "tools": {"allow": None, "deny": ["sessions_spawn"]},
    "attachments": {**_SHORT_RECEIPT, "state": "removed"},
    "undoing": [],
    "warnings": [],
    "lane": "subagent",
    "createdAt": INSTANTS[0],
    "startedAt": INSTANTS[1],
    "endedAt": INSTANTS[2],
    "announcedAt": INSTANTS[3],
    "archivedAt": None,
    "archiveAt": "2026-03-01T10:00:02.000000Z",
    "runtimeMs": 1000,
    "error": None,
    "rule": None,
    "usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10},
    "estimatedCostUsd": 0.000066,
    "transcriptPath": f"/srv/transcripts/counter/{SESSION_ID}.jsonl",
    "announcement": {"state": "delivered", "reason": None, "attempts": 1, "lastError": None},
    "dependsOn": [],
    "configRevision": 1,
    "version": 9,
}
RUN: dict[str, Any] = {
    **_RUN_BOTH,
    "attachments": {**_RECEIPT, "state": "removed"},
    "task": TASK,
    "resultText": "4",
    "requesterOrigin": None,
    "contextPreamble": None,
}
RUNS: dict[str, Any] = {
    "items": [{**_RUN_BOTH, "taskPreview": TASK, "taskBytes": 36}],
    "nextCursor": None,
}
_EVENT: dict[str, Any] = {
    "position": 2,
    "stream": f"run:{RUN_ID}",
    "version": 7,
    "type": "RunQueued",
    "typeVersion": 1,
    "recordedAt": INSTANTS[0],
    "occurredAt": INSTANTS[0],
    "eventId": "0195502e-6c00-7000-8000-000000000002",
    "commandId": "0195502e-6c00-7000-8000-000000000001",
    "actor": {"kind": "token", "token": "admin", "session": None},
    "causation": None,
    "correlation": REQUESTER,
    "runId": RUN_ID,
    "traceparent": None,
    "configRevision": 1,
    "writerVersion": "0.1.0",
    "appendLast": 9,
    "chainHash": "5f" * 32,
    "payload": {"lane": "subagent", "laneDepth": 1},
}
RUN_EVENTS: dict[str, Any] = {"items": [_EVENT], "nextAfter": None}
EVENTS: dict[str, Any] = {"items": [_EVENT], "nextAfter": 2, "head": 14}
FRAME = f'id: 2\nevent: RunQueued\ndata: {{"position": 2, "runId": "{RUN_ID}"}}\n\n'
PROMPT: dict[str, Any] = {
    "systemPrompt": "# Subagent Context …",
    "message": f"[Subagent Context] … {TASK}",
    "parts": [
        {
            "of": "message",
            "source": "task",
            "start": 23,
            "end": 59,
            "sha256": "9f" * 32,
        }
    ],
}
TRANSCRIPT: dict[str, Any] = {
    "items": [
        {
            "sequence": 1,
            "recordedAt": INSTANTS[1],
            "kind": "message",
            "body": {"role": "assistant", "text": "4"},
        }
    ],
    "nextAfter": None,
}
STOPPED: dict[str, Any] = {"runId": RUN_ID, "wasOver": False}
CONTINUED: dict[str, Any] = {
    "status": "accepted",
    "runId": "0b0f3f52-6c2d-4f0f-9a55-2f6f4b7a4c11",
    "continues": RUN_ID,
    "childSessionKey": CHILD,
    "sessionId": "5d0f1d2c-90bd-4b4e-8a64-6a1f2a6f2b11",
    "modelApplied": True,
    "warnings": [],
}
ANNOUNCEMENTS: dict[str, Any] = {
    "items": [
        {
            "id": RUN_ID,
            "runId": RUN_ID,
            "childSessionKey": CHILD,
            "label": "counter",
            "position": 14,
            "createdAt": INSTANTS[3],
            "status": "success",
            "state": "delivered",
            "text": "Status: success\nResult: …",
            "origin": None,
            "dedupeKey": f"announce:v1:{CHILD}:{RUN_ID}",
            "acknowledgedAt": None,
        }
    ],
    "nextAfter": None,
}
ACKNOWLEDGED: dict[str, Any] = {"id": RUN_ID, "runId": RUN_ID}
PROVIDED_TRANSCRIPT: dict[str, Any] = {
    "entries": [
        {"kind": "message", "role": "user", "text": "How long are the files?"},
        {"kind": "message", "role": "assistant", "text": "I shall have them counted."},
    ],
    "totalTokens": 18,
}
TRANSCRIPT_PROVIDED: dict[str, Any] = {
    "sessionKey": REQUESTER,
    "sessionId": SESSION_ID,
    "entries": 2,
    "bytes": 140,
    "tokens": 18,
    "position": 2,
}
AGENTS: dict[str, Any] = {
    "requester": "main",
    "allowAny": True,
    "agents": [
        {
            "id": "main",
            "name": "Answers",
            "configured": True,
            "model": "example/words",
            "runtime": "command",
        }
    ],
}
LANES: dict[str, Any] = {
    "items": [
        {
            "lane": "subagent",
            "depth": 1,
            "width": 8,
            "running": [{"runId": RUN_ID, "label": "counter", "holder": "machine:4711:0a1b2c3d"}],
            "queued": [],
        }
    ]
}
HEALTH: dict[str, Any] = {"status": "ok"}
READINESS: dict[str, Any] = {"status": "ready", "head": 14, "tail": 14}
