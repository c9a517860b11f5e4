"""What-if gives what spawning anew under the other configuration really gives."""

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.launches import program
from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.server import Server
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server


MAIN, OTHER, CROWD = "agent:main:main", "agent:editor:main", "agent:editor:crowd"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HELD_MS = 86_400_000
MODELS = {"providers": {"acme": {"models": [{"id": "large"}, {"id": "small"}]}}}
PREAMBLE = "What was said before. " * 40
Change = Callable[[dict[str, Any]], None]

# Who asks for what; `held` children are at work until the end, others are waited for.
STORY: tuple[dict[str, Any], ...] = (
    {"agentId": "writer", "task": "write", "label": "first", "contextPreamble": PREAMBLE},
    {"agentId": "writer", "task": "think hard", "thinking": "high"},
    {"agentId": "writer", "task": "another model", "model": "acme/large"},
    {"agentId": "routed", "task": "goes to another agent"},
    {"agentId": "nobody", "task": "there is no such agent"},
    {"agentId": "isolated", "task": "in a sandbox", "sandbox": "require"},
    {"task": "no agent is named"},
    {"task": ["one of two", "two of two"], "parallel": True, "agentId": "writer"},
    {"agentId": "sleeper", "task": "holds a place", "label": "held-1", "held": True},
    {"agentId": "writer", "task": "below the first", "below": "held-1"},
    {"agentId": "sleeper", "task": "holds another", "label": "held-2", "held": True},
    {"agentId": "sleeper", "task": "one too many", "label": "held-3", "held": True},
    {"agentId": "writer", "task": "of somebody else", "requester": OTHER},
    {"task": "its own agent", "requester": OTHER},
)


# Of a family: what one shares, others wait for, and what is behind the plan of who asks.
FAMILY: tuple[dict[str, Any], ...] = (
    {"agentId": "writer", "task": "a", "label": "a", "sharedContext": {"goal": "A GOAL"}},
    {"agentId": "editor", "task": "waits for a", "dependsOn": ["a"]},
    {"agentId": "editor", "task": "goes on from a", "chainAfter": "a"},
    {"agentId": "editor", "task": "refers to a", "sharedContext": {"$a": "reference"}},
    {"agentId": "editor", "task": "is told of the goal"},
    {"to": "a", "task": "more of a"},
    {"agentId": "lead", "task": "leads", "label": "lead", "held": True},
    {"task": "works where its requester does", "below": "lead", "label": "inner", "held": True},
    {"agentId": "writer", "task": "is asked for by the inner one", "below": "inner"},
    {"task": "begins as its requester", "below": "lead", "context": "fork", "held": True},
    {"agentId": "routed", "task": "goes to another agent", "label": "routed"},
    {"to": "routed", "task": "more of the other agent"},
    {"agentId": "writer", "task": "another model", "label": "named", "model": "our best"},
    {"to": "named", "task": "more by that model"},
    {"agentId": "late", "task": "is told too late"},
    {"agentId": "sleeper", "task": "holds a place", "requester": CROWD, "held": True},
    {"agentId": "sleeper", "task": "holds another", "requester": CROWD, "held": True},
    {
        "agentId": "writer",
        "task": "attaches a file",
        "requester": CROWD,
        "attachments": [{"name": "a.txt", "content": "a"}],
    },
    {"agentId": "writer", "task": "forks", "requester": CROWD, "context": "fork"},
    {"task": "forks nothing", "requester": CROWD, "context": "fork"},
    {"agentId": "writer", "task": "is in a thread", "requester": CROWD, "thread": True},
    {"agentId": "writer", "task": "waits", "requester": CROWD, "dependsOn": ["nobody"]},
    {
        "agentId": "writer",
        "task": "refers",
        "requester": CROWD,
        "sharedContext": {"$nobody": "reference"},
    },
    {"agentId": "writer", "task": "a plain one", "requester": CROWD},
)


