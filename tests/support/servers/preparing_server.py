"""A server whose children get a folder and two files, and what is left of them afterwards."""

import base64
import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import psycopg

from tests.support.builders.folders import tree_of
from tests.support.servers.child_programs import AWAIT_FILE, WAIT_SECONDS_MAX
from tests.support.servers.mortal_server import QUICK_LEASE_SECONDS, Mortal
from tests.support.servers.running_server import configuration, scripted, wait_for

FIRST, SECOND = b"first\n", bytes(range(256)) * 40
ATTACHED: list[dict[str, str]] = [
    {"name": "notes.txt", "content": FIRST.decode()},
    {"name": "chart.bin", "content": base64.b64encode(SECOND).decode(), "encoding": "base64"},
]
CONTENTS = {"notes.txt": FIRST, "chart.bin": SECOND}
LISTED = [
    {"name": name, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    for name, body in CONTENTS.items()
]

# Tells what it finds, and ends at once unless it is to wait for `<run id>.go`.
_LOOK = (
    AWAIT_FILE
    + """
import hashlib, json, os, pathlib, stat, sys
notes, seconds = pathlib.Path(sys.argv[1]), float(sys.argv[2])
run = os.environ["SPAWNLOG_RUN_ID"]
place = pathlib.Path(json.load(sys.stdin)["attachmentsDir"])
mode = lambda path: oct(stat.S_IMODE(os.lstat(path).st_mode))
files = {
    one.name: [mode(one), hashlib.sha256(one.read_bytes()).hexdigest()]
    for one in place.iterdir() if one.name != ".manifest.json"
}
above = [place, place.parent, place.parent.parent, pathlib.Path.cwd(), pathlib.Path.cwd().parent]
told = {
    "cwd": os.getcwd(), "dir": str(place), "modes": [mode(one) for one in above], "files": files,
    "manifest": json.loads((place / ".manifest.json").read_text()),
}
part = notes / f"{run}.part"
part.write_text(json.dumps(told))
part.rename(notes / f"{run}.seen")
if seconds:
    await_file(seconds, notes / f"{run}.go")
print("seen")
"""
)


def preparing(folder: Path, *, retain: bool = False) -> dict[str, Any]:
    """Agents `porter`, which looks at its files, and `keeper`, which stays until it is let go.
    Their workspaces, two folders deep, are not there yet."""
    agents = [
        {**scripted("main"), "default": True},
        _looking("porter", folder, 0),
        _looking("keeper", folder, WAIT_SECONDS_MAX),
    ]
    config = configuration(*agents, archiveAfterMinutes=0, maxSpawnDepth=2)
    config["spawnlog"] = {"leaseSeconds": QUICK_LEASE_SECONDS, "drainSeconds": 2}
    attachments = {"enabled": True, "retainOnSessionKeep": retain}
    return config | {"tools": {"sessions_spawn": {"attachments": attachments}}}


def _looking(agent_id: str, folder: Path, seconds: float) -> dict[str, Any]:
    argv = [sys.executable, "-I", "-S", "-c", _LOOK, str(folder), str(seconds)]
    runtime = {"type": "command", "command": argv, "input": "stdin-json"}
    return {
        "id": agent_id,
        "runtime": runtime,
        "workspace": str(folder.parent / "homes" / agent_id / "desk"),
    }


class Places:
    """Where the children of a server work, and what of them is in its database."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.homes = folder.parent / "homes"
        self._url = database_url

    def desk(self, agent_id: str = "porter") -> Path:
        """The workspace of an agent."""
        return self.homes / agent_id / "desk"

    def clear(self) -> None:
        """No workspace is there."""
        shutil.rmtree(self.homes, ignore_errors=True)
        self.homes.mkdir()

    def left(self) -> list[str]:
        """All that is below the place of the workspaces."""
        return sorted(set(tree_of(self.homes)) - {"."})

    def ask(self, query: str, *values: object) -> list[Any]:
        """A question to the database, past the server."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            cursor = connection.execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def staged(self) -> int:
        """How many files are set aside."""
        return int(self.ask("SELECT count(*) FROM staged_files")[0][0])

    def last_event(self) -> str:
        """The type of the last event that a run recorded."""
        runs = "SELECT type FROM events WHERE stream LIKE 'run:%' ORDER BY position DESC LIMIT 1"
        return str(self.ask(runs)[0][0])


class Porter(Mortal):
    """A server that dies while it prepares, on a database that stays."""

    def __init__(
        self,
        data_dir: Path,
        folder: Path,
        database_url: str,
        *,
        config: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        config = config or preparing(folder)
        super().__init__(data_dir, folder, database_url, config=config, **more)
        self.places = Places(folder, database_url)

    def dies(self, moment: str, **body: Any) -> None:
        """It dies in the middle of a spawn."""
        self.is_to_die(moment)
        self.asked_in_vain(**body)
        self.has_died()

    def run_of(self, session_key: str) -> str:
        """The id of the one run of a session, whatever became of it."""
        query = {"requester": session_key}
        (found,) = self.http.get("/v1/runs", params=query).json()["items"]
        return str(found["runId"])

    def seen(self, run_id: str) -> dict[str, Any]:
        """What the child of a run found."""
        return dict(json.loads(self.note(f"{run_id}.seen")))

    def recorded(self, run_id: str, kind: str) -> list[dict[str, Any]]:
        """What the events of this type of a run say, in order."""
        items = self.http.get(f"/v1/runs/{run_id}/events").json()["items"]
        return [dict(one["payload"]) for one in items if one["type"] == kind]

    def twin(self) -> "Porter":
        """Another server on the same database and data directory, not started."""
        twin = Porter(self.data_dir, self.folder, self.database_url, order="order-of-the-twin")
        twin.log_path = self.log_path.with_name("twin.log")
        return twin


def asked(key: str, **more: Any) -> dict[str, Any]:
    """A spawn with two files by a session of its own, which is called by the key."""
    name = "".join(letter if letter.isalnum() else "-" for letter in key.lower())
    body = {"key": key, "agentId": "porter", "attachments": ATTACHED, "cleanup": "delete"}
    return {**body, "requester": {"sessionKey": f"agent:main:{name}"}, **more}


def receipt(run_id: str) -> dict[str, Any]:
    """What the caller is told of the two files."""
    total = sum(map(len, CONTENTS.values()))
    place = f".openclaw/attachments/{run_id}"
    return {"count": 2, "totalBytes": total, "files": LISTED, "relDir": place}


def sight(server: Porter, run_id: str, agent_id: str = "porter") -> dict[str, Any]:
    """What a child has to find."""
    desk = server.places.desk(agent_id)
    facts = receipt(run_id)
    return {
        "cwd": str(desk),
        "dir": str(desk / facts["relDir"]),
        "modes": ["0o700"] * 5,
        "files": {one["name"]: ["0o600", one["sha256"]] for one in LISTED},
        "manifest": facts,
    }


def nothing_is_left(server: Porter) -> None:
    """No file that was set aside, or written for a child."""
    wait_for("the files that were set aside to go", lambda: server.places.staged() == 0)
    assert not [one for one in server.places.left() if ".openclaw" in one]
