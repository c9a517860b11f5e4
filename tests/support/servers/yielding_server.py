"""A server whose orchestrators yield for their children, and end when they are told.

What a child is to do is the last line of its task, as JSON: `children` are the tasks of its own
children, asked for one by one or, with `batch`, as a list; `turns` is how often it yields; `awaits`
a file that it waits for, `yieldsAfter` one that it waits for between its spawns and its yield, and
`then` what it does after it has yielded: `linger`. Each turn is noted in the folder as
`<label>.<turn>`, with the message that it was given.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.support.servers.child_programs import AWAIT_FILE, WAIT_SECONDS_MAX
from tests.support.servers.databases import Databases
from tests.support.servers.mortal_server import QUICK_LEASE_SECONDS, Mortal, mortal_on
from tests.support.servers.running_server import configuration, wait_for

_ACTOR = (
    AWAIT_FILE
    + """
import json, os, pathlib, sys, time, urllib.error, urllib.request
folder, seconds = pathlib.Path(sys.argv[1]), sys.argv[2]
told = json.load(sys.stdin)
name, message = told["label"], told["message"]
plan = folder / f"{name}.plan"
if not plan.exists():
    plan.write_text(message.splitlines()[-1])
part = json.loads(plan.read_text())
turn = len(list(folder.glob(f"{name}.turn-*"))) + 1
(folder / f"{name}.part").write_text(message)
(folder / f"{name}.part").rename(folder / f"{name}.turn-{turn}")

def ask(path, body):
    request = urllib.request.Request(
        os.environ["SPAWNLOG_URL"] + path,
        data=json.dumps(body).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["SPAWNLOG_TOKEN"],
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)

def say(**what):
    print(json.dumps({"type": "result", "text": json.dumps(what)}), flush=True)

if part.get("awaits"):
    await_file(seconds, folder / part["awaits"])
children = part.get("children", []) if turn == 1 else []
body = {"requester": {"sessionKey": "current"}}
if part.get("batch") and children:
    tasks = [json.dumps(one) for one in children]
    status, answer = ask("/v1/spawns", {**body, "task": tasks, "parallel": True, "label": name})
    assert status == 201, answer
else:
    for number, one in enumerate(children, 1):
        task = {"task": json.dumps(one), "label": f"{name}.{number}"}
        status, answer = ask("/v1/spawns", {**body, **task})
        assert status == 201, answer
if turn <= part.get("turns", 0):
    if part.get("yieldsAfter"):
        await_file(seconds, folder / part["yieldsAfter"])
    status, answer = ask("/v1/sessions/current/yield", {})
    (folder / f"{name}.yield-{turn}").write_text(json.dumps([status, answer]))
    if part.get("then") == "linger":
        await_file(seconds, folder / "never")
    say(yielded=turn)
else:
    say(name=name, turns=turn)
"""
)


def actor(folder: Path) -> dict[str, Any]:
    """The one agent."""
    argv = [sys.executable, "-I", "-S", "-c", _ACTOR, str(folder), str(WAIT_SECONDS_MAX)]
    return {
        "id": "actor",
        "default": True,
        "runtime": {"type": "command", "command": argv, "output": "jsonl"},
        "workspace": str(folder / "work"),
    }


class Yielding(Mortal):
    """Its orchestrators yield. `label` names what is asked for; everything else follows from it."""

    def __init__(
        self,
        data_dir: Path,
        folder: Path,
        database_url: str,
        *,
        order: str = "fail-point",
        **more: Any,
    ) -> None:
        (folder / "work").mkdir(parents=True, exist_ok=True)
        settings: dict[str, Any] = {"maxSpawnDepth": 4, "maxConcurrent": 1} | more
        config = configuration(actor(folder), archiveAfterMinutes=0, **settings)
        config["spawnlog"]["leaseSeconds"] = QUICK_LEASE_SECONDS
        self._more = more
        super().__init__(data_dir, folder, database_url, config=config, order=order)

    def twin(self) -> "Yielding":
        """Another server on the same database and data directory, not started."""
        place = (self.data_dir, self.folder, self.database_url)
        twin = Yielding(*place, order="order-of-the-twin", **self._more)
        twin.log_path = self.log_path.with_name("twin.log")
        return twin

    def asks(self, label: str, part: dict[str, Any], **body: Any) -> str:
        """Ask for an orchestrator; gives its run."""
        requester = {"sessionKey": f"agent:actor:{label}"}
        answer = self.spawn(
            json.dumps(part), agentId="actor", label=label, requester=requester, **body
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["runId"])

    def turn(self, label: str, number: int) -> str:
        """The message of a turn, once it has begun."""
        return self.note(f"{label}.turn-{number}")

    def lets(self, name: str) -> None:
        """Whoever waits for this file goes on."""
        (self.folder / name).touch()

    def announcements(self, label: str, count: int = 1) -> list[dict[str, Any]]:
        """What its requester is told, once there is so much of it."""
        path = f"/v1/sessions/agent:actor:{label}/announcements"

        def entries() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = self.http.get(path).json()["items"]
            return found if len(found) >= count else []

        return wait_for("the announcement", entries)

    def runs_of(self, run_id: str) -> list[dict[str, Any]]:
        """The runs of the session of a run, the first one first."""
        key = self.run(run_id)["childSessionKey"]
        own = reversed(self.session(key)["ownRuns"])
        return [self.run(str(one["runId"])) for one in own]

    def run_when_there(self, run_id: str, stage: str) -> dict[str, Any]:
        """A run that a queued message will become, once it is there and so far."""
        path = f"/v1/runs/{run_id}"
        wait_for("the run of the message", lambda: self.http.get(path).status_code == 200)
        return self.run(run_id, stage)

    def types(self, run_id: str) -> list[str]:
        """The types of a run's events in order."""
        items = self.http.get(f"/v1/runs/{run_id}/events").json()["items"]
        return [str(one["type"]) for one in items]

    def message(self, run_id: str, text: str, mode: str = "send") -> httpx2.Response:
        """A message to the session of a run."""
        body = {"message": text, "mode": mode}
        return self.http.post(f"/v1/runs/{run_id}/messages", json=body)


@contextmanager
def yielding_on(databases: Databases, **more: Any) -> Iterator[Yielding]:
    """Such a server on a database of its own; its log is verified once all is over."""

    def make(data_dir: Path, folder: Path, url: str) -> Yielding:
        return Yielding(data_dir, folder, url, **more)

    with mortal_on(databases, make) as server:
        yield server
