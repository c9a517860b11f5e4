"""A server whose children begin with their requester's conversation, and what is left of that."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.builders.submitted_transcripts import tell
from tests.support.servers.child_programs import waiter
from tests.support.servers.mortal_server import QUICK_LEASE_SECONDS
from tests.support.servers.preparing_server import Porter
from tests.support.servers.running_server import configuration, scripted

# Tells what it finds of the conversation before.
_LOOK = """
import json, os, pathlib, stat, sys
told = json.load(sys.stdin)
paths = told["history"]
files = [
    {
        "mode": oct(stat.S_IMODE(os.lstat(path).st_mode)),
        "lines": [json.loads(line) for line in pathlib.Path(path).read_bytes().splitlines()],
    }
    for path in paths
]
found = {"paths": paths, "variable": os.environ.get("SPAWNLOG_HISTORY"), "files": files}
part = pathlib.Path(sys.argv[1], os.environ["SPAWNLOG_RUN_ID"] + ".part")
part.write_text(json.dumps(found))
part.rename(part.with_suffix(".seen"))
print("I remember")
"""


def forking(folder: Path) -> dict[str, Any]:
    """Agents `heir`, which looks at what it begins with, `blocked`, for which no attachment can be
    written, and `waiter`, which stays until it is let go. One run at a time."""
    agents = [{**scripted("main"), "default": True}, waiter("waiter", folder)]
    for agent_id in ("heir", "blocked"):
        home = folder.parent / "homes" / agent_id
        home.mkdir(parents=True, exist_ok=True)
        argv = [sys.executable, "-I", "-S", "-c", _LOOK, str(folder)]
        runtime = {"type": "command", "command": argv, "input": "stdin-json"}
        agents.append({"id": agent_id, "runtime": runtime, "workspace": str(home)})
    (folder.parent / "homes" / "blocked" / ".openclaw").touch()
    config = configuration(*agents, archiveAfterMinutes=0, maxConcurrent=1)
    config["spawnlog"] = {"leaseSeconds": QUICK_LEASE_SECONDS, "drainSeconds": 2}
    return config | {"tools": {"sessions_spawn": {"attachments": {"enabled": True}}}}


class Heirs(Porter):
    """A server that dies while its children are given what was said before."""

    def __init__(self, data_dir: Path, folder: Path, database_url: str) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(data_dir, folder, database_url, config=forking(folder))

    def told(self, session: str, **more: Any) -> None:
        """Tell the transcript of a session."""
        answer = tell(self.http, session, **more)
        assert answer.status_code == 200, answer.text

    def beginnings(self) -> list[str]:
        """The files of what children begin with, and what is left of attempts to write them."""
        folder = self.data_dir / "transcripts"
        return sorted(path.name for path in folder.rglob("*.fork.jsonl*"))

    def rows(self, run_id: str) -> int:
        """How many entries a run has."""
        query = "SELECT count(*) FROM transcript_entries WHERE run_id = %s"
        return int(self.places.ask(query, run_id)[0][0])

    def remembered(self, run_id: str) -> dict[str, Any]:
        """What the child of a run found."""
        return dict(json.loads(self.note(f"{run_id}.seen")))


def forked(key: str, agent_id: str = "heir", **more: Any) -> dict[str, Any]:
    """A spawn that is to begin with the conversation of a session called by the key."""
    name = "".join(letter if letter.isalnum() else "-" for letter in key.lower())
    requester = {"sessionKey": f"agent:{agent_id}:{name}"}
    body = {"key": f"{agent_id}-{key}", "context": "fork", "cleanup": "delete"}
    return {**body, "requester": requester, **more}