def scripts_in(folder: Path) -> dict[str, Path]:
    """Programs that note that they were run."""
    folder.mkdir(exist_ok=True)
    texts = {
        "facts": '{"message": "a fact", "note": "a note", "choice": "editor"}',
        "router": '{"message": "routed", "agent": "editor", "other": "writer"}',
    }
    paths = {}
    for name, text in texts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\necho ran >> {folder}/ran\nprintf '%s' '{text}'\n", "utf-8")
        path.chmod(0o755)
        paths[name] = path
    return paths


def base_configuration(folder: Path) -> dict[str, Any]:
    """The configuration that the changes are made to."""
    paths = scripts_in(folder)
    facts = {"id": "facts", "uri": str(paths["facts"]), "argMap": {"task": "task"}, "priority": 5}
    router = {"id": "router", "uri": str(paths["router"]), "agentIdOverrideKey": "agent"}
    return configuration(
        agent("main", default=True),
        agent("writer"),
        agent("editor"),
        agent("routed", subagents={"contextScripts": {"run": [router]}}),
        agent("sleeper", scripted(steps=[{"afterMs": HELD_MS}])),
        agent("isolated", scripted(providesSandbox=True), sandbox={"mode": "all"}),
        maxSpawnDepth=2,
        maxChildrenPerAgent=2,
        contextScripts={"run": [facts]},
        models=MODELS,
        drainSeconds=0,
    )


def family_configuration(folder: Path) -> dict[str, Any]:
    """The configuration that the changes for a family are made to."""
    paths = scripts_in(folder)
    router = {"id": "router", "uri": str(paths["router"]), "agentIdOverrideKey": "agent"}
    # It names another agent to whoever is of agent `lead`.
    splits = program(
        folder / "splits",
        """#!/bin/sh
case "$*" in *lead*) echo '{"message": "m", "agent": "writer"}';;"""
        """ *) echo '{"message": "m"}';; esac
""",
    )
    split = {"id": "split", "uri": str(splits), "argMap": {"by": "requesterAgentId"}}
    _folder(folder / "there")
    held = {"steps": [{"afterMs": HELD_MS}]}
    first = {
        "id": "slow",
        "uri": str(program(folder / "slow", "#!/bin/sh\nsleep 0.7\n")),
        "priority": 9,
    }
    second = {
        "id": "cut",
        "uri": str(program(folder / "cut", "#!/bin/sh\nsleep 60; echo a fact\n")),
    }
    return configuration(
        agent("main", default=True),
        agent("writer"),
        agent("editor"),
        agent(
            "lead",
            scripted(**held),
            workspace=str(_folder(folder / "here")),
            subagents={"contextScripts": {"run": [split]}},
        ),
        agent("routed", subagents={"contextScripts": {"run": [router]}}),
        agent("late", subagents={"contextScripts": {"run": [first, second]}}),
        agent("sleeper", scripted(**held)),
        maxSpawnDepth=3,
        maxChildrenPerAgent=2,
        models=MODELS,
        drainSeconds=0,
        scriptsTotalSeconds=1,
    )


