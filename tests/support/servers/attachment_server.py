"""Server for tests of attachments and bootstrap files."""

import base64
import hashlib
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.support.faults.hostile_attachments import CONFIGURATION
from tests.support.servers.child_programs import holder
from tests.support.servers.configurations import agent, configuration, shell
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

BOOTSTRAP_MAX_CHARS = 200
BOOTSTRAP_TOTAL_MAX_CHARS = 300
CHILDREN_MAX = 20
_TELLING = """
cat > "{folder}/$SPAWNLOG_RUN_ID.part"
mv "{folder}/$SPAWNLOG_RUN_ID.part" "{folder}/$SPAWNLOG_RUN_ID.began"
echo told
"""
_STEWARD = """#!/bin/sh
case "$1" in
  targetAgentId=steward) echo '{"message": "You are the steward.", "targetAgentId": "teller"}';;
esac
"""


class AttachmentServer(Server):
    """A server with these agents: `main` plays back; `unseen` is never run; `holder` waits;
    `teller` notes its input; a script changes `steward` to `teller`.

    Requests may name workspaces below `ground`. The token `reader` lacks the scope `content`.
    """

    @property
    def ground(self) -> Path:
        """Return the folder in which tests create workspaces."""
        return self.data_dir.with_name("ground").resolve()

    def workspace(self) -> Path:
        """Create a new workspace."""
        folder = self.ground / uuid.uuid4().hex
        folder.mkdir()
        return folder

    def workspace_of(self, agent_id: str) -> Path:
        """Return the agent's own workspace."""
        return self.data_dir.resolve() / "workspaces" / agent_id

    def attach(
        self, files: list[dict[str, Any]], workspace: Path | None = None, **body: Any
    ) -> httpx2.Response:
        """Spawn with these files, by a new session unless `requester` is given.

        A workspace is that of the requester, and therefore of its child.
        """
        requester = body.pop("requester", None) or {"sessionKey": self.new_session()}
        if workspace is not None:
            requester["workspaceDir"] = str(workspace)
        return self.spawn(requester=requester, attachments=files, **body)

    def attached(self, files: list[dict[str, Any]], **body: Any) -> dict[str, Any]:
        """Return the answer; assert that the spawn is accepted."""
        answer = self.attach(files, **body)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    @contextmanager
    def waiting(self, files: list[dict[str, Any]], **body: Any) -> Iterator[dict[str, Any]]:
        """Yield the answer to a spawn of `holder`, whose child waits until the end of the block."""
        answer = self.attached(files, agentId="holder", **body)
        self.began(answer["runId"])
        try:
            yield answer
        finally:
            self.let_go(answer["runId"])
            self.run(answer["runId"], "ended")

    def folder_of(self, answer: dict[str, Any], agent_id: str = "holder") -> Path:
        """Return the expected folder of an answer's files."""
        return self.workspace_of(agent_id) / str(answer["attachments"]["relDir"])

    def undone(self, run_id: str) -> None:
        """Wait until the step is undone."""
        wait_for("the undoing", lambda: self._undone(run_id))

    def _undone(self, run_id: str) -> bool:
        return "undo:attachments:done" in self.steps(run_id)

    def told(self, run_id: str) -> dict[str, Any]:
        """Return the input of a teller."""
        return dict(json.loads(self.began(run_id)))


def text(name: str, content: str = "x", **more: Any) -> dict[str, Any]:
    """Return a text file."""
    return {"name": name, "content": content, **more}


def binary(name: str, content: bytes) -> dict[str, Any]:
    """Return a binary file."""
    return {"name": name, "content": base64.b64encode(content).decode(), "encoding": "base64"}


def listed(name: str, content: bytes) -> dict[str, Any]:
    """Return the entry of a file in a receipt."""
    return {
        "name": name,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


@contextmanager
def attachment_server(folder: Path, *, retain: bool) -> Iterator[AttachmentServer]:
    """Yield the server; search everything that it wrote at the end. `retain` is the value of
    `retainOnSessionKeep`.
    """
    folder.chmod(0o755)
    (folder / "ground").mkdir()
    notes = folder / "notes"
    notes.mkdir()
    script = folder / "steward.sh"
    script.write_text(_STEWARD, "utf-8")
    script.chmod(0o755)
    config = _configuration(notes, script, retain=retain)
    secrets = {"reader": uuid.uuid4().hex}
    with AttachmentServer(folder / "data", config, secrets=secrets) as server:
        yield server
    server.require_quiet()


def _configuration(notes: Path, script: Path, *, retain: bool) -> dict[str, Any]:
    steward = {
        "id": "steward",
        "uri": str(script),
        "format": "arguments",
        "argMap": {"targetAgentId": "targetAgentId"},
        "returnKey": "message",
        "agentIdOverrideKey": "targetAgentId",
    }
    made = configuration(
        agent(default=True),
        agent("unseen"),
        holder(notes),
        agent("teller", shell(_TELLING.format(folder=notes), input="stdin-json")),
        maxSpawnDepth=2,
        maxConcurrent=100,
        maxChildrenPerAgent=CHILDREN_MAX,
        archiveAfterMinutes=0,
        contextScripts={"run": [steward]},
    )
    made["agents"]["defaults"] |= {
        "bootstrapMaxChars": BOOTSTRAP_MAX_CHARS,
        "bootstrapTotalMaxChars": BOOTSTRAP_TOTAL_MAX_CHARS,
    }
    reader = {"id": "reader", "token": "${READER_TOKEN}", "scopes": ["read"], "sessions": ["*"]}
    made["spawnlog"] |= {
        "drainSeconds": 0,
        "workspaceRoots": [str(notes.parent / "ground")],
        "tokens": [reader],
    }
    attachments = {**CONFIGURATION, "retainOnSessionKeep": retain}
    made["tools"] = {"sessions_spawn": {"attachments": attachments}}
    return made
