"""Children that follow the instructions in their task, when a test lets them."""

import json
from pathlib import Path
from typing import Any

from tests.support.servers.child_programs import ASK, AWAIT_FILE, WAIT_SECONDS_MAX
from tests.support.servers.configurations import agent, configuration, python
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

# A task is a list of steps: {"say": an entry}, {"spawn": a body}, {"note": name}, {"await": name},
# {"pause": seconds}. A spawn's answer is noted under the name of its step.
_NARRATE = (
    AWAIT_FILE
    + ASK
    + """
import json, os, pathlib, sys, time

folder = pathlib.Path(sys.argv[1])
told = json.load(sys.stdin)["message"]

def note(name, text="noted"):
    part = folder / (name + ".part")
    part.write_text(text)
    part.rename(folder / name)

for step in json.loads(told.rsplit("\\n\\n", 1)[1]):
    if "say" in step:
        print(json.dumps(step["say"]), flush=True)
    if "spawn" in step:
        own = {"requester": {"sessionKey": os.environ["SPAWNLOG_SESSION_KEY"]}}
        _, answer = ask("POST", "/v1/spawns", own | step["spawn"])
        note(step["note"], json.dumps(answer))
    elif "note" in step:
        note(step["note"])
    if "await" in step:
        await_file(sys.argv[2], folder / step["await"])
    time.sleep(step.get("pause", 0))
"""
)


def narrating(folder: Path) -> dict[str, Any]:
    """Return a configuration with one agent, `main`, which does the steps of its task."""
    models = [{"id": "big", "cost": {"input": 2, "output": 8}}]
    narrator = python(_NARRATE, folder, WAIT_SECONDS_MAX, input="stdin-json", output="jsonl")
    return configuration(
        agent("main", narrator, default=True, model="acme/big"),
        maxSpawnDepth=2,
        models={"providers": {"acme": {"models": models}}},
    )


def narrate(server: Server, *steps: dict[str, Any], **body: Any) -> str:
    """Spawn a run that does these steps. Return its id."""
    return server.accepted(task=json.dumps(steps), **body)


def heard(server: Server, run_id: str, step: dict[str, Any]) -> None:
    """Wait until the entry of this step is the last one in the run's transcript.

    A child's note can be there before the server has read what the child printed.
    """
    body = dict(step["say"])
    kind = body.pop("type")

    def is_last() -> bool:
        last = server.transcript(run_id, last=1)
        return [item["kind"] for item in last] == [kind] and body.items() <= last[0]["body"].items()

    wait_for(f"the entry {step}", is_last)


def entry(kind: str, **body: Any) -> dict[str, Any]:
    """Return a step that sends an entry of this type."""
    return {"say": {"type": kind, **body}}


def said(text: str) -> dict[str, Any]:
    """Return a step that sends this message."""
    return entry("message", role="assistant", text=text)
