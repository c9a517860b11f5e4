"""What-if gives the same results as new spawns under the other configuration."""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.launches import program
from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.databases import Databases
from tests.support.servers.server import Server, serving
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server

MAIN, CROWD = "agent:main:main", "agent:editor:crowd"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MODELS = {"providers": {"acme": {"models": [{"id": "large"}, {"id": "small"}]}}}
Change = Callable[[dict[str, Any]], object]
Verdicts = dict[str, str]

# `held` children run until the end of the story; the story waits for the others. `below` names the
# requester, and `to` the run to whose session a message goes.
STORY: tuple[dict[str, Any], ...] = (
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
    {"agentId": "writer", "task": "forks", "requester": CROWD, "context": "fork"},
    {"agentId": "writer", "task": "is in a thread", "requester": CROWD, "thread": True},
    {"agentId": "writer", "task": "a plain one", "requester": CROWD},
    {"agentId": "isolated", "task": "in a sandbox", "sandbox": "require"},
    {"agentId": "nobody", "task": "there is no such agent"},
)
OF_A = ("waits for a", "goes on from a", "refers to a")
INNER = "is asked for by the inner one"
BELOW_LEAD = ("works where its requester does", "begins as its requester")
ROUTED = ("goes to another agent", "more of the other agent")
NAMED = ("another model", "more by that model")
CROWDED = ("holds a place", "holds another")
LATE = "is told too late"
SANDBOXED = "in a sandbox"
ALL: tuple[str, ...] = ("a", *OF_A, "is told of the goal", "more of a", "leads", *BELOW_LEAD, INNER)
ALL += (*ROUTED, *NAMED, LATE, *CROWDED, SANDBOXED)


def story_configuration(folder: Path) -> dict[str, Any]:
    """Return the configuration that the changes are made to."""

    def script(name: str, text: str, **more: Any) -> dict[str, Any]:
        path = program(folder / name, f"#!/bin/sh\necho ran >> {folder}/ran\n{text}\n")
        return {"id": name, "uri": str(path), **more}

    def guided(*scripts: dict[str, Any]) -> dict[str, Any]:
        return {"contextScripts": {"run": list(scripts)}}

    for name in ("here", "there"):
        (folder / name).mkdir()
    text = '{"message": "routed", "note": "a note", "agent": "editor", "other": "writer"}'
    # It names another agent if an argument contains `lead`.
    names = """case "$*" in *lead*) echo '{"message": "m", "agent": "writer"}';;"""
    split = script("split", f"""{names} *) echo '{{"message": "m"}}';; esac""")
    held = scripted(steps=[{"afterMs": 86_400_000}])
    return configuration(
        agent("main", default=True),
        agent("writer"),
        agent("editor"),
        agent(
            "lead",
            held,
            workspace=str(folder / "here"),
            subagents=guided(split | {"argMap": {"by": "requesterAgentId"}}),
        ),
        agent(
            "routed",
            subagents=guided(script("router", f"echo '{text}'", agentIdOverrideKey="agent")),
        ),
        agent(
            "late",
            subagents=guided(
                script("slow", "sleep 0.7", priority=9), script("cut", "sleep 60; echo a fact")
            ),
        ),
        agent("sleeper", held),
        agent("isolated", scripted(providesSandbox=True), sandbox={"mode": "all"}),
        maxSpawnDepth=3,
        maxChildrenPerAgent=2,
        models=MODELS,
        drainSeconds=0,
        scriptsTotalSeconds=1,
    )


