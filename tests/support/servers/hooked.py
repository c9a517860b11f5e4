"""Configurations with hooks, for children in threads and for children that take messages."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.servers.child_programs import ASK, AWAIT_FILE, WAIT_SECONDS_MAX, waiter
from tests.support.servers.configurations import agent, command, configuration, python, scripted
from tests.support.servers.hook_server import HookServer
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server

ORIGIN = {"channel": "discord", "accountId": "acct", "to": "channel:1", "threadId": 7}
ASKING = ("subagentSpawning", "prepareSubagentSpawn")
TELLING = ("subagentSpawned", "subagentEnded")
TIMEOUT_SECONDS = 2.0
ATTEMPTS_MAX = 3
BOUND = {
    "status": "ok",
    "threadBindingReady": True,
    "deliveryOrigin": {"to": "thread:9", "threadId": "9"},
}
AT_THE_THREAD = {"channel": "discord", "accountId": "acct", "to": "thread:9", "threadId": "9"}
ATTACHING = {"sessions_spawn": {"attachments": {"enabled": True}}}

# Answers with its message, its history and its folder.
_TALKER = """
import json, os, pathlib, sys
told = json.load(sys.stdin)
before = [json.loads(line) for path in told["history"] for line in open(path)]
said = {
    "message": told["message"],
    "persistent": "stays open for follow-ups" in told["systemPrompt"],
    "history": [one["text"] for one in before if one.get("role") == "user"],
    "cwd": os.getcwd(),
    "attachments": told["attachmentsDir"] and sorted(os.listdir(told["attachmentsDir"])),
    "deliver": told["deliver"],
    "deliveryOrigin": told["deliveryOrigin"],
}
print(json.dumps({"type": "result", "text": json.dumps(said)}), flush=True)
"""

# Writes an entry, notes its history, waits for `<run id>.go`, and writes another entry.
_LINGERER = (
    AWAIT_FILE
    + """
import json, os, pathlib, sys
folder, run = pathlib.Path(sys.argv[1]), os.environ["SPAWNLOG_RUN_ID"]
given = json.load(sys.stdin)
told = given["message"].splitlines()[-1]
before = [json.loads(line) for path in given["history"] for line in open(path)]
say = lambda text: print(json.dumps({"type": "message", "role": "assistant", "text": text}))
say("before: " + told)
sys.stdout.flush()
heard = [one["text"] for one in before if one.get("role") == "assistant"]
(folder / f"{run}.part").write_text(json.dumps(heard))
(folder / f"{run}.part").rename(folder / f"{run}.began")
await_file(sys.argv[2], folder / f"{run}.go")
say("after: " + told)
print(json.dumps({"type": "result", "text": "lingered"}))
"""
)

# Spawns a child named by its message, and ends before it.
_BOSS = (
    ASK
    + """
import json, sys
told = json.load(sys.stdin)["message"].splitlines()[-1]
body = {"requester": {"sessionKey": "current"}, "task": told, "agentId": "waiter", "label": told}
_, answer = ask("POST", "/v1/spawns", body)
print(json.dumps({"type": "result", "text": answer["runId"]}))
"""
)


def hooked(
    folder: Path, hooks: Mapping[str, Any], *agents: dict[str, Any], **settings: Any
) -> dict[str, Any]:
    """Return a configuration with these hooks, and agents `plain`, `failing`, `waiter` and others.
    One run at a time."""
    return configuration(
        agent("main", default=True),
        agent("plain"),
        agent("failing", scripted(outcome="error", error="the harbour is closed")),
        waiter("waiter", folder),
        *agents,
        archiveAfterMinutes=0,
        maxSpawnDepth=2,
        maxConcurrent=1,
        workspace=folder / "work",
        leaseSeconds=QUICK_LEASE_SECONDS,
        hooks={**hooks, "attemptsMax": ATTEMPTS_MAX, "retrySecondsMax": 2},
        **settings,
    )


def talkers(folder: Path) -> list[dict[str, Any]]:
    """Return agents that take messages.

    `talker` answers with what it knows, `carrier` delivers by itself, `lingerer` waits to be
    released, `boss` spawns a waiter, `late` has its own workspace.
    """
    lingerer = python(_LINGERER, folder, WAIT_SECONDS_MAX, output="jsonl")
    return [
        agent("talker", python(_TALKER, output="jsonl")),
        agent("carrier", python(_TALKER, output="jsonl", deliversToOrigin=True)),
        agent("lingerer", lingerer),
        agent("boss", python(_BOSS, output="jsonl")),
        agent("late", command("echo", "here I am"), workspace=str(folder / "desk")),
    ]


def asking_and_telling(outside: HookServer, **more: Any) -> dict[str, Any]:
    """Return every hook except the one for delivery targets."""
    return outside.hooks(*ASKING, *TELLING, timeoutSeconds=TIMEOUT_SECONDS, **more)


def threaded(name: str, **more: Any) -> dict[str, Any]:
    """Return a request for a child in a thread, by a session of its own."""
    requester = {"sessionKey": f"agent:main:{name}", **ORIGIN}
    body = {"agentId": "plain", "thread": True, "mode": "run", "context": "isolated"}
    return {**body, "requester": requester, **more}


def name_of(moment: str) -> str:
    """Return a name for a session from a moment at which its server dies."""
    return "".join(letter if letter.isalnum() else "-" for letter in moment.lower())


def staying(name: str, **more: Any) -> dict[str, Any]:
    """Return a request for a child that stays in a thread."""
    return threaded(name, mode="session", **{"agentId": "talker", **more})


def reply(server: Server, run_id: str) -> dict[str, Any]:
    """Return the answer of a talker, once its run is announced."""
    return dict(json.loads(server.result(run_id)))


def ends_told(outside: HookServer, session_key: str) -> list[tuple[Any, Any]]:
    """Return the run and reason of each `subagentEnded` call for a session."""
    events = [call.event for call in outside.calls("subagentEnded")]
    return [
        (run["runId"], run["reason"]) for run in events if run["targetSessionKey"] == session_key
    ]
