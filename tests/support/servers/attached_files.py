"""Children with a folder and two files, and the state of these afterwards."""

import base64
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from tests.support.builders.folders import tree_of
from tests.support.servers.child_programs import AWAIT_FILE, WAIT_SECONDS_MAX
from tests.support.servers.configurations import agent, configuration, python
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server
from tests.support.waiting import wait_for

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

# Prints the files that it finds, and ends at once unless it waits for `<run id>.go`.
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
    """Return a configuration with agents `porter`, which looks at its files, and `keeper`, which
    stays until it is let go. Their workspaces, two folders deep, are not there yet."""
    homes = folder.parent / "homes"
    return configuration(
        agent("main", default=True),
        *(
            agent(name, python(_LOOK, folder, seconds), workspace=str(homes / name / "desk"))
            for name, seconds in (("porter", 0), ("keeper", WAIT_SECONDS_MAX))
        ),
        archiveAfterMinutes=0,
        maxSpawnDepth=2,
        leaseSeconds=QUICK_LEASE_SECONDS,
        tools={"sessions_spawn": {"attachments": {"enabled": True, "retainOnSessionKeep": retain}}},
    )


def homes_of(server: Server) -> Path:
    """Return the place of the workspaces."""
    return server.folder.parent / "homes"


def desk_of(server: Server, agent_id: str = "porter") -> Path:
    """Return the workspace of an agent."""
    return homes_of(server) / agent_id / "desk"


def clear_homes(server: Server) -> None:
    """Remove every workspace."""
    shutil.rmtree(homes_of(server), ignore_errors=True)
    homes_of(server).mkdir()


def left_in_homes(server: Server) -> list[str]:
    """Return all that is below the place of the workspaces."""
    return sorted(set(tree_of(homes_of(server))) - {"."})


def staged(server: Server) -> int:
    """Return how many files are set aside."""
    return int(server.ask_database("SELECT count(*) FROM staged_files")[0][0])


def with_files(key: str, **more: Any) -> dict[str, Any]:
    """Return a spawn with two files by a session of its own, which is called by the key."""
    name = "".join(letter if letter.isalnum() else "-" for letter in key.lower())
    body = {"key": key, "agentId": "porter", "attachments": ATTACHED, "cleanup": "delete"}
    return {**body, "requester": {"sessionKey": f"agent:main:{name}"}, **more}


def receipt(run_id: str) -> dict[str, Any]:
    """Return the receipt of the two files."""
    total = sum(map(len, CONTENTS.values()))
    place = f".openclaw/attachments/{run_id}"
    return {"count": 2, "totalBytes": total, "files": LISTED, "relDir": place}


def require_seen(server: Server, run_id: str, agent_id: str = "porter") -> None:
    """Require that the child of a run finds its files."""
    desk, facts = desk_of(server, agent_id), receipt(run_id)
    assert json.loads(server.note(f"{run_id}.seen")) == {
        "cwd": str(desk),
        "dir": str(desk / facts["relDir"]),
        "modes": ["0o700"] * 5,
        "files": {item["name"]: ["0o600", item["sha256"]] for item in LISTED},
        "manifest": facts,
    }


def require_nothing_left(server: Server) -> None:
    """Require that no file is left that was set aside, or written for a child."""
    wait_for("the files that were set aside to go", lambda: staged(server) == 0)
    assert not [item for item in left_in_homes(server) if ".openclaw" in item]
