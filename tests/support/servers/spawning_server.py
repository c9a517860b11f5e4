"""The server of the end-to-end stories: agents for each outcome, and two context scripts."""

from pathlib import Path
from typing import Any

from tests.support.servers.child_programs import daemon, orchestrator, shell, waiter
from tests.support.servers.running_server import RunningServer, configuration, scripted, wait_for

WIDTH = 2
"""How many runs go on at a time at each depth."""
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
    """The configuration; the children and scripts leave their notes in `folder`."""
    identity = _script(folder / "identity.sh", _IDENTITY)
    slow = _script(folder / "slow.sh", _SLOW.replace("{folder}", str(folder)))
    config = configuration(
        {**scripted("main"), "default": True},
        scripted("plain"),
        shell("echo", "cat", input="stdin-text"),
        shell("failing", "echo the harbour is closed >&2; exit 3"),
        shell("missing", "") | {"runtime": {"type": "command", "command": ["./is-not-there"]}},
        shell("endless", "echo half a sentence; sleep 600"),
        shell("accountant", _JSONL, output="jsonl"),
        scripted("silent", result="ANNOUNCE_SKIP"),
        waiter("waiter", folder),
        daemon("daemon", folder),
        orchestrator("orchestrator", folder, "waiter"),
        {**scripted("bare"), **_WITHOUT_SCRIPTS},
        {**shell("bare-echo", "cat", input="stdin-text"), **_WITHOUT_SCRIPTS},
        {
            **scripted("slow"),
            "subagents": {"contextScripts": {"run": [_json_script("slow", slow)]}},
        },
        maxSpawnDepth=2,
        maxConcurrent=WIDTH,
        maxChildrenPerAgent=CHILDREN_MAX,
        archiveAfterMinutes=0,
        contextScripts={"run": [_identity_script(identity)]},
    )
    config["spawnlog"] = {"leaseSeconds": lease_seconds, "drainSeconds": DRAIN_SECONDS}
    config["models"] = {"providers": {"example": {"models": [_WORDS]}}}
    config["agents"]["defaults"]["model"] = "example/words"
    # Nothing has to be made for most spawns.
    (folder / "work").mkdir(exist_ok=True)
    for agent in config["agents"]["list"]:
        agent["workspace"] = str(folder / "work")
    return config


_WITHOUT_SCRIPTS = {"subagents": {"contextScripts": {"ignore": ["identity"]}}}
"""Nothing has to be asked for a child of such an agent."""


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


class Stories(RunningServer):
    """A server with every story's agents, unless `config` has others. Its children and scripts
    leave notes in `folder`."""

    def __init__(
        self,
        data_dir: Path,
        folder: Path,
        *,
        lease_seconds: float = LEASE_SECONDS,
        config: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        folder.mkdir(exist_ok=True)
        config = config or stories(folder, lease_seconds=lease_seconds)
        super().__init__(data_dir, config, **more)
        self.folder = folder

    def accepted(self, agent_id: str, task: str = "hello", **body: Any) -> str:
        """Spawn; gives the run's id."""
        answer = self.spawn(task, agentId=agent_id, **body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["runId"])

    def note(self, name: str) -> str:
        """What stands in a note, once there is something in it."""
        path = self.folder / name
        return wait_for(f"the note {name}", lambda: path.exists() and path.read_text("utf-8"))

    def let_go(self, run_id: str) -> None:
        """Let a waiter, or the script of a slow spawn, end."""
        (self.folder / f"{run_id}.go").touch()

    def session(self, key: str) -> dict[str, Any]:
        """A session."""
        answer = self.http.get(f"/v1/sessions/{key}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def whole_log(self) -> list[dict[str, Any]]:
        """Every event, in order."""
        events: list[dict[str, Any]] = []
        while True:
            after = events[-1]["position"] if events else 0
            page = self.http.get("/v1/events", params={"after": after, "limit": 500}).json()
            events += page["items"]
            if not page["items"]:
                return events
