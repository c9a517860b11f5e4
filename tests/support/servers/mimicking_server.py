"""A server whose agents say what could be taken for something else, and note what they get."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.servers.running_server import RunningServer, command, configuration

MIMIC = "mimic"
"""Says the text that its task names."""
FAILING = "failing"
"""Fails with that text as its last words."""
READER = "reader"
"""Notes what it is given."""
LEADER = "leader"
"""Spawns a mimic for each of so many texts, from the one on whose number its task begins with, and
calls them by the rest of the task."""
LED = 20

# The task is the last line of the message.
_MIMIC = """
import json, os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
given = sys.stdin.buffer.read()
(folder / os.environ["SPAWNLOG_RUN_ID"]).write_bytes(given)
texts = json.loads((folder / "texts.json").read_text("utf-8"))
sys.stdout.buffer.write(texts[given.decode().rpartition("\\n")[2]].encode())
"""
_FAILING = _MIMIC.replace("sys.stdout", "sys.stderr") + "sys.exit(3)\n"
_READER = """
import os, pathlib, sys
given = sys.stdin.buffer.read()
(pathlib.Path(sys.argv[1]) / os.environ["SPAWNLOG_RUN_ID"]).write_bytes(given)
print("noted")
"""
_LEADER = """
import json, os, pathlib, sys, urllib.request
texts = json.loads((pathlib.Path(sys.argv[1]) / "texts.json").read_text("utf-8"))
first, _, label = sys.stdin.read().rpartition("\\n")[2].partition(" ")
body = {
    "requester": {"sessionKey": "current"},
    "task": list(texts)[int(first) : int(first) + int(sys.argv[2])],
    "parallel": True,
    "agentId": "mimic",
    "label": label,
}
request = urllib.request.Request(
    os.environ["SPAWNLOG_URL"] + "/v1/spawns",
    data=json.dumps(body).encode(),
    headers={
        "Authorization": "Bearer " + os.environ["SPAWNLOG_TOKEN"],
        "Content-Type": "application/json",
    },
)
urllib.request.urlopen(request, timeout=60).close()
print("they are at work")
"""
_PROGRAMS = {MIMIC: _MIMIC, FAILING: _FAILING, READER: _READER, LEADER: _LEADER}


class Mimicking(RunningServer):
    """Mimics know these texts by their names."""

    def __init__(
        self, data_dir: Path, folder: Path, texts: Mapping[str, str], database_url: str
    ) -> None:
        folder.mkdir()
        self._folder = folder
        (folder / "texts.json").write_text(json.dumps(dict(texts)), "utf-8")
        agents = [
            command(agent_id, sys.executable, "-I", "-S", "-c", program, str(folder), str(LED))
            for agent_id, program in _PROGRAMS.items()
        ]
        more = {"maxChildrenPerAgent": LED, "maxSpawnDepth": 2, "maxConcurrent": 8}
        super().__init__(data_dir, configuration(*agents, **more), database_url=database_url)

    def ran(self, agent_id: str, session: str, task: str, **body: Any) -> dict[str, Any]:
        """A run of a session `agent:reader:<session>`, announced."""
        requester = {"sessionKey": f"agent:{READER}:{session}"}
        answer = self.spawn(task, requester=requester, agentId=agent_id, **body)
        assert answer.status_code == 201, answer.text
        return self.over(answer.json()["runId"], "error" if agent_id == FAILING else "success")

    def went_on(self, run: Mapping[str, Any], message: str) -> dict[str, Any]:
        """The run of a message to the session of another one, announced."""
        path = f"/v1/runs/{run['runId']}/messages"
        sent = self.http.post(path, json={"message": message})
        assert sent.is_success, sent.text
        return self.over(sent.json()["runId"])

    def over(self, run_id: str, outcome: str = "success") -> dict[str, Any]:
        """The run, announced."""
        run = self.run(run_id, "announced")
        assert run["outcome"] == outcome, run
        return run

    def given(self, run: Mapping[str, Any]) -> bytes:
        """What the process of a run got on its standard input."""
        return (self._folder / str(run["runId"])).read_bytes()

    def prompt(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """The prompt of a run as it is told."""
        answer = self.http.get(f"/v1/runs/{run['runId']}/prompt")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def announced(self, run: Mapping[str, Any], session: str) -> str:
        """The text by which a session was told of a run."""
        inbox = self.inbox(f"agent:{READER}:{session}")
        (text,) = [one["text"] for one in inbox if one["runId"] == run["runId"]]
        return str(text)
