"""A real server process on its own data directory, and a client for it."""

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal, Self, TypeVar

import httpx2
import psycopg

from infrastructure.outbound.embedded_postgres.data_directory import Home
from tests.support.http.described_answers import check_answer
from tests.support.servers.event_names import names_of_events
from tests.support.servers.preloaded import ROOT, PreloadedProcess, preloader, run_command
from tests.support.servers.same_decisions import differing_decisions

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
WAIT_SECONDS_MAX = 30.0
LOOK_EVERY_SECONDS = 0.02
LOOK_EVERY_SECONDS_MAX = 0.1
WAITED_SHARE = 1 / 8
"""Whoever has waited for long looks less often: a look may be a request."""
MAIN = "infrastructure.inbound.command_line.main"
T = TypeVar("T")


def wait_for(
    what: str, look: Callable[[], T | Literal[False] | None], *, seconds: float = WAIT_SECONDS_MAX
) -> T:
    """The first truthy answer of `look`; fails when none comes in time."""
    began = time.monotonic()
    while True:
        found = look()
        if found:
            return found
        waited = time.monotonic() - began
        if waited > seconds:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        pause = min(waited * WAITED_SHARE, LOOK_EVERY_SECONDS_MAX)
        threading.Event().wait(max(pause, LOOK_EVERY_SECONDS))


@cache
def _certificates() -> ssl.SSLContext:
    """The certificates that every client would read anew, for 30 ms."""
    return httpx2.create_ssl_context()


