"""The server of the end-to-end stories: agents for each outcome, and two context scripts."""

from pathlib import Path
from typing import Any

from tests.support.servers.child_programs import daemon, orchestrator, waiter
from tests.support.servers.configurations import agent, command, configuration, scripted, shell
from tests.support.servers.server import QUICK_LEASE_SECONDS

WIDTH = 2
"""Width of the lanes."""
CHILDREN_MAX = 5
LEASE_SECONDS = 10
DRAIN_SECONDS = 2
_IDENTITY = """#!/bin/sh
case "$1" in
    targetAgentId=steward)
        echo '{"message": "You are the steward.", "targetAgentId": "echo"}' ;;
    targetAgentId=impostor)
        echo '{"message": "You are somebody.", "targetAgentId": "nobody-knows"}' ;;
esac
"""
_SLOW = """#!/bin/sh
sleep 600 &
echo $$ > "{folder}/slow.$SPAWNLOG_RUN_ID"
while [ ! -e "{folder}/$SPAWNLOG_RUN_ID.go" ]; do sleep 0.05; done
echo "attempt $SPAWNLOG_ATTEMPT"
"""
_JSONL = """
cat > /dev/null
echo '{"type": "progress", "text": "on my way"}'
echo '{"type": "message", "role": "assistant", "text": "half of it"}'
echo '{"type": "tool", "name": "read_file", "input": {"path": "a"}, "output": "b"}'
echo '{"type": "usage", "inputTokens": 1000, "outputTokens": 200, "model": "example/words"}'
echo '{"type": "usage", "inputTokens": 500, "outputTokens": 140}'
echo '{"type": "result", "text": "all of it"}'
"""


def stories(folder: Path, *, lease_seconds: float = LEASE_SECONDS) -> dict[str, Any]:
    """Return the configuration. Its children and scripts leave notes in `folder`."""
    folder.mkdir(exist_ok=True)
    identity = _script(folder / "identity.sh", _IDENTITY)
    slow = _script(folder / "slow.sh", _SLOW.replace("{folder}", str(folder)))
    return configuration(
        agent("main", default=True),
        agent("plain"),
        agent("echo", shell("cat")),
        agent("failing", shell("echo the harbour is closed >&2; exit 3")),
        agent("missing", command("./is-not-there")),
        agent("endless", shell("echo half a sentence; sleep 600")),
        agent("accountant", shell(_JSONL, output="jsonl")),
        agent("silent", scripted(result="ANNOUNCE_SKIP")),
        waiter("waiter", folder),
        daemon("daemon", folder),
        orchestrator("orchestrator", folder, "waiter"),
        agent("bare", **_WITHOUT_SCRIPTS),
        agent("bare-echo", shell("cat"), **_WITHOUT_SCRIPTS),
        agent("slow", subagents={"contextScripts": {"run": [_json_script("slow", slow)]}}),
        maxSpawnDepth=2,
        maxConcurrent=WIDTH,
        maxChildrenPerAgent=CHILDREN_MAX,
        archiveAfterMinutes=0,
        contextScripts={"run": [_identity_script(identity)]},
        workspace=folder / "work",
        defaults={"model": "example/words"},
        models={"providers": {"example": {"models": [_WORDS]}}},
        leaseSeconds=lease_seconds,
        drainSeconds=DRAIN_SECONDS,
    )


def mortal_stories(folder: Path) -> dict[str, Any]:
    """Return the same for a server that is killed: with quick leases."""
    return stories(folder, lease_seconds=QUICK_LEASE_SECONDS)


_WITHOUT_SCRIPTS = {"subagents": {"contextScripts": {"ignore": ["identity"]}}}
"""Settings of agents whose children run no script."""


_WORDS = {"id": "words", "name": "words", "cost": {"input": 3, "output": 15}}


def _identity_script(path: Path) -> dict[str, Any]:
    return {
        "id": "identity",
        "uri": str(path),
        "format": "arguments",
        "argMap": {"targetAgentId": "targetAgentId"},
        "position": "prepend",
        "priority": 100,
        "returnKey": "message",
        "agentIdOverrideKey": "targetAgentId",
    }


def _json_script(name: str, path: Path) -> dict[str, Any]:
    return {"id": name, "uri": str(path), "format": "json", "timeoutSeconds": 30}


def _script(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return path
