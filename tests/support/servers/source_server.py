"""The server of spawns that say something from every source, and what its children were given."""

import json
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.builders.sourced_spawns import PREAMBLE_CHARACTERS_MAX, SCRIPTS, Sourced
from tests.support.builders.submitted_transcripts import tell
from tests.support.servers.child_programs import AWAIT_FILE, WAIT_SECONDS_MAX
from tests.support.servers.configurations import agent, command, configuration
from tests.support.servers.data_directories import new_place
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked import ATTACHING, BOUND, ORIGIN
from tests.support.servers.server import Server

ALIAS = "alias"
"""An agent that is not configured."""
_SAYS = '#!/bin/sh\ncat "{folder}/${{1#label=}}.{id}" 2> /dev/null\nexit 0\n'
_NOTES = """
import os, pathlib, sys
given = sys.stdin.buffer.read()
pathlib.Path(sys.argv[1], os.environ["SPAWNLOG_RUN_ID"]).write_bytes(given)
print("noted")
"""

# Says what is in the file that its task names, once it is there.
_FINDS = (
    AWAIT_FILE
    + """
import pathlib, sys
path = pathlib.Path(sys.argv[1], sys.stdin.read().rpartition("\\n")[2])
await_file(sys.argv[2], path)
sys.stdout.buffer.write(path.read_bytes())
"""
)


