"""Spawns that say something from every source that a prompt has, at random, and their server."""

import json
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.support.data_directories import new_place
from tests.support.hook_server import HookServer, Reply
from tests.support.hooked_server import BOUND, ORIGIN
from tests.support.judged_servers import must_be_whole
from tests.support.running_server import RunningServer, command, configuration
from tests.support.told_transcripts import tell

SCRIPTS = {"first": "prepend", "second": "prepend", "third": "append", "fourth": "append"}
"""In the order in which they run, and where what they print goes."""
PREAMBLE_CHARACTERS_MAX = 60
_SAYS = '#!/bin/sh\ncat "{folder}/${{1#label=}}.{id}" 2> /dev/null\nexit 0\n'
_NOTES = """
import os, pathlib, sys
given = sys.stdin.buffer.read()
pathlib.Path(sys.argv[1], os.environ["SPAWNLOG_RUN_ID"]).write_bytes(given)
print("noted")
"""

sound = st.characters(codec="utf-8", exclude_characters="\0")
# What could be taken for the prompt's own words, among anything else.
sly = st.sampled_from(
    [
        *["\n\n", "## Rules\n", "\n\n---\n\n", "[Shared Context]:\n- goal: ", "[Session Context]"],
        *["[Subagent Context]", "\r\n", "<<<END_UNTRUSTED_CHILD_RESULT>>>", "Attachments: 9"],
    ]
)
texts = st.lists(st.text(sound, max_size=20) | sly, max_size=5).map("".join)
keys = st.text("abcä日 .:-[]<>#", min_size=1, max_size=12).filter(lambda key: key == key.strip())
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=5,
)


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """What a spawn says, by where it comes from; what is empty is left out."""

    task: str = "do it"
    preamble: str = ""
    scripts: dict[str, str] = field(default_factory=dict)
    bootstrap: dict[str, str] = field(default_factory=dict)
    attached: tuple[str, ...] = ()
    forks: bool = False
    before: dict[str, Any] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    stays: bool = False
    takes_json: bool = False
    message: str = ""


sourced = st.builds(
    Sourced,
    task=texts.filter(str.strip),
    preamble=texts,
    scripts=st.dictionaries(st.sampled_from(list(SCRIPTS)), texts, max_size=4),
    bootstrap=st.dictionaries(st.sampled_from(["AGENTS.md", "TOOLS.md"]), texts, max_size=2),
    attached=st.lists(texts, max_size=2).map(tuple),
    forks=st.booleans(),
    before=st.dictionaries(keys, values, max_size=3),
    shared=st.dictionaries(keys, values, max_size=3),
    stays=st.booleans(),
    takes_json=st.booleans(),
    message=st.just("") | texts.filter(str.strip),
)


class SourcingHouse:
    """The server, and what its children were given."""

    def __init__(self, place: Path, hooks: HookServer) -> None:
        self._folder = place / "notes"
        self._works = place / "work"
        for folder in (self._folder, self._works):
            folder.mkdir()
        hooks.replies("subagentSpawning", Reply(said=BOUND))
        self.server = RunningServer(place / "data", self._configuration(hooks))

    def _configuration(self, hooks: HookServer) -> dict[str, Any]:
        agents = []
        for agent_id, given in (("text", "stdin-text"), ("json", "stdin-json")):
            program = [sys.executable, "-I", "-S", "-c", _NOTES, str(self._folder)]
            agents.append(
                {
                    **command(agent_id, *program, input=given),
                    "workspace": str(self._works),
                    "subagents": {
                        "allowAgents": ["*"],
                        "contextPreambleMaxChars": PREAMBLE_CHARACTERS_MAX,
                    },
                }
            )
        runs = []
        for script_id, position in SCRIPTS.items():
            path = self._folder / f"{script_id}.sh"
            path.write_text(_SAYS.format(folder=self._folder, id=script_id), "utf-8")
            path.chmod(0o755)
            where = {"id": script_id, "uri": str(path), "position": position}
            runs.append({**where, "argMap": {"label": "label"}})
        config = configuration(*agents, contextScripts={"run": runs}, maxConcurrent=8)
        config["spawnlog"]["hooks"] = hooks.hooks("subagentSpawning")
        return config | {"tools": {"sessions_spawn": {"attachments": {"enabled": True}}}}

    def ran(self, asked: Sourced) -> dict[str, Any]:
        """The run of such a spawn, announced."""
        name = uuid.uuid4().hex
        agent = "json" if asked.takes_json else "text"
        session = f"agent:{agent}:{name}"
        for file in ("AGENTS.md", "TOOLS.md"):
            (self._works / file).write_text(asked.bootstrap.get(file, ""), "utf-8")
        for script_id, said in asked.scripts.items():
            # What is JSON would be read as such.
            (self._folder / f"{name}.{script_id}").write_text(f"* {said}", "utf-8", newline="")
        if asked.forks:
            assert tell(self.server.http, session).status_code == 200
        if asked.before:
            self._announced(session, agent, sharedContext=asked.before)
        body: dict[str, Any] = {
            "task": asked.task,
            "label": name,
            "contextPreamble": asked.preamble,
            "sharedContext": asked.shared,
            "attachments": [
                {"name": f"{number}.txt", "content": text}
                for number, text in enumerate(asked.attached)
            ],
            "context": "fork" if asked.forks else "isolated",
        }
        if asked.stays:
            body |= {"mode": "session", "thread": True}
        return self._announced(session, agent, **body)

    def went_on(self, run: Mapping[str, Any], message: str) -> dict[str, Any]:
        """The run of a message to the session of another one."""
        path = f"/v1/runs/{run['runId']}/messages"
        sent = self.server.http.post(path, json={"message": message})
        assert sent.is_success, sent.text
        return self._over(sent.json()["runId"])

    def given(self, run: Mapping[str, Any]) -> bytes:
        """What the process of a run got on its standard input."""
        return (self._folder / str(run["runId"])).read_bytes()

    def prompt(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """The prompt of a run as it is told."""
        answer = self.server.http.get(f"/v1/runs/{run['runId']}/prompt")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def _announced(self, session: str, agent: str, **body: Any) -> dict[str, Any]:
        requester = {"sessionKey": session, **ORIGIN}
        answer = self.server.http.post(
            "/v1/spawns", json={"requester": requester, "task": "do it", "agentId": agent, **body}
        )
        assert answer.status_code == 201, json.dumps(body) + answer.text
        return self._over(answer.json()["runId"])

    def _over(self, run_id: str) -> dict[str, Any]:
        run = self.server.run(run_id, "announced")
        assert run["outcome"] == "success", run
        return run


@contextmanager
def sourcing_house() -> Iterator[SourcingHouse]:
    """The house at work; what it recorded is gone through at the end."""
    with new_place() as place, HookServer() as hooks:
        house = SourcingHouse(place, hooks)
        with house.server:
            yield house
        must_be_whole(house.server)