class RunningServer:
    """`spawnlog serve` as a process. Start it again after a kill with `start`.

    Without the URL of a database it uses the one of its data directory. `prefix` is what the
    command stands behind, such as a program that becomes another user. `program` is the module that
    has the command, where it is not the product's.
    """

    def __init__(
        self,
        data_dir: Path,
        config: Mapping[str, Any] | Path | None = None,
        *,
        database_url: str = "",
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        prefix: tuple[str, ...] = (),
        program: str = MAIN,
    ) -> None:
        self.data_dir = data_dir
        self.root = ROOT
        self._arguments = arguments
        self._prefix = prefix
        self._program = program
        self.database_url = database_url
        self._environment = dict(environment or {})
        if database_url:
            self._environment["SPAWNLOG_DATABASE_URL"] = database_url
        self.config = self._config_file(config)
        self.process: subprocess.Popen[str] | PreloadedProcess | None = None
        self.url = ""
        self.log_path = data_dir.with_name(f"{data_dir.name}.log")
        self._has_erased = False
        self._http: httpx2.Client | None = None

    def _config_file(self, config: Mapping[str, Any] | Path | None) -> Path | None:
        if config is None or isinstance(config, Path):
            return config
        path = self.data_dir.with_name(f"{self.data_dir.name}.json5")
        path.write_text(json.dumps(config), "utf-8")
        return path

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        differing = self.differing_decisions() if failure is None else []
        self.stop()
        assert not differing, json.dumps(differing, indent=1)

    def start(self) -> None:
        """Start it and wait until it accepts."""
        command = ["serve", "--data-dir", str(self.data_dir), *self._arguments]
        if "--port" not in command:
            command += ["--port", "0"]
        if self.config is not None:
            command += ["--config", str(self.config)]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **self._environment}
        with self.log_path.open("a", encoding="utf-8") as log:
            self.process = self._started(command, environment, log)
        assert self.process.stdout is not None
        line = self._ready_line(self.process)
        if not line.startswith("spawnlog ready on "):
            self.kill()
            raise AssertionError(f"it did not start: {line!r}\n{self.log()}")
        self.url = line.removeprefix("spawnlog ready on ").strip()
        if self._http is not None:
            self._http.close()
        self._http = httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=httpx2.Timeout(70.0),
            verify=_certificates(),
            event_hooks={"response": [check_answer]},
        )

    def _started(
        self, command: list[str], environment: Mapping[str, str], log: IO[str]
    ) -> "subprocess.Popen[str] | PreloadedProcess":
        preloaded = not self._prefix and self._program == MAIN and self.root == ROOT
        if preloaded and preloader().serves():
            return preloader().start(command, environment=environment, stderr=log.fileno())
        return subprocess.Popen(
            [*self._prefix, sys.executable, "-m", self._program, *command],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )

    @staticmethod
    def _ready_line(process: "subprocess.Popen[str] | PreloadedProcess") -> str:
        assert process.stdout is not None
        lines: list[str] = []
        reader = threading.Thread(
            target=lambda: lines.append(process.stdout.readline() if process.stdout else "")
        )
        reader.start()
        reader.join(START_SECONDS_MAX)
        return lines[0] if lines else ""

    @property
    def http(self) -> httpx2.Client:
        """A client with the administrator's token."""
        assert self._http is not None
        return self._http

    @property
    def token(self) -> str:
        """The administrator's token."""
        return (self.data_dir / "admin-token").read_text("utf-8").strip()

    def log(self) -> str:
        """What it wrote to stderr."""
        return self.log_path.read_text("utf-8") if self.log_path.exists() else ""

    def log_command(self, order: str) -> subprocess.CompletedProcess[str]:
        """What `spawnlog log verify` or `rebuild` says of its log."""
        place = ["--data-dir", str(self.data_dir)]
        if self.database_url:
            place += ["--database-url", self.database_url]
        return run_command("log", order, *place)

    @property
    def conninfo(self) -> str:
        """Where its database is."""
        return self.database_url or Home.at(self.data_dir / "postgres").conninfo()

    def erase_session(self, session_id: str) -> None:
        """Erase the texts of a session, with their key."""
        self._erase(b"DELETE FROM content_keys WHERE session_id = %s", session_id)
        self._erase(b"DELETE FROM contents WHERE session_id = %s", session_id)

    def erase_content(self, content_id: str) -> None:
        """Erase one text."""
        self._erase(b"DELETE FROM contents WHERE content_id = %s", content_id)

    def erase_transcript(self, run_id: str) -> None:
        """Erase what was said in one run."""
        self._erase(b"DELETE FROM transcript_entries WHERE run_id = %s", run_id)

    def _erase(self, statement: bytes, which: str) -> None:
        self._has_erased = True
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(statement, [which])

    def differing_decisions(self) -> list[dict[str, Any]]:
        """What a server that is still at work would have decided otherwise, had nothing been
        changed."""
        if self._http is None or self.process is None or self.process.poll() is not None:
            return []
        return differing_decisions(self._http, has_erased=self._has_erased)

    def descriptors(self) -> int:
        """How many files and connections its process has open."""
        assert self.process is not None
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self._reap()

    def terminate(self) -> None:
        """SIGTERM, without waiting."""
        assert self.process is not None
        self.process.terminate()

    def ended(self) -> int:
        """Wait for an end that came by itself; gives the exit status, negative for a signal."""
        return self._reap()

    def stop(self) -> int:
        """SIGTERM, and wait for the end; gives the exit status."""
        if self._http is not None:
            self._http.close()
            self._http = None
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.terminate()
        return self._reap()

    def _reap(self) -> int:
        assert self.process is not None
        try:
            status = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            if self.process.stdout is not None:
                self.process.stdout.close()
        return status

    def spawn(self, task: str = "hello", *, key: str | None = None, **body: Any) -> httpx2.Response:
        """`POST /v1/spawns` for `agent:main:main` unless `requester` says otherwise."""
        headers = {"Idempotency-Key": key} if key else {}
        whole = {"requester": {"sessionKey": "agent:main:main"}, "task": task, **body}
        return self.http.post("/v1/spawns", json=whole, headers=headers)

    def run(self, run_id: str, until: str | None = None) -> dict[str, Any]:
        """A run, once it has reached `until`."""
        query = {"wait": "60s", "until": until} if until else {}
        answer = self.http.get(f"/v1/runs/{run_id}", params=query)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def events(self, run_id: str) -> list[str]:
        """The types of a run's events, in order."""
        answer = self.http.get(f"/v1/runs/{run_id}/events")
        return [event["type"] for event in answer.json()["items"]]

    def steps(self, run_id: str) -> list[str]:
        """The names of a run's events, of steps and effects with what they are about."""
        return names_of_events(self.http.get(f"/v1/runs/{run_id}/events").json()["items"])

    def inbox(self, session_key: str = "agent:main:main") -> list[dict[str, Any]]:
        """The announcements of a session."""
        answer = self.http.get(f"/v1/sessions/{session_key}/announcements", params={"limit": 500})
        return list(answer.json()["items"])


def scripted(agent_id: str = "main", **runtime: Any) -> dict[str, Any]:
    """An agent that plays back; by default it answers `done`."""
    return {"id": agent_id, "runtime": {"type": "scripted", "result": "done", **runtime}}


def command(agent_id: str, *argv: str, **more: Any) -> dict[str, Any]:
    """An agent that is a program reading its prompt as text."""
    runtime = {"type": "command", "command": list(argv), "input": "stdin-text", **more}
    return {"id": agent_id, "runtime": runtime}


def configuration(*agents: dict[str, Any], **subagents: Any) -> dict[str, Any]:
    """A configuration of these agents, all of which may be spawned.

    Leases are as long as anybody's: on a machine that is busy a short one runs out, which is an
    error. Who tests what follows from that, or waits for it, says how long they are.
    """
    return {
        "agents": {
            "defaults": {"subagents": {"allowAgents": ["*"], **subagents}},
            "list": list(agents),
        },
        "spawnlog": {"drainSeconds": 2},
    }