def _folder(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    return path


def changed(values: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """A copy with the change."""
    copied: dict[str, Any] = copy.deepcopy(dict(values))
    change(copied)
    return copied


def live(server: Server, story: tuple[dict[str, Any], ...] = STORY) -> list[list[dict[str, Any]]]:
    """Live a story on a server. Return what came of each request: of each of its runs, how it
    reads, and its prompt."""
    life = _Life(server)
    return [life.request(dict(one)) for one in story]


def what_if(server: Server, **body: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the verdicts, and the totals."""
    answer = server.http.post("/v1/what-if", json=body)
    assert answer.status_code == 200, answer.text
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert "totals" in lines[-1], lines[-1]
    return [one for one in lines if "verdict" in one], lines[-1]["totals"]


class _Life:
    def __init__(self, server: Server) -> None:
        self.server = server
        self._keys: dict[str, str] = {}
        self._labelled: dict[str, str] = {}

    def request(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        if "to" in request:
            return self._message(request["to"], request["task"])
        keys = self._keys
        held, below = request.pop("held", False), request.pop("below", None)
        requester = request.pop("requester", MAIN)
        if below is not None:
            # Where it was refused there is nobody who could ask.
            requester = keys.get(below)
            if requester is None:
                return []
        answer = self.server.spawn(session=requester, **request)
        found = answer.json()
        if found.get("code") == "session_closed":
            return []
        ids = [one["runId"] for one in found["runs"]] if answer.is_success else self._refused(found)
        if answer.is_success and "label" in request:
            keys[request["label"]] = found["childSessionKey"]
            self._labelled[request["label"]] = found["runId"]
        until = "started" if held else "announced"
        return [self._outcome(run_id, until) for run_id in ids]

    def _message(self, label: str, text: str) -> list[dict[str, Any]]:
        """To the session of a run, which there is only where that was not refused."""
        run_id = self._labelled.get(label)
        if run_id is None:
            return []
        answer = self.server.send(run_id, text)
        assert answer.is_success, answer.text
        return [self._outcome(answer.json()["runId"], "announced")]

    def _refused(self, problem: Mapping[str, Any]) -> list[str]:
        run = self.server.run(problem["runId"])
        if run["batchId"] is None:
            return [run["runId"]]
        items = self.server.http.get("/v1/runs", params={"limit": 100, "order": "asc"}).json()[
            "items"
        ]
        return [one["runId"] for one in items if one.get("batchId") == run["batchId"]]

    def _outcome(self, run_id: str, until: str) -> dict[str, Any]:
        run = self.server.run(run_id, until)
        prompt = self.server.http.get(f"/v1/runs/{run_id}/prompt")
        refused = self.server.http.get(f"/v1/runs/{run_id}/explain").json()["refused"]
        return {
            "run": run,
            "prompt": prompt.json() if prompt.is_success else None,
            "rule": refused["rule"] if refused is not None else None,
        }


# What really became of a request under another configuration.

_PLAN = ("role", "thinking", "runTimeoutSeconds", "sandboxed", "tools", "mode", "hooks")


def really(then: Mapping[str, Any], now: Mapping[str, Any] | None) -> tuple[str, str | None]:
    """The verdict by looking at both lives, and the rule of a refusal that came or went."""
    before = then["run"]
    if now is None:
        return ("newly-refused", None) if before["stage"] != "refused" else ("same", None)
    after = now["run"]
    refused = [one["stage"] == "refused" for one in (before, after)]
    if refused == [True, True]:
        return "same", None
    if refused[1]:
        return "newly-refused", now["rule"]
    if refused[0]:
        return "newly-allowed", then["rule"]
    if before["agentId"] != after["agentId"]:
        return "different-agent", None
    if _model(before) != _model(after):
        return "different-model", None
    plans = [[one.get(name) for name in _PLAN] for one in (before, after)]
    # Where nothing is configured it lies below the data of each server.
    folders = [Path(one["workspaceDir"]).name for one in (before, after)]
    if plans[0] != plans[1] or folders[0] != folders[1]:
        return "different-plan", None
    if _words(then["prompt"]) != _words(now["prompt"]):
        return "different-context", None
    return "same", None


def _model(run: Mapping[str, Any]) -> tuple[Any, Any]:
    return run["modelProvider"], run["model"]


def _words(prompt: Mapping[str, Any] | None) -> list[str] | None:
    """Both texts without what is of one life alone."""
    if prompt is None:
        return None
    return [UUID.sub("…", prompt[name]) for name in ("systemPrompt", "message")]


class Tried:
    """The server that a story was lived on, and what came of it."""

    def __init__(
        self, ground: "Ground", values: dict[str, Any], story: tuple[dict[str, Any], ...]
    ) -> None:
        self.ground = ground
        self.place = ground.place
        self.values = values
        self.story = story
        self.server = ground.server(values)

    def begin(self) -> None:
        """Live the story."""
        self.server.start()
        self.lived = live(self.server, self.story)

    def anew(self, values: dict[str, Any]) -> list[list[dict[str, Any]]]:
        """The story under another configuration, on a log of its own."""
        with self.ground.server(values) as server:
            return live(server, self.story)


class Ground:
    """Where servers are started: each has a data directory and a database of its own."""

    def __init__(self, place: Path, databases: Databases) -> None:
        self.place = place
        self._databases = databases
        self._urls: list[str] = []

    def server(self, values: dict[str, Any]) -> Server:
        """One that nobody has started yet."""
        self._urls.append(self._databases.create())
        directory = self.place / f"data-{len(self._urls)}"
        return Server(directory, values, database_url=self._urls[-1])

    def forget(self) -> None:
        """Drop what the servers wrote."""
        for url in self._urls:
            self._databases.drop(url)


Living = Callable[
    [Callable[[Path], dict[str, Any]], tuple[dict[str, Any], ...]],
    AbstractContextManager[Tried],
]


@pytest.fixture(scope="module")
def lived(databases: Databases) -> Living:
    """Makes a server on which a story was lived."""

    @contextmanager
    def living(
        configured: Callable[[Path], dict[str, Any]], story: tuple[dict[str, Any], ...]
    ) -> Iterator[Tried]:
        with new_place() as place:
            ground = Ground(place, databases)
            one = Tried(ground, configured(place / "scripts"), story)
            one.begin()
            try:
                yield one
            finally:
                one.server.stop()
            ground.forget()

    return living


@pytest.fixture(scope="module")
def tried(lived: Living) -> Iterator[Tried]:
    with lived(base_configuration, STORY) as one:
        yield one


@pytest.fixture(scope="module")
def family(lived: Living) -> Iterator[Tried]:
    with lived(family_configuration, FAMILY) as one:
        yield one


def subagents(**values: Any) -> Change:
    """A change of `agents.defaults.subagents`."""
    return lambda whole: whole["agents"]["defaults"]["subagents"].update(values)


def of_agent(agent_id: str, **values: Any) -> Change:
    """A change of one agent."""

    def change(whole: dict[str, Any]) -> None:
        agent = next(one for one in whole["agents"]["list"] if one["id"] == agent_id)
        for name, value in values.items():
            if isinstance(value, dict) and isinstance(agent.get(name), dict):
                agent[name].update(value)
            else:
                agent[name] = value

    return change


def of_script(**values: Any) -> Change:
    """A change of the default script `facts`."""

    def change(whole: dict[str, Any]) -> None:
        whole["agents"]["defaults"]["subagents"]["contextScripts"]["run"][0].update(values)

    return change


def of_own_script(agent_id: str, **values: Any) -> Change:
    """The default script, changed for one agent."""

    def change(whole: dict[str, Any]) -> None:
        (default,) = whole["agents"]["defaults"]["subagents"]["contextScripts"]["run"]
        own = {"contextScripts": {"run": [{**default, **values}]}}
        of_agent(agent_id, subagents=own)(whole)

    return change


def of_router(**values: Any) -> Change:
    """A change of the script of agent `routed`."""

    def change(whole: dict[str, Any]) -> None:
        agent = next(one for one in whole["agents"]["list"] if one["id"] == "routed")
        agent["subagents"]["contextScripts"]["run"][0].update(values)

    return change


def without_agent(agent_id: str) -> Change:
    """One agent less."""

    def change(whole: dict[str, Any]) -> None:
        listed = whole["agents"]["list"]
        whole["agents"]["list"] = [one for one in listed if one["id"] != agent_id]

    return change


def with_agent(agent_id: str) -> Change:
    """One agent more."""
    agent = {"id": agent_id, "runtime": {"type": "scripted", "result": "done"}}
    return lambda whole: whole["agents"]["list"].append(agent)


def tools(**values: Any) -> Change:
    """The tools of children."""
    return lambda whole: whole.update(tools={"subagents": {"tools": values}})


def without_runtime(whole: dict[str, Any]) -> None:
    """Agent `writer` can be executed by nothing."""
    for one in whole["agents"]["list"]:
        if one["id"] == "writer":
            del one["runtime"]


CHANGES: dict[str, Change] = {
    "depth 1": subagents(maxSpawnDepth=1),
    "depth 3": subagents(maxSpawnDepth=3),
    "fewer children": subagents(maxChildrenPerAgent=1),
    "more children": subagents(maxChildrenPerAgent=5),
    "allow one": subagents(allowAgents=["writer"]),
    "allow none of the writer": of_agent("editor", subagents={"allowAgents": ["main"]}),
    "agent required": subagents(requireAgentId=True),
    "model": subagents(model="acme/small"),
    "model of an agent": of_agent("writer", subagents={"model": "acme/large"}),
    "model that is not served": of_agent("writer", runtime={"models": ["acme/small"]}),
    "thinking": subagents(thinking="low"),
    "thinking that is none": subagents(thinking="very"),
    "timeout": subagents(runTimeoutSeconds=77),
    "tools": tools(deny=["exec"]),
    "tools without spawning": tools(deny=["sessions_spawn"]),
    "sandbox of all": lambda whole: whole["agents"]["defaults"].update(sandbox={"mode": "all"}),
    "no sandbox": of_agent("isolated", sandbox={"mode": "off"}),
    "agent gone": without_agent("editor"),
    "agent new": with_agent("nobody"),
    "preamble shorter": subagents(contextPreambleMaxChars=100),
    "script in front": of_script(position="prepend"),
    "script later": of_script(priority=-5),
    "script ignored": of_agent("writer", subagents={"contextScripts": {"ignore": ["facts"]}}),
    "another return key": of_script(returnKey="note"),
    "a return key that is not there": of_script(returnKey="nowhere"),
    "an error key": of_script(errorKey="note"),
    "an error that stops": of_script(errorKey="note", errorHandling="stop"),
    "an override key": of_own_script("writer", agentIdOverrideKey="choice"),
    "another override": of_router(agentIdOverrideKey="other"),
    "no override": of_router(agentIdOverrideKey=None),
    "no runtime": without_runtime,
}
GIVEN: dict[str, dict[str, int]] = {
    "depth 1": {"different-plan": 12, "newly-refused": 1},
    "depth 3": {"different-context": 12, "different-plan": 1},
    "fewer children": {"newly-refused": 3},
    "more children": {"newly-allowed": 1},
    "allow one": {"newly-refused": 5},
    "allow none of the writer": {"newly-refused": 1},
    "agent required": {"newly-refused": 2},
    "model": {"different-model": 12},
    "model of an agent": {"different-model": 6},
    "model that is not served": {"different-model": 1},
    "thinking": {"different-plan": 12},
    "thinking that is none": {"newly-refused": 12},
    "timeout": {"different-plan": 13},
    "tools": {"different-plan": 13},
    "tools without spawning": {"different-plan": 12, "newly-refused": 1},
    "sandbox of all": {"newly-refused": 12},
    "no sandbox": {"newly-refused": 1},
    "agent gone": {"different-agent": 1, "newly-refused": 1},
    "agent new": {"newly-allowed": 1, "not-replayable": 4},
    "preamble shorter": {"different-context": 1},
    "script in front": {"different-context": 13},
    "script later": {"different-context": 1},
    "script ignored": {"different-context": 7},
    "another return key": {"different-context": 13},
    "a return key that is not there": {"different-context": 13},
    "an error key": {"different-context": 13},
    "an error that stops": {"different-context": 12, "different-agent": 1},
    "an override key": {"different-agent": 7},
    "another override": {"different-agent": 1},
    "no override": {"different-agent": 1},
    "no runtime": {"newly-refused": 7},
}
"""How many verdicts of each name a change gives, but for `same`."""


@pytest.mark.parametrize("prompts", [False, True])
def test_the_same_configuration_gives_the_same_for_every_decision(
    tried: Tried, prompts: bool
) -> None:
    verdicts, totals = what_if(tried.server, config=tried.values, cascade=True, prompts=prompts)
    assert {one["verdict"] for one in verdicts} == {"same"}, verdicts
    assert totals["byVerdict"]["same"] == totals["decisions"] == 15


def test_what_is_known_to_be_alike_is_alike_when_it_is_looked_at(tried: Tried) -> None:
    """With prompts each decision is made, without them what is known to be alike is not."""
    wrong = []
    for name, change in {**CHANGES, "nothing": lambda _: None}.items():
        values = changed(tried.values, change)
        quickly, _ = what_if(tried.server, config=values)
        wholly, _ = what_if(tried.server, config=values, prompts=True)
        for quick, whole in zip(quickly, wholly, strict=True):
            of_prompt = (whole["difference"] or {"field": ""})["field"].startswith("/prompt/")
            if quick != whole and not (of_prompt and quick["verdict"] == "same"):
                wrong.append((name, quick, whole))
    assert not wrong, json.dumps(wrong, indent=1)


@pytest.mark.parametrize(
    "name", nightly_but(CHANGES, ["more children", "model", "another return key", "no override"])
)
def test_it_gives_what_spawning_anew_gives(tried: Tried, name: str) -> None:
    values = changed(tried.values, CHANGES[name])
    ran = (tried.place / "scripts" / "ran").read_text("utf-8")
    verdicts, _ = what_if(tried.server, config=values, cascade=True, prompts=True)
    assert (tried.place / "scripts" / "ran").read_text("utf-8") == ran
    given = Counter(one["verdict"] for one in verdicts)
    assert given == {"same": len(verdicts) - sum(GIVEN[name].values()), **GIVEN[name]}
    by_run = {one["runId"]: one for one in verdicts}
    anew = tried.anew(values)
    wrong = []
    for then, now in zip(tried.lived, anew, strict=True):
        rules: list[list[str | None]] = [[], []]
        for index, one in enumerate(then):
            verdict = by_run[one["run"]["runId"]]
            if not now and verdict["verdict"] == "different-agent":
                # Whoever asks is another agent, too, and not at work any more.
                continue
            expected, rule = really(one, now[index] if index < len(now) else None)
            found = verdict["verdict"]
            if "newly allowed, would have run" in str(verdict["missing"]):
                # It is said that this cannot be known.
                continue
            if found != expected:
                wrong.append((one["run"]["task"], expected, rule, verdict))
            rules[0].append(rule)
            rules[1].append(verdict["rule"] if rule is not None else None)
        # Which of a batch is looked at first, and so is the one that the others go with, may be
        # either.
        if sorted(map(str, rules[0])) != sorted(map(str, rules[1])):
            wrong.append((then[0]["run"]["task"], "rules", *rules))
    assert not wrong, json.dumps(wrong, indent=1)


# A family. Each change with the verdicts that are not `same`, by the task of what they are of.


def of_split(**values: Any) -> Change:
    """A change of the script of agent `lead`."""

    def change(whole: dict[str, Any]) -> None:
        agent = next(one for one in whole["agents"]["list"] if one["id"] == "lead")
        agent["subagents"]["contextScripts"]["run"][0].update(values)

    return change


def without_slow_script(whole: dict[str, Any]) -> None:
    """Agent `late` is told by the other one alone, which has time now."""
    agent = next(one for one in whole["agents"]["list"] if one["id"] == "late")
    agent["subagents"]["contextScripts"]["run"].pop(0)


def with_alias(whole: dict[str, Any]) -> None:
    """The model that one asked for by a word that was none."""
    whole["agents"]["defaults"]["models"] = {"acme/large": {"alias": "our best"}}


def in_another_folder(whole: dict[str, Any]) -> None:
    """Agent `lead` has one."""
    agent = next(one for one in whole["agents"]["list"] if one["id"] == "lead")
    agent["workspace"] = str(Path(agent["workspace"]).parent / "there")


def with_new_script(whole: dict[str, Any]) -> None:
    """Agent `routed` is told by another one, too."""
    agent = next(one for one in whole["agents"]["list"] if one["id"] == "routed")
    run = agent["subagents"]["contextScripts"]["run"]
    run.append({**run[0], "id": "another", "agentIdOverrideKey": None})


Verdicts = dict[str, str]
UNBOUND = ("waits", "refers")
INNER = "is asked for by the inner one"
BELOW_LEAD = ("works where its requester does", "begins as its requester")
OF_A = ("waits for a", "goes on from a", "refers to a")
ROUTED = ("goes to another agent", "more of the other agent")
NAMED = ("another model", "more by that model")


def all_are(verdict: str, *tasks: str) -> Verdicts:
    """Each of these is that."""
    return dict.fromkeys(tasks, verdict)


FAMILY_CHANGES: dict[str, tuple[Change, Verdicts]] = {
    "nothing": (lambda _: None, {}),
    "more children": (subagents(maxChildrenPerAgent=9), {"a plain one": "newly-allowed"}),
    "a slow script gone": (
        without_slow_script,
        {"is told too late": "not-replayable"},
    ),
    "depth 4": (
        subagents(maxSpawnDepth=4),
        all_are("different-context", "a", *OF_A, "is told of the goal", "leads", *BELOW_LEAD)
        | all_are("different-context", ROUTED[0], NAMED[0], "is told too late")
        # It would be no leaf any more.
        | {INNER: "different-plan"}
        | all_are("different-context", "holds a place", "holds another"),
    ),
    # What the one that is refused shares is in the prompt of all that come behind it.
    "the first not allowed": (
        subagents(allowAgents=["editor", "lead", "routed", "late", "sleeper"]),
        all_are("newly-refused", "a", *OF_A, "more of a", *NAMED, INNER)
        | all_are("not-replayable", "is told of the goal", "leads", *BELOW_LEAD, *ROUTED)
        | all_are("not-replayable", "is told too late"),
    ),
    "fewer children": (
        subagents(maxChildrenPerAgent=1),
        all_are("newly-refused", BELOW_LEAD[1], *ROUTED, *NAMED, "is told too late")
        | all_are("newly-refused", "holds another"),
    ),
    "an alias": (with_alias, all_are("different-model", *NAMED)),
    "another folder": (in_another_folder, all_are("different-plan", "leads", *BELOW_LEAD)),
    "no override": (of_router(agentIdOverrideKey=None), all_are("different-agent", *ROUTED)),
    "another override": (
        of_router(agentIdOverrideKey="other"),
        all_are("different-agent", *ROUTED),
    ),
    "agent gone": (
        without_agent("editor"),
        all_are("newly-refused", *OF_A, "is told of the goal")
        | all_are("different-agent", *ROUTED),
    ),
    "another argument": (
        of_split(argMap={"by": "requesterAgentId", "task": "task"}),
        all_are("not-replayable", "leads", *BELOW_LEAD, INNER),
    ),
    "another format": (
        of_split(format="json"),
        all_are("not-replayable", "leads", *BELOW_LEAD, INNER),
    ),
    "a new script": (with_new_script, all_are("not-replayable", *ROUTED)),
    "an override of a fork": (
        of_split(agentIdOverrideKey="agent"),
        {
            BELOW_LEAD[0]: "different-agent",
            INNER: "not-replayable",
            BELOW_LEAD[1]: "newly-refused",
        },
    ),
}


@pytest.mark.parametrize("name", nightly_but(FAMILY_CHANGES, ["an override of a fork"]))
def test_in_a_family_too_it_gives_what_spawning_anew_gives(family: Tried, name: str) -> None:
    change, expected = FAMILY_CHANGES[name]
    values = changed(family.values, change)
    verdicts, _ = what_if(family.server, config=values, cascade=True, prompts=True)
    by_run = {one["runId"]: one for one in verdicts}
    given = {}
    wrong = []
    for then, now in zip(family.lived, family.anew(values), strict=True):
        (one,) = then
        task, verdict = one["run"]["task"], by_run[one["run"]["runId"]]
        given[task] = verdict["verdict"]
        if verdict["verdict"] == "not-replayable":
            continue
        came, rule = really(one, now[0] if now else None)
        refused = [each["rule"] for each in now if each["run"]["stage"] == "refused"]
        if task in UNBOUND and came == "same":
            # Which rule about names it is decides nothing, and is not told.
            refused = []
        elif came == "same" and one["rule"] is not None:
            # Refused either way: by the rule that is told, which is the recorded one else.
            rule, refused = refused[0], [verdict["rule"] or one["rule"]]
        elif came == "newly-refused":
            refused = [verdict["rule"]]
        if verdict["verdict"] != came or (refused and refused != [rule]):
            wrong.append((task, came, rule, verdict))
    assert not wrong, json.dumps(wrong, indent=1)
    assert {task: one for task, one in given.items() if one != "same"} == expected


def test_nobody_knows_what_another_agent_would_ask_for(family: Tried) -> None:
    """Agent `writer` would be in the place of whoever asked."""
    values = changed(family.values, of_split(agentIdOverrideKey="agent"))
    run_id = next(one["run"]["runId"] for (one,) in family.lived if one["run"]["task"] == INNER)
    for cascade, expected in ((False, "same"), (True, "not-replayable")):
        verdicts, _ = what_if(family.server, config=values, cascade=cascade)
        (found,) = [one for one in verdicts if one["runId"] == run_id]
        assert found["verdict"] == expected
    assert found["missing"] == [
        'whether agent "writer", in the place of its requester, would ask for it'
    ]


# Texts that were erased.

TOLD: tuple[dict[str, Any], ...] = (
    {"agentId": "writer", "task": "is told much", "contextPreamble": PREAMBLE},
    {"agentId": "writer", "task": "asks for a model", "model": "our best"},
    {"agentId": "isolated", "task": "a plain one", "sandbox": "require"},
    {"agentId": "nobody", "task": "there is no such agent"},
)
CREATED = ("is told much", "asks for a model", "a plain one")
FORGOTTEN: dict[str, tuple[Change, Verdicts]] = {
    "nothing": (lambda _: None, {}),
    "another return key": (
        of_script(returnKey="note"),
        all_are("not-replayable", *CREATED, "there is no such agent"),
    ),
    "preamble shorter": (
        subagents(contextPreambleMaxChars=100),
        all_are("not-replayable", "is told much"),
    ),
    "an alias": (with_alias, all_are("not-replayable", "asks for a model")),
    "another model": (subagents(model="acme/small"), all_are("different-model", *CREATED)),
}


def test_what_depends_on_a_text_that_was_erased_is_named(lived: Living) -> None:
    """And nothing else is, but that each prompt does."""
    with lived(base_configuration, TOLD) as told:
        for (one,) in told.lived:
            told.server.erase_session(one["run"]["sessionId"])
        tasks = {one["run"]["runId"]: one["run"]["task"] for (one,) in told.lived}
        for name, (change, expected) in FORGOTTEN.items():
            values = changed(told.values, change)
            for prompts in (False, True):
                verdicts, _ = what_if(told.server, config=values, prompts=prompts)
                found = {tasks[one["runId"]]: one for one in verdicts}
                other = {task: one["verdict"] for task, one in found.items()}
                composed = all_are("not-replayable", *CREATED) if prompts else {}
                same = all_are("same", *found)
                assert other == same | composed | expected, (name, prompts)
                for one in verdicts:
                    is_named = any("erased" in each for each in one["missing"])
                    assert is_named == (one["verdict"] == "not-replayable"), one
