"""Server on which every text from another source is hostile."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.servers.configurations import EXTERNAL, agent, configuration, scripted
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script><b>bold</b>"
TURNED = "safe\u202egnp.exe\u202c and \u2066hidden\u2069"
CONTROL = "a\u0007b\u001b[31mc\u007fd\u0085e"
RIGHT_TO_LEFT = "\u05e9\u05dc\u05d5\u05dd (1) 2"
HOSTILE = f"{MARKUP} {TURNED} {CONTROL} {RIGHT_TO_LEFT}"
ONE_LINE = f"{MARKUP} {RIGHT_TO_LEFT}"
"""Hostile text without control characters."""
LONG = HOSTILE + "x" * 1_000_000
ENTRIES = [
    {"kind": "message", "role": "assistant", "text": HOSTILE},
    {"kind": "tool", "name": ONE_LINE, "input": {HOSTILE: HOSTILE}, "output": HOSTILE},
    {"kind": "progress", "text": HOSTILE},
    {"kind": "text", "text": HOSTILE},
]
FAMILY = "agent:main:hostile"
HELD_MS = 600_000

_SCRIPT = '#!/bin/sh\ncat "$0.error" >&2\ncat "$0.output"\n'


@dataclass(frozen=True)
class HostileRecord:
    """The server, and its runs by the hostile part."""

    server: Server
    runs: dict[str, str]


@contextmanager
def hostile_server(made: Path) -> Iterator[HostileRecord]:
    """Yield a server with a run for each way to record a foreign text."""
    with new_place() as place, HookServer() as outside:
        outside.replies("gateway", Reply(500, HOSTILE.encode()))
        data = copied(made, place / "data")
        with Server(data, hostile_configuration(outside, place)) as server:
            runs = record(server)
            yield HostileRecord(server, runs)
            for run_id in (runs["held"], runs["told"]):
                server.http.post(f"/v1/runs/{run_id}/stop", json={"reason": "over"})
                server.run(run_id, "announced")


def hostile_configuration(outside: HookServer, place: Path) -> dict[str, Any]:
    """Return a configuration with hostile names, results, errors, tool calls and script outputs."""
    scripts = [
        _script(place, "content", {"agent": HOSTILE, "message": HOSTILE}),
        _script(place, "keys", {HOSTILE: {HOSTILE: HOSTILE}}),
        _script(place, "wrong", {"error": HOSTILE}),
    ]
    tool = {"name": ONE_LINE, "input": {HOSTILE: LONG[:300_000]}, "output": [HOSTILE]}
    return configuration(
        agent("main", default=True, name=ONE_LINE),
        agent("talker", scripted(steps=[{"message": HOSTILE}, {"tool": tool}], result=HOSTILE)),
        agent("failing", scripted(outcome="error", error=HOSTILE)),
        agent("sleeper", scripted(steps=[{"afterMs": HELD_MS}])),
        agent("reader", subagents={"contextScripts": {"run": scripts}}),
        agent("elsewhere", EXTERNAL),
        maxChildrenPerAgent=20,
        announce={"webhooks": [outside.webhook("gateway")], "attemptsMax": 1},
    )


def _script(place: Path, name: str, output: dict[str, Any]) -> dict[str, Any]:
    path = place / f"{name}.sh"
    path.write_text(_SCRIPT, "utf-8")
    path.chmod(0o700)
    path.with_name(f"{path.name}.output").write_text(json.dumps(output), "utf-8")
    path.with_name(f"{path.name}.error").write_text(HOSTILE, "utf-8")
    return {"id": name, "uri": str(path), "agentIdOverrideKey": "agent", "log": "verbose"}


def record(server: Server) -> dict[str, str]:
    """Request all of it. Return the runs by the hostile part."""

    def spawned(agent_id: str, **body: Any) -> str:
        requester = {"sessionKey": FAMILY, "channel": HOSTILE, "to": HOSTILE}
        answer = server.spawn(HOSTILE, agentId=agent_id, requester=requester, **body)
        assert "runId" in answer.json(), answer.text[:500]
        return str(answer.json()["runId"])

    def posted(path: str, **body: Any) -> dict[str, Any]:
        answer = server.http.post(path, json=body)
        assert answer.is_success, answer.text[:500]
        return dict(answer.json())

    shared = {ONE_LINE: HOSTILE, "long": HOSTILE + "x" * 60_000}
    runs = {
        "talker": spawned(
            "talker", label=ONE_LINE, contextPreamble=HOSTILE, sharedContext={**shared}
        ),
        "failing": spawned("failing"),
        "scripts": spawned("reader"),
        "refused": spawned(HOSTILE),
        "long": str(server.spawn(LONG, agentId="talker").json()["runId"]),
    }
    for run_id in runs.values():
        server.run(run_id, "announced")
    runs["external"] = spawned("elsewhere")
    executed = f"/v1/runs/{runs['external']}"
    wait_for("a run to claim", lambda: server.run(runs["external"])["stage"] == "queued")
    epoch = posted(f"{executed}/claim", executor="elsewhere")["epoch"]
    posted(f"{executed}/transcript", epoch=epoch, first=1, entries=ENTRIES)
    posted(f"{executed}/end", epoch=epoch, outcome="error", result=HOSTILE, error=HOSTILE)
    server.run(runs["external"], "announced")
    held, stopped = spawned("sleeper"), spawned("sleeper")
    for run_id in (held, stopped):
        server.run(run_id, "started")
    posted(f"/v1/runs/{stopped}/stop", reason=HOSTILE)
    server.run(stopped, "announced")
    runs["held"], runs["stopped"] = held, stopped
    runs["told"] = str(posted(f"/v1/runs/{held}/messages", message=HOSTILE, mode="steer")["runId"])
    parked = wait_for(
        "webhooks that are given up",
        lambda: server.http.get("/v1/announcements", params={"state": "parked"}).json()["items"],
    )
    posted(f"/v1/announcements/{parked[0]['id']}/redrive", reason=HOSTILE)
    return runs
