"""A server whose agent says what its task tells it to say, when a test lets it."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.support.servers.child_programs import AWAIT_FILE, WAIT_SECONDS_MAX
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.running_server import RunningServer, configuration, wait_for

# A task is a list of steps: {"say": an entry}, {"spawn": a body}, {"note": name}, {"await": name},
# {"pause": seconds}. What follows a spawn's answer is noted under the name of its step.
_NARRATE = (
    AWAIT_FILE
    + """
import json, os, pathlib, sys, time, urllib.request

folder = pathlib.Path(sys.argv[1])
told = json.load(sys.stdin)["message"]

def note(name, text=""):
    part = folder / (name + ".part")
    part.write_text(text)
    part.rename(folder / name)

def spawn(body):
    body = {"requester": {"sessionKey": os.environ["SPAWNLOG_SESSION_KEY"]}, **body}
    request = urllib.request.Request(
        os.environ["SPAWNLOG_URL"] + "/v1/spawns",
        data=json.dumps(body).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["SPAWNLOG_TOKEN"],
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()

for step in json.loads(told.rsplit("\\n\\n", 1)[1]):
    if "say" in step:
        print(json.dumps(step["say"]), flush=True)
    if "spawn" in step:
        answer = spawn(step["spawn"])
        note(step["note"], answer)
    elif "note" in step:
        note(step["note"])
    if "await" in step:
        await_file(sys.argv[2], folder / step["await"])
    time.sleep(step.get("pause", 0))
"""
)


class Narrating(RunningServer):
    """A server with one agent, `main`, that narrates."""

    def __init__(self, data_dir: Path, folder: Path, database_url: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        argv = [sys.executable, "-I", "-S", "-c", _NARRATE, str(folder), str(WAIT_SECONDS_MAX)]
        runtime = {"type": "command", "command": argv, "input": "stdin-json", "output": "jsonl"}
        models = [{"id": "big", "cost": {"input": 2, "output": 8}}]
        config = configuration(
            {"id": "main", "default": True, "runtime": runtime, "model": "acme/big"},
            maxSpawnDepth=2,
        )
        super().__init__(
            data_dir,
            config | {"models": {"providers": {"acme": {"models": models}}}},
            database_url=database_url,
        )

    def narrates(self, *steps: dict[str, Any], **body: Any) -> str:
        """The id of a run that does this."""
        answer = self.spawn(json.dumps(steps), **body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["runId"])

    def noted(self, name: str) -> str:
        """What was noted under a name, once it is."""
        path = self.folder / name
        wait_for(f"the note {name}", path.exists)
        return path.read_text("utf-8")

    def lets(self, name: str) -> None:
        """Let whoever waits for this go on."""
        (self.folder / name).touch()

    def entries(self, run_id: str, **query: Any) -> list[dict[str, Any]]:
        """The transcript of a run, tool calls and token counts included."""
        answer = self.transcript(run_id, tools="true", **query)
        return list(answer.json()["items"])

    def transcript(self, run_id: str, **query: Any) -> httpx2.Response:
        """A page of a transcript."""
        answer = self.http.get(f"/v1/runs/{run_id}/transcript", params=query)
        assert answer.status_code == 200, answer.text
        return answer


def said(text: str) -> dict[str, Any]:
    """A step that says this."""
    return {"say": {"type": "message", "role": "assistant", "text": text}}


def texts(entries: Sequence[dict[str, Any]]) -> list[Any]:
    """The texts of entries."""
    return [one["body"].get("text") for one in entries]


@contextmanager
def narrating_on(databases: Databases) -> Iterator[Narrating]:
    """A narrating server on a database of its own; its log is verified once all is over."""
    url = databases.create()
    with new_place() as place:
        with Narrating(place / "data", place / "notes", url) as server:
            yield server
        verified = server.log_command("verify")
        assert verified.returncode == 0, verified.stdout + verified.stderr
    databases.drop(url)
