"""Orchestrators that yield for their children, and end on request.

The last line of a child's task is JSON: `children` are the tasks of its own children, requested one
by one or, with `batch`, as a list; `turns` is how often it yields; `awaits` is a file that it waits
for; `yieldsAfter` one that it waits for between its spawns and its yield; `then` what it does after
the yield: `linger`. Each turn is noted in the folder as `<label>.turn-<turn>`, with its message.
"""

import json
from pathlib import Path
from typing import Any

from tests.support.servers.child_programs import ASK, AWAIT_FILE, WAIT_SECONDS_MAX
from tests.support.servers.configurations import agent, configuration, python
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server
from tests.support.waiting import wait_for

_ACTOR = (
    AWAIT_FILE
    + ASK
    + """
import json, pathlib, sys
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

def say(**what):
    print(json.dumps({"type": "result", "text": json.dumps(what)}), flush=True)

if part.get("awaits"):
    await_file(seconds, folder / part["awaits"])
children = part.get("children", []) if turn == 1 else []
body = {"requester": {"sessionKey": "current"}}
if part.get("batch") and children:
    tasks = [json.dumps(one) for one in children]
    body |= {"task": tasks, "parallel": True, "label": name}
    status, answer = ask("POST", "/v1/spawns", body)
    assert status == 201, answer
else:
    for number, one in enumerate(children, 1):
        task = {"task": json.dumps(one), "label": f"{name}.{number}"}
        status, answer = ask("POST", "/v1/spawns", {**body, **task})
        assert status == 201, answer
if turn <= part.get("turns", 0):
    if part.get("yieldsAfter"):
        await_file(seconds, folder / part["yieldsAfter"])
    status, answer = ask("POST", "/v1/sessions/current/yield", {})
    (folder / f"{name}.yield-{turn}").write_text(json.dumps([status, answer]))
    if part.get("then") == "linger":
        await_file(seconds, folder / "never")
    say(yielded=turn)
else:
    say(name=name, turns=turn)
"""
)


def orchestrating(folder: Path) -> dict[str, Any]:
    """Return a configuration whose only agent, `actor`, follows its task, with lanes of width 1."""
    return configuration(
        agent("actor", python(_ACTOR, folder, WAIT_SECONDS_MAX, output="jsonl"), default=True),
        archiveAfterMinutes=0,
        maxSpawnDepth=4,
        maxConcurrent=1,
        maxChildrenPerAgent=20,
        workspace=folder / "work",
        leaseSeconds=QUICK_LEASE_SECONDS,
    )


def orchestrate(server: Server, label: str, part: dict[str, Any], **body: Any) -> str:
    """Spawn an orchestrator by the session `agent:actor:<label>`. Return its run."""
    requester = {"sessionKey": f"agent:actor:{label}"}
    return server.accepted("actor", json.dumps(part), label=label, requester=requester, **body)


def turn(server: Server, label: str, number: int) -> str:
    """Return the message of a turn, once it has begun."""
    return server.note(f"{label}.turn-{number}")


def announcements(server: Server, label: str, count: int = 1) -> list[dict[str, Any]]:
    """Return the announcements to the requester of an orchestrator, once there are this many."""

    def entries() -> list[dict[str, Any]]:
        found = server.inbox(f"agent:actor:{label}")
        return found if len(found) >= count else []

    return wait_for("the announcement", entries)


def turns_of(server: Server, run_id: str) -> list[dict[str, Any]]:
    """Return the runs of the session of a run, the oldest first."""
    own = reversed(server.session_runs(server.run(run_id)["childSessionKey"]))
    return [server.run(item) for item in own]