class SourcingHouse:
    """The server, and what its children were given."""

    def __init__(self, place: Path, hooks: HookServer) -> None:
        self._folder = place / "notes"
        self._works = place / "work"
        for folder in (self._folder, self._works):
            folder.mkdir()
        hooks.replies("subagentSpawning", Reply(said=BOUND))
        self.server = Server(place / "data", self._configuration(hooks))

    def _configuration(self, hooks: HookServer) -> dict[str, Any]:
        agents = []
        for agent_id, given in (("text", "stdin-text"), ("json", "stdin-json")):
            program = [sys.executable, "-I", "-S", "-c", _NOTES, str(self._folder)]
            agents.append(
                agent(
                    agent_id,
                    command(*program, input=given),
                    workspace=str(self._works),
                    subagents={
                        "allowAgents": ["*"],
                        "contextPreambleMaxChars": PREAMBLE_CHARACTERS_MAX,
                    },
                )
            )
        finder = [
            sys.executable,
            "-I",
            "-S",
            "-c",
            _FINDS,
            str(self._folder),
            str(WAIT_SECONDS_MAX),
        ]
        agents.append(agent("finder", command(*finder)))
        runs = []
        for script_id, position in SCRIPTS.items():
            path = self._folder / f"{script_id}.sh"
            path.write_text(_SAYS.format(folder=self._folder, id=script_id), "utf-8")
            path.chmod(0o755)
            where = {"id": script_id, "uri": str(path), "position": position}
            naming = {"argMap": {"label": "label"}, "agentIdOverrideKey": "targetAgentId"}
            runs.append({**where, **naming})
        return configuration(
            *agents,
            contextScripts={"run": runs},
            maxConcurrent=8,
            maxChildrenPerAgent=20,
            hooks=hooks.hooks("subagentSpawning"),
            tools=ATTACHING,
        )

    def ran(self, asked: Sourced) -> list[dict[str, Any]]:
        """The runs of such a spawn, one for each task, announced."""
        name = uuid.uuid4().hex
        agent = "json" if asked.takes_json else "text"
        earlier = _Earlier(self.server, self._folder, f"agent:{agent}:{name}")
        for file in ("AGENTS.md", "TOOLS.md"):
            (self._works / file).write_text(asked.bootstrap.get(file, ""), "utf-8")
        self._write_scripts(asked, name, agent)
        if asked.forks:
            assert tell(self.server.http, earlier.session).status_code == 200
        if asked.before:
            self._over(self._asked(earlier.session, agentId=agent, sharedContext=asked.before))
        finders = earlier.ask(asked)
        if not asked.waits:
            earlier.let_go(asked)
            for one in finders:
                self._over(one)
        body = _body(asked, name) | {"agentId": ALIAS if asked.is_alias else agent}
        answer = self._asked(earlier.session, **body)
        if asked.waits:
            earlier.let_go(asked)
        return [self._over(one) for one in answer.get("runs", [answer])]

    def _write_scripts(self, asked: Sourced, name: str, agent: str) -> None:
        labels = [f"{name}-{number}" for number in range(1, len(asked.also) + 2)]
        for script_id, said in asked.scripts.items():
            # What is JSON would be read as such.
            text = f"* {said}"
            if asked.is_alias:
                text = json.dumps({"message": text, "targetAgentId": agent})
            for label in labels if asked.also else [name]:
                (self._folder / f"{label}.{script_id}").write_text(text, "utf-8", newline="")

    def went_on(self, run: Mapping[str, Any], message: str) -> dict[str, Any]:
        """The run of a message to the session of another one."""
        path = f"/v1/runs/{run['runId']}/messages"
        sent = self.server.http.post(path, json={"message": message})
        assert sent.is_success, sent.text
        return self._over(sent.json())

    def given(self, run: Mapping[str, Any]) -> bytes:
        """What the process of a run got on its standard input."""
        return (self._folder / str(run["runId"])).read_bytes()

    def prompt(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """The prompt of a run as it is told."""
        answer = self.server.http.get(f"/v1/runs/{run['runId']}/prompt")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def _asked(self, session: str, **body: Any) -> dict[str, Any]:
        return _asked(self.server, session, **body)

    def _over(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        run = self.server.run(answer["runId"], "announced")
        assert run["outcome"] == "success", run
        return run


@dataclass(frozen=True)
class _Earlier:
    """Runs that a session has asked for before, which say what they are told to."""

    server: Server
    folder: Path
    session: str

    def ask(self, asked: Sourced) -> list[dict[str, Any]]:
        """Ask for them; they are called `found-0` and so on, and have found nothing yet."""
        return [
            _asked(self.server, self.session, agentId="finder", task=self._file(label), label=label)
            for label in _findings(asked)
        ]

    def let_go(self, asked: Sourced) -> None:
        """Let them find it."""
        for label, text in _findings(asked).items():
            path = self.folder / self._file(label)
            part = path.with_name(f"{path.name}.part")
            part.write_text(text, "utf-8", newline="")
            part.rename(path)

    def _file(self, label: str) -> str:
        return f"{self.session.rpartition(':')[2]}.{label}"


def _findings(asked: Sourced) -> dict[str, str]:
    found = {f"found-{number}": text for number, text in enumerate(asked.found)}
    return found | {f"other-{number}": "nothing" for number in range(asked.after)}


def _body(asked: Sourced, name: str) -> dict[str, Any]:
    references = {f"$found-{number}": "reference" for number in range(len(asked.found))}
    body: dict[str, Any] = {
        "task": [asked.task, *asked.also] if asked.also else asked.task,
        "parallel": bool(asked.also),
        "label": name,
        "contextPreamble": asked.preamble,
        "sharedContext": asked.shared | references,
        "dependsOn": [f"other-{number}" for number in range(asked.after)],
        "attachments": [
            {"name": f"{number}.txt", "content": text} for number, text in enumerate(asked.attached)
        ],
        "context": "fork" if asked.forks else "isolated",
    }
    return body | ({"mode": "session", "thread": True} if asked.stays else {})


def _asked(server: Server, session: str, **body: Any) -> dict[str, Any]:
    requester = {"sessionKey": session, **ORIGIN}
    whole = {"requester": requester, "task": "do it", **body}
    answer = server.http.post("/v1/spawns", json=whole)
    assert answer.status_code == 201, json.dumps(body) + answer.text
    return dict(answer.json())


@contextmanager
def sourcing_house() -> Iterator[SourcingHouse]:
    """The house at work; what it recorded is gone through at the end."""
    with new_place() as place, HookServer() as hooks:
        house = SourcingHouse(place, hooks)
        with house.server:
            yield house
        house.server.require_sound_log()
