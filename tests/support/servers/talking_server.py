"""A server whose child stays, and tells of each message what it was given with it."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.support.servers.child_programs import AWAIT_FILE, WAIT_SECONDS_MAX
from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer
from tests.support.servers.hooked_server import Hooked, all_of, threaded
from tests.support.servers.mortal_server import Aside, mortal_on
from tests.support.servers.running_server import wait_for

# Answers with what it was told, what was said before, and where it is.
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

# Says something, notes what was said before it, waits for `<run id>.go`, and says something again.
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

# Asks for a child that is called by what it was told, and ends before that does.
_BOSS = """
import json, os, sys, urllib.request
told = json.load(sys.stdin)["message"].splitlines()[-1]
body = {"requester": {"sessionKey": "current"}, "task": told, "agentId": "waiter", "label": told}
request = urllib.request.Request(
    os.environ["SPAWNLOG_URL"] + "/v1/spawns",
    data=json.dumps(body).encode(),
    headers={
        "Authorization": "Bearer " + os.environ["SPAWNLOG_TOKEN"],
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request, timeout=20) as answer:
    run_id = json.load(answer)["runId"]
print(json.dumps({"type": "result", "text": run_id}))
"""


def talker(agent_id: str, folder: Path, **runtime: Any) -> dict[str, Any]:
    """An agent that answers each message."""
    return _speaking(agent_id, folder, [_TALKER], **runtime)


def _speaking(agent_id: str, folder: Path, program: list[str], **runtime: Any) -> dict[str, Any]:
    argv = [sys.executable, "-I", "-S", "-c", *program]
    return {
        "id": agent_id,
        "runtime": {"type": "command", "command": argv, "output": "jsonl", **runtime},
        "workspace": str(folder / "work"),
    }


def talkers(folder: Path) -> list[dict[str, Any]]:
    """Agents `talker`, `carrier` (delivers by itself), `lingerer`, `boss` (whose children are
    waiters), and `late`, which has a workspace of its own."""
    return [
        talker("talker", folder),
        talker("carrier", folder, deliversToOrigin=True),
        _speaking("lingerer", folder, [_LINGERER, str(folder), str(WAIT_SECONDS_MAX)]),
        _speaking("boss", folder, [_BOSS]),
        {
            "id": "late",
            "runtime": {"type": "command", "command": ["echo", "here I am"]},
            "workspace": str(folder / "desk"),
        },
    ]


class Talking(Hooked):
    """Sessions that go on with messages."""

    def __init__(
        self, data_dir: Path, folder: Path, database_url: str, hooks: dict[str, Any], **more: Any
    ) -> None:
        super().__init__(data_dir, folder, database_url, hooks, **more)
        self._hooks, self._more = hooks, more

    def twin(self) -> "Talking":
        """Another server on the same database and data directory, not started."""
        place = (self.data_dir, self.folder, self.database_url, self._hooks)
        twin = Talking(*place, order="order-of-the-twin", **self._more)
        twin.log_path = self.log_path.with_name("twin.log")
        return twin

    def send(self, run_id: str, message: str, key: str | None = None) -> httpx2.Response:
        """A message to the session of a run."""
        headers = {"Idempotency-Key": key} if key else {}
        return self.http.post(
            f"/v1/runs/{run_id}/messages", json={"message": message}, headers=headers
        )

    def send_aside(self, run_id: str, message: str, key: str | None = None) -> Aside:
        """Send it, and go on."""
        return Aside(lambda: self.send(run_id, message, key))

    def goes_on(self, run_id: str, message: str) -> str:
        """The message is accepted; gives the id of the new run."""
        answer = self.send(run_id, message)
        assert answer.status_code == 201, answer.text
        assert answer.headers["Location"] == f"/v1/runs/{answer.json()['runId']}"
        return str(answer.json()["runId"])

    def said(self, run_id: str) -> dict[str, Any]:
        """What the child answered, once its run is announced."""
        self.comes_to(run_id, "RunAnnounced")
        run = self.run(run_id)
        assert run["outcome"] == "success", run
        said: dict[str, Any] = json.loads(run["resultText"])
        return said

    def runs_of(self, key: str) -> list[str]:
        """The runs of a session, the newest first."""
        return [str(run["runId"]) for run in self.session(key)["ownRuns"]]

    def taken(self, run_id: str) -> str:
        """The run that a message becomes which waited, once it has."""
        wait_for(
            f"the message of run {run_id} to be taken",
            lambda: self.http.get(f"/v1/runs/{run_id}").is_success,
        )
        return run_id

    def began(self, run_id: str) -> None:
        """Wait until its child stands where it waits to be let go."""
        self.note(f"{run_id}.began")

    def closes(self, key: str) -> dict[str, Any]:
        """Stop the session."""
        answer = self.http.post(f"/v1/sessions/{key}/stop", json={})
        assert answer.status_code == 200, answer.text
        closed: dict[str, Any] = answer.json()
        return closed


def ends_of(outside: HookServer, key: str) -> list[tuple[Any, Any]]:
    """What hooks were told of the end of a session: the run, and why."""
    told = [call.event for call in outside.calls("subagentEnded")]
    return [(one["runId"], one["reason"]) for one in told if one["targetSessionKey"] == key]


def staying(name: str, **more: Any) -> dict[str, Any]:
    """A request for a child that stays in a thread."""
    return threaded(name, mode="session", **{"agentId": "talker", **more})


@contextmanager
def talking_on(databases: Databases, outside: HookServer, **more: Any) -> Iterator[Talking]:
    """Such a server on a database of its own; its log is verified once all is over."""

    def make(data_dir: Path, folder: Path, url: str) -> Talking:
        return Talking(data_dir, folder, url, all_of(outside), agents=talkers(folder), **more)

    with mortal_on(databases, make) as server:
        yield server
