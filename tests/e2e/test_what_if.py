"""What-if gives what spawning anew under the other configuration really gives."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.tried_server import (
    FAMILY,
    PREAMBLE,
    STORY,
    Change,
    TriedServer,
    base_configuration,
    changed,
    family_configuration,
    really,
)
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server


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
        self.lived = self.server.live(self.story)

    def anew(self, values: dict[str, Any]) -> list[list[dict[str, Any]]]:
        """The story under another configuration, on a log of its own."""
        with self.ground.server(values) as server:
            return server.live(self.story)


class Ground:
    """Where servers are started: each has a data directory and a database of its own."""

    def __init__(self, place: Path, databases: Databases) -> None:
        self.place = place
        self._databases = databases
        self._urls: list[str] = []

    def server(self, values: dict[str, Any]) -> TriedServer:
        """One that nobody has started yet."""
        self._urls.append(self._databases.create())
        directory = self.place / f"data-{len(self._urls)}"
        return TriedServer(directory, values, database_url=self._urls[-1])

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
    verdicts, totals = tried.server.what_if(config=tried.values, cascade=True, prompts=prompts)
    assert {one["verdict"] for one in verdicts} == {"same"}, verdicts
    assert totals["byVerdict"]["same"] == totals["decisions"] == 15


def test_what_is_known_to_be_alike_is_alike_when_it_is_looked_at(tried: Tried) -> None:
    """With prompts each decision is made, without them what is known to be alike is not."""
    wrong = []
    for name, change in {**CHANGES, "nothing": lambda _: None}.items():
        values = changed(tried.values, change)
        quickly, _ = tried.server.what_if(config=values)
        wholly, _ = tried.server.what_if(config=values, prompts=True)
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
    verdicts, _ = tried.server.what_if(config=values, cascade=True, prompts=True)
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
    verdicts, _ = family.server.what_if(config=values, cascade=True, prompts=True)
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
        verdicts, _ = family.server.what_if(config=values, cascade=cascade)
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
                verdicts, _ = told.server.what_if(config=values, prompts=prompts)
                found = {tasks[one["runId"]]: one for one in verdicts}
                other = {task: one["verdict"] for task, one in found.items()}
                composed = all_are("not-replayable", *CREATED) if prompts else {}
                same = all_are("same", *found)
                assert other == same | composed | expected, (name, prompts)
                for one in verdicts:
                    is_named = any("erased" in each for each in one["missing"])
                    assert is_named == (one["verdict"] == "not-replayable"), one
