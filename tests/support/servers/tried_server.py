"""One story of requests, lived on a server under any configuration: for comparing what-if with what
spawning anew really gives."""

import copy
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.servers.running_server import RunningServer, configuration, scripted

MAIN, OTHER, CROWD = "agent:main:main", "agent:editor:main", "agent:editor:crowd"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HELD_MS = 86_400_000
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
    values = configuration(
        {**scripted("main"), "default": True},
        scripted("writer"),
        scripted("editor"),
        {**scripted("routed"), "subagents": {"contextScripts": {"run": [router]}}},
        scripted("sleeper", steps=[{"afterMs": HELD_MS}]),
        {**scripted("isolated", providesSandbox=True), "sandbox": {"mode": "all"}},
        maxSpawnDepth=2,
        maxChildrenPerAgent=2,
        contextScripts={"run": [facts]},
    )
    values["models"] = {"providers": {"acme": {"models": [{"id": "large"}, {"id": "small"}]}}}
    values["spawnlog"]["drainSeconds"] = 0
    return values


def family_configuration(folder: Path) -> dict[str, Any]:
    """The configuration that the changes for a family are made to."""
    paths = scripts_in(folder)
    router = {"id": "router", "uri": str(paths["router"]), "agentIdOverrideKey": "agent"}
    # It names another agent to whoever is of agent `lead`.
    splits = _program(
        folder / "splits",
        """case "$*" in *lead*) echo '{"message": "m", "agent": "writer"}';;"""
        """ *) echo '{"message": "m"}';; esac""",
    )
    split = {"id": "split", "uri": str(splits), "argMap": {"by": "requesterAgentId"}}
    held = {"steps": [{"afterMs": HELD_MS}]}
    first = {"id": "slow", "uri": str(_program(folder / "slow", "sleep 0.7")), "priority": 9}
    second = {"id": "cut", "uri": str(_program(folder / "cut", "sleep 60; echo a fact"))}
    values = configuration(
        {**scripted("main"), "default": True},
        scripted("writer"),
        scripted("editor"),
        {
            **scripted("lead", **held),
            "workspace": str(_folder(folder / "here")),
            "subagents": {"contextScripts": {"run": [split]}},
        },
        {**scripted("routed"), "subagents": {"contextScripts": {"run": [router]}}},
        {**scripted("late"), "subagents": {"contextScripts": {"run": [first, second]}}},
        scripted("sleeper", **held),
        maxSpawnDepth=3,
        maxChildrenPerAgent=2,
    )
    values["models"] = {"providers": {"acme": {"models": [{"id": "large"}, {"id": "small"}]}}}
    values["spawnlog"] |= {"drainSeconds": 0, "scriptsTotalSeconds": 1}
    _folder(folder / "there")
    return values


def _program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)
    return path


def _folder(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    return path


def changed(values: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """A copy with the change."""
    copied: dict[str, Any] = copy.deepcopy(dict(values))
    change(copied)
    return copied


class TriedServer(RunningServer):
    """A server on which the story is lived."""

    def live(self, story: tuple[dict[str, Any], ...] = STORY) -> list[list[dict[str, Any]]]:
        """What came of each request: of each of its runs, how it reads, and its prompt."""
        self._keys: dict[str, str] = {}
        self._labelled: dict[str, str] = {}
        return [self._request(dict(one)) for one in story]

    def _request(self, request: dict[str, Any]) -> list[dict[str, Any]]:
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
        answer = self.spawn(requester={"sessionKey": requester}, **request)
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
        body = {"message": text, "mode": "send"}
        answer = self.http.post(f"/v1/runs/{run_id}/messages", json=body)
        assert answer.is_success, answer.text
        return [self._outcome(answer.json()["runId"], "announced")]

    def _refused(self, problem: Mapping[str, Any]) -> list[str]:
        run = self.run(problem["runId"])
        if run["batchId"] is None:
            return [run["runId"]]
        items = self.http.get("/v1/runs", params={"limit": 100, "order": "asc"}).json()["items"]
        return [one["runId"] for one in items if one.get("batchId") == run["batchId"]]

    def _outcome(self, run_id: str, until: str) -> dict[str, Any]:
        run = self.run(run_id, until)
        prompt = self.http.get(f"/v1/runs/{run_id}/prompt")
        refused = self.http.get(f"/v1/runs/{run_id}/explain").json()["refused"]
        return {
            "run": run,
            "prompt": prompt.json() if prompt.is_success else None,
            "rule": refused["rule"] if refused is not None else None,
        }

    def what_if(self, **body: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The verdicts, and the totals."""
        answer = self.http.post("/v1/what-if", json=body)
        assert answer.status_code == 200, answer.text
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert "totals" in lines[-1], lines[-1]
        return [one for one in lines if "verdict" in one], lines[-1]["totals"]


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
