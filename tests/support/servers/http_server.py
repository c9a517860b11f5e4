"""Shared server for tests of the interfaces: its agents, scripts and tokens."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.servers.child_programs import holder
from tests.support.servers.configurations import EXTERNAL, agent, configuration, scripted
from tests.support.servers.server import Server

_PONDERING = """#!/bin/sh
for given in "$@"; do
  case "$given" in label=*) label=${{given#label=}};; esac
done
case "$label" in ponder-*|ghost-*) ;; *) exit 0;; esac
echo began > "{folder}/$label.began"
while [ ! -e "{folder}/$label.go" ]; do sleep 0.02; done
echo pondered
"""
GHOST = "ghost"
"""An agent that is not configured: its spawn is refused, after its scripts have run."""


ONE = "agent:main:the-one"
"""The only session that the token `one` acts for; the configuration spells it in another way."""
TOKENS: dict[str, tuple[list[str], list[str]]] = {
    "reader": (["read"], ["agent:main:reader-*"]),
    "texts": (["read", "content"], ["agent:main:reader-*"]),
    "controller": (["read", "control"], ["agent:main:reader-*", "agent:main:other-*"]),
    "spawner": (["spawn"], ["agent:main:spawner-*"]),
    "visitor": (["read", "content", "spawn", "control", "worker"], ["agent:main:visitor-*"]),
    "everything": (["admin"], ["*"]),
    "watcher": (["read", "control"], ["*"]),
    "one": (["spawn", "read"], [f" {ONE.title()} ", ONE.replace(":", "::")]),
}


@contextmanager
def http_server(folder: Path) -> Iterator[Server]:
    """Yield a running server; search everything that it wrote at the end.

    The scripts of the agent `pondering` wait for `let_go` of a label with the prefix `ponder-` or
    `ghost-`.
    """
    folder.chmod(0o755)
    notes = folder / "notes"
    notes.mkdir(mode=0o777)
    script = folder / "ponder.sh"
    script.write_text(_PONDERING.format(folder=notes), "utf-8")
    script.chmod(0o755)
    secrets = {name: f"canary-{name}-{uuid.uuid4().hex}" for name in (*TOKENS, "agent")}
    with Server(folder / "data", _configuration(notes, script), secrets=secrets) as server:
        yield server
    server.require_quiet()


NOWHERE = {
    "id": "nowhere",
    # This address is never called, so an attempt fails at once.
    "url": "http://169.254.0.1/",
    "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    "origin": {"channel": "nowhere"},
}


def _configuration(notes: Path, script: Path) -> dict[str, Any]:
    narrow = agent("narrow", subagents={"allowAgents": ["narrow"]})
    long = [{"afterMs": 300_000}]
    slow = agent("slow", scripted(steps=long))
    boxed = agent("boxed", scripted(steps=long, providesSandbox=True), sandbox={"mode": "all"})
    failing = agent("failing", {"type": "scripted", "outcome": "error", "error": "it went wrong"})
    steps = [
        {"message": "thinking"},
        {"tool": {"name": "search", "input": {"for": "words"}, "output": "found"}},
        {"usage": {"inputTokens": 7, "outputTokens": 3}},
        {"message": "spoken"},
    ]
    ponder = {
        "id": "ponder",
        "uri": str(script),
        "argMap": {"label": "label"},
        "timeoutSeconds": 25,
    }
    quick = [
        agent(default=True, name="Answers"),
        narrow,
        slow,
        failing,
        agent("talker", scripted(steps=steps)),
        agent("quiet", scripted(result="NO_REPLY")),
        boxed,
        holder(notes, env={"PASSWORD": "${AGENT_TOKEN}"}),
        agent("outside", EXTERNAL),
    ]
    for item in quick:
        item.setdefault("subagents", {})["contextScripts"] = {"ignore": ["ponder"]}
    return configuration(
        *quick,
        agent("pondering"),
        maxSpawnDepth=2,
        maxChildrenPerAgent=5,
        maxConcurrent=100,
        contextScripts={"run": [ponder]},
        drainSeconds=0,
        announce={"webhooks": [NOWHERE], "attemptsMax": 1},
        allowedHosts=["spawnlog.example"],
        tokens=[
            {
                "id": name,
                "token": f"${{{name.upper()}_TOKEN}}",
                "scopes": scopes,
                "sessions": sessions,
            }
            for name, (scopes, sessions) in TOKENS.items()
        ],
    )
