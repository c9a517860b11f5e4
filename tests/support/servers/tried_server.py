"""One story of requests, lived on a server under any configuration: for comparing what-if with what
spawning anew really gives."""

import copy
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.servers.running_server import RunningServer, configuration, scripted

MAIN, OTHER = "agent:main:main", "agent:editor:main"
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


def changed(values: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """A copy with the change."""
    copied: dict[str, Any] = copy.deepcopy(dict(values))
    change(copied)
    return copied


class TriedServer(RunningServer):
    """A server on which the story is lived."""

    def live(self, story: tuple[dict[str, Any], ...] = STORY) -> list[list[dict[str, Any]]]:
        """What came of each request: of each of its runs, how it reads, and its prompt."""
        keys: dict[str, str] = {}
        return [self._request(dict(one), keys) for one in story]

    def _request(self, request: dict[str, Any], keys: dict[str, str]) -> list[dict[str, Any]]:
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
        until = "started" if held else "announced"
        return [self._outcome(run_id, until) for run_id in ids]

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
    if [before.get(name) for name in _PLAN] != [after.get(name) for name in _PLAN]:
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