class Life:
    """The story on a server: the result of each request, None if it could not be made."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._runs: dict[str, dict[str, Any]] = {}

    def live(self) -> list[dict[str, Any] | None]:
        """Return the outcome of each request."""
        return [self._request(dict(item)) for item in STORY]

    def _request(self, request: dict[str, Any]) -> dict[str, Any] | None:
        held = request.pop("held", False)
        before = self._runs.get(request.get("to") or request.pop("below", None) or "")
        if "to" in request:
            if before is None:
                return None
            answer = self.server.send(before["runId"], request["task"])
        else:
            if "requester" not in request and request.get("task") in (*BELOW_LEAD, INNER):
                if before is None:
                    return None
                request["requester"] = before["childSessionKey"]
            answer = self.server.spawn(session=request.pop("requester", MAIN), **request)
        found = answer.json()
        if found.get("code") == "session_closed":
            return None
        if answer.is_success and "label" in request:
            self._runs[request["label"]] = found
        run = self.server.run(found["runId"], "started" if held else "announced")
        prompt = self.server.http.get(f"/v1/runs/{run['runId']}/prompt")
        refused = self.server.http.get(f"/v1/runs/{run['runId']}/explain").json()["refused"]
        return {
            "run": run,
            "prompt": prompt.json() if prompt.is_success else None,
            "rule": refused["rule"] if refused is not None else None,
        }


_PLAN = ("role", "thinking", "runTimeoutSeconds", "sandboxed", "tools", "mode", "hooks")


def real_verdict(then: Mapping[str, Any], now: Mapping[str, Any] | None) -> str:
    """Return the verdict that both lives give."""
    before = then["run"]
    was_refused = before["stage"] == "refused"
    if now is None or now["run"]["stage"] == "refused":
        return "same" if was_refused else "newly-refused"
    after = now["run"]
    if was_refused:
        return "newly-allowed"
    if before["agentId"] != after["agentId"]:
        return "different-agent"
    if any(before[name] != after[name] for name in ("modelProvider", "model")):
        return "different-model"
    # Where nothing is configured it lies below the data of each server.
    folders = [Path(item["workspaceDir"]).name for item in (before, after)]
    if folders[0] != folders[1] or any(before.get(item) != after.get(item) for item in _PLAN):
        return "different-plan"
    return "same" if _words(then["prompt"]) == _words(now["prompt"]) else "different-context"


def _words(prompt: Mapping[str, Any]) -> list[str]:
    """Return both texts without the parts of one life."""
    return [UUID.sub("…", prompt[name]) for name in ("systemPrompt", "message")]


def subagents(**values: Any) -> Change:
    """Return a change of `agents.defaults.subagents`."""
    return lambda whole: whole["agents"]["defaults"]["subagents"].update(values)


def of_script(agent_id: str, **values: Any) -> Change:
    """Return a change of the first script of an agent."""
    return lambda whole: _scripts(whole, agent_id)[0].update(values)


def _agent(whole: dict[str, Any], agent_id: str) -> dict[str, Any]:
    return next(item for item in whole["agents"]["list"] if item["id"] == agent_id)


def _scripts(whole: dict[str, Any], agent_id: str) -> list[dict[str, Any]]:
    scripts: list[dict[str, Any]] = _agent(whole, agent_id)["subagents"]["contextScripts"]["run"]
    return scripts


def with_alias(whole: dict[str, Any]) -> None:
    """Let the word that one asked for as a model be one."""
    whole["agents"]["defaults"]["models"] = {"acme/large": {"alias": "our best"}}


def in_another_folder(whole: dict[str, Any]) -> None:
    """Let agent `lead` work elsewhere."""
    lead = _agent(whole, "lead")
    lead["workspace"] = str(Path(lead["workspace"]).with_name("there"))


def with_new_script(whole: dict[str, Any]) -> None:
    """Give agent `routed` another script."""
    run = _scripts(whole, "routed")
    run.append({**run[0], "id": "another", "agentIdOverrideKey": None})


def all_are(verdict: str, *tasks: str) -> Verdicts:
    """Return this verdict for each of these tasks."""
    return dict.fromkeys(tasks, verdict)


CHANGES: dict[str, tuple[Change, Verdicts]] = {
    "nothing": (lambda _: None, {}),
    "more children": (subagents(maxChildrenPerAgent=9), {"a plain one": "newly-allowed"}),
    "fewer children": (
        subagents(maxChildrenPerAgent=1),
        all_are("newly-refused", BELOW_LEAD[1], *ROUTED, *NAMED, LATE, CROWDED[1], SANDBOXED),
    ),
    "depth": (
        subagents(maxSpawnDepth=4),
        all_are("different-context", "a", *OF_A, "is told of the goal", "leads", *BELOW_LEAD)
        | all_are("different-context", ROUTED[0], NAMED[0], LATE, *CROWDED, SANDBOXED)
        # With the deeper limit the inner run is no leaf.
        | {INNER: "different-plan"},
    ),
    "first not allowed": (
        # The shared keys of the refused run are in the prompts of all later ones.
        subagents(allowAgents=["editor", "lead", "routed", "late", "sleeper", "isolated"]),
        all_are("newly-refused", "a", *OF_A, "more of a", *NAMED, INNER)
        | all_are("not-replayable", "is told of the goal", "leads", *BELOW_LEAD, *ROUTED)
        | all_are("not-replayable", LATE, SANDBOXED),
    ),
    "model": (subagents(model="acme/small"), all_are("different-model", *ALL)),
    "alias": (with_alias, all_are("different-model", *NAMED)),
    "tools": (
        lambda whole: whole.update(tools={"subagents": {"tools": {"deny": ["exec"]}}}),
        all_are("different-plan", *ALL),
    ),
    "folder": (in_another_folder, all_are("different-plan", "leads", *BELOW_LEAD)),
    "no sandbox": (
        lambda whole: _agent(whole, "isolated").update(sandbox={"mode": "off"}),
        {SANDBOXED: "newly-refused"},
    ),
    "agent gone": (
        lambda whole: whole["agents"]["list"].remove(_agent(whole, "editor")),
        all_are("newly-refused", *OF_A, "is told of the goal")
        | all_are("different-agent", *ROUTED),
    ),
    "agent new": (
        lambda whole: whole["agents"]["list"].append(agent("nobody")),
        {"there is no such agent": "newly-allowed"},
    ),
    "slow script gone": (
        lambda whole: _scripts(whole, "late").pop(0),
        {LATE: "not-replayable"},
    ),
    "return key": (of_script("routed", returnKey="note"), {ROUTED[0]: "different-context"}),
    "no override": (
        of_script("routed", agentIdOverrideKey=None),
        all_are("different-agent", *ROUTED),
    ),
    "argument": (
        of_script("lead", argMap={"by": "requesterAgentId", "task": "task"}),
        all_are("not-replayable", "leads", *BELOW_LEAD, INNER),
    ),
    "new script": (with_new_script, all_are("not-replayable", *ROUTED)),
    "override of a fork": (
        of_script("lead", agentIdOverrideKey="agent"),
        {
            BELOW_LEAD[0]: "different-agent",
            INNER: "not-replayable",
            BELOW_LEAD[1]: "newly-refused",
        },
    ),
}


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Server]:
    with serving(databases, story_configuration) as running:
        yield running


@pytest.fixture(scope="module")
def lived(server: Server) -> list[dict[str, Any]]:
    """Return the result of each request of the story."""
    outcomes = Life(server).live()
    assert None not in outcomes
    return [outcome for outcome in outcomes if outcome is not None]


@pytest.mark.parametrize(
    "name", nightly_but(CHANGES, ["more children", "first not allowed", "override of a fork"])
)
def test_verdicts_are_what_spawning_anew_gives(
    databases: Databases, server: Server, lived: list[dict[str, Any]], name: str
) -> None:
    change, expected = CHANGES[name]
    assert server.config is not None
    values: dict[str, Any] = copy.deepcopy(json.loads(server.config.read_text("utf-8")))
    change(values)
    ran = (server.folder / "ran").read_text("utf-8")
    answer = server.http.post(
        "/v1/what-if", json={"config": values, "cascade": True, "prompts": True}
    )
    assert (server.folder / "ran").read_text("utf-8") == ran
    lines = [json.loads(line) for line in answer.text.splitlines()]
    verdicts = {run["runId"]: run for run in lines if "verdict" in run}
    assert lines[-1]["totals"]["decisions"] == len(verdicts) == len(STORY)
    with serving(databases, values) as second_server:
        anew = Life(second_server).live()
    given, wrong = {}, []
    for then, now in zip(lived, anew, strict=True):
        task, found = then["run"]["task"], verdicts[then["run"]["runId"]]
        given[task] = found["verdict"]
        if given[task] == "not-replayable":
            continue
        came = real_verdict(then, now)
        # The verdict names the rule of a refusal only if it changed.
        rule = found["rule"] or then["rule"]
        is_refused = now is not None and now["run"]["stage"] == "refused"
        if given[task] != came or (now is not None and is_refused and now["rule"] != rule):
            wrong.append((task, came, now and now["rule"], found))
    assert not wrong, json.dumps(wrong, indent=1)
    assert {task: value for task, value in given.items() if value != "same"} == expected
