"""The server that the tests of the HTTP door share: its agents, its tokens, its gates."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.support.http.wire import client_of
from tests.support.servers.configurations import EXTERNAL, agent, command, configuration, scripted
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

HOLDING = """
printf %s "$SPAWNLOG_TOKEN" > "{folder}/$SPAWNLOG_RUN_ID.part"
mv "{folder}/$SPAWNLOG_RUN_ID.part" "{folder}/$SPAWNLOG_RUN_ID.began"
while [ ! -e "{folder}/$SPAWNLOG_RUN_ID.go" ]; do sleep 0.02; done
echo over
"""
PONDERING = """#!/bin/sh
for given in "$@"; do
  case "$given" in label=*) label=${{given#label=}};; esac
done
case "$label" in ponder-*|ghost-*) ;; *) exit 0;; esac
: > "{folder}/$label.began"
while [ ! -e "{folder}/$label.go" ]; do sleep 0.02; done
echo pondered
"""
GHOST = "ghost"
"""An agent that is not configured: it is refused, after the scripts have run for it."""


@dataclass(frozen=True)
class Gates:
    """Files by which programs say that they began, and are let go on."""

    folder: Path

    def wait(self, name: str) -> str:
        """What a program left at its gate, once it stands there."""
        path = self.folder / f"{name}.began"
        wait_for(f"{name} to begin", path.exists)
        return path.read_text("utf-8")

    def open(self, name: str) -> None:
        """Let it go on."""
        (self.folder / f"{name}.go").touch()


@dataclass(frozen=True)
class House:
    """The server with its gates, and the secrets it was given."""

    server: Server
    gates: Gates
    secrets: dict[str, str]

    @property
    def http(self) -> httpx2.Client:
        """The administrator's client."""
        return self.server.http

    def session(self, name: str = "test") -> str:
        """The canonical key of a session of the agent `main` that nobody else uses."""
        return f"agent:main:{name}-{uuid.uuid4().hex}"

    def spawn(
        self, requester: str, task: str = "hello", *, key: str | None = None, **body: Any
    ) -> httpx2.Response:
        """`POST /v1/spawns` for a requester."""
        return self.server.spawn(task, key=key, requester={"sessionKey": requester}, **body)

    def accepted(self, requester: str, task: str = "hello", **body: Any) -> dict[str, Any]:
        """A spawn that must be accepted."""
        answer = self.spawn(requester, task, **body)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def ended(self, requester: str, **body: Any) -> dict[str, Any]:
        """A run of its own that has been announced."""
        return self.server.run(self.accepted(requester, **body)["runId"], "announced")

    @contextmanager
    def held(self, requester: str, **body: Any) -> Iterator["HeldRun"]:
        """A run whose program stands at its gate; it ends with the block."""
        answer = self.accepted(requester, agentId="holder", **body)
        run = HeldRun(answer, self.gates.wait(answer["runId"]))
        try:
            yield run
        finally:
            self.gates.open(run.run_id)
            self.server.run(run.run_id, "ended")

    @contextmanager
    def with_token(self, token: str) -> Iterator[httpx2.Client]:
        """A client with another token."""
        with client_of(self.server.url, token) as client:
            yield client

    def post(self, content: bytes, **headers: str) -> httpx2.Response:
        """`POST /v1/spawns` with a body as it stands."""
        given = {"Content-Type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return self.http.post("/v1/spawns", content=content, headers=given)

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """Return the body of a read with the administrator's token, which must succeed."""
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def events(self, run_id: object, kind: str | None = None) -> list[dict[str, Any]]:
        """Return the events of a run, or those of one type."""
        items = self.get(f"/v1/runs/{run_id}/events", limit=500)["items"]
        return [one for one in items if kind in (None, one["type"])]

    def runs(self, requester: str) -> list[dict[str, Any]]:
        """What is on record of a requester's spawns, newest first."""
        return list(self.get("/v1/runs", requester=requester, limit=500)["items"])

    def head(self) -> int:
        """The position of the log's end."""
        return int(self.get("/v1/events", limit=1)["head"])


@dataclass(frozen=True)
class HeldRun:
    """A run that waits, and its child's own token."""

    answer: dict[str, Any]
    token: str

    @property
    def run_id(self) -> str:
        """Its id."""
        return str(self.answer["runId"])

    @property
    def child(self) -> str:
        """The key of the child's session."""
        return str(self.answer["childSessionKey"])


ONE = "agent:main:the-one"
"""The one session that the token `one` acts for; the configuration spells it twice otherwise."""
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


def open_house(folder: Path) -> House:
    """The house, not yet started."""
    gates = Gates(folder / "gates")
    gates.folder.mkdir(mode=0o777)
    script = folder / "ponder.sh"
    script.write_text(PONDERING.format(folder=gates.folder), "utf-8")
    script.chmod(0o755)
    secrets = {name: f"canary-{name}-{uuid.uuid4().hex}" for name in TOKENS}
    config = _configuration(gates, script)
    environment = {f"{name.upper()}_TOKEN": secret for name, secret in secrets.items()}
    environment["AGENT_PASSWORD"] = secrets["agent"] = f"canary-agent-{uuid.uuid4().hex}"
    server = Server(folder / "data", config, environment=environment)
    return House(server, gates, secrets)


NOWHERE = {
    "id": "nowhere",
    # What is there is never called, so that an attempt fails at once.
    "url": "http://169.254.0.1/",
    "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    "origin": {"channel": "nowhere"},
}


def _configuration(gates: Gates, script: Path) -> dict[str, Any]:
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
    holder = agent(
        "holder",
        command(
            "sh", "-c", HOLDING.format(folder=gates.folder), env={"PASSWORD": "${AGENT_PASSWORD}"}
        ),
    )
    quick = [
        agent(default=True, name="Answers"),
        narrow,
        slow,
        failing,
        agent("talker", scripted(steps=steps)),
        agent("quiet", scripted(result="NO_REPLY")),
        boxed,
        holder,
        agent("outside", EXTERNAL),
    ]
    for one in quick:
        one.setdefault("subagents", {})["contextScripts"] = {"ignore": ["ponder"]}
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
