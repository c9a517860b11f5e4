"""Server of the tests: `spawnlog serve` as a process, and requests to it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import httpx2
import psycopg

from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.log.append.fault_point import VARIABLE
from tests.support.faults.turnstiles import Turnstile
from tests.support.http.wire import client_of
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.preloaded import ROOT, PreloadedProcess, preloader, run_command
from tests.support.servers.same_decisions import differing_decisions
from tests.support.waiting import wait_for

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
ANSWER_SECONDS_MAX = 60.0
QUICK_LEASE_SECONDS = 2.0
"""`leaseSeconds` of a server that is killed, the time that its successor waits."""
SOUND = ("verify", "rebuild")
"""Commands that find no fault in a sound log with matching tables."""
MAIN = "infrastructure.inbound.command_line.main"
EXPIRE = "UPDATE {} SET until = clock_timestamp() WHERE holder NOT LIKE 'external:%%' AND holder IN"
OF_OTHERS = "(SELECT holder FROM holders WHERE url IS DISTINCT FROM %s)"


class Background:
    """A request that a thread waits for."""

    def __init__(self, ask: Callable[[], httpx2.Response]) -> None:
        self._ask = ask
        self._answers: list[httpx2.Response] = []
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()

    def _wait(self) -> None:
        with contextlib.suppress(httpx2.TransportError):
            self._answers.append(self._ask())

    def answer(self) -> httpx2.Response | None:
        """Return the answer once it is there; None if the connection was lost."""
        self._thread.join(ANSWER_SECONDS_MAX)
        assert not self._thread.is_alive()
        return self._answers[0] if self._answers else None


@dataclass(frozen=True)
class HeldRun:
    """A run whose program waits, and its child's own token."""

    answer: dict[str, Any]
    token: str

    @property
    def run_id(self) -> str:
        """Return the run id."""
        return str(self.answer["runId"])

    @property
    def child(self) -> str:
        """Return the key of the child's session."""
        return str(self.answer["childSessionKey"])


class Server:
    """A server process and its client. `start` starts it again after it was stopped or killed.

    Args:
        config: Result of `configuration`, or a file.
        folder: Folder for notes of its children and scripts; `notes` beside the data directory.
        database_url: By default the database of its data directory.
        dies: Let `die_at` kill it at a place in the log.
        secrets: Values of `${NAME_TOKEN}` in its configuration, by `name`.
        name: Prefix of its own files beside the data directory.
        prefix: Words before the command, such as a program that becomes another user.
        program: The module of the command, if it is not the product's.
    """

    def __init__(
        self,
        data_dir: Path,
        config: Mapping[str, Any] | Path | None = None,
        *,
        folder: Path | None = None,
        database_url: str = "",
        dies: bool = False,
        name: str = "",
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        prefix: tuple[str, ...] = (),
        program: str = MAIN,
    ) -> None:
        self.data_dir = data_dir
        self.folder = folder or data_dir.with_name("notes")
        self.root = ROOT
        self._arguments = arguments
        self._prefix = prefix
        self._program = program
        self.database_url = database_url
        self.secrets = dict(secrets or {})
        named = {f"{name.upper()}_TOKEN": secret for name, secret in self.secrets.items()}
        self._environment = {**named, **(environment or {})}
        self._order = data_dir.with_name(f"{name or data_dir.name}.fail-point")
        self._dies = dies
        self.config = self._config_file(config)
        self.process: subprocess.Popen[str] | PreloadedProcess | None = None
        self.url = ""
        self.log_path = data_dir.with_name(f"{name or data_dir.name}.log")
        self._has_erased = False
        self._http: httpx2.Client | None = None

    def _config_file(self, config: Mapping[str, Any] | Path | None) -> Path | None:
        if config is None or isinstance(config, Path):
            return config
        path = self.data_dir.with_name(f"{self.data_dir.name}.json5")
        path.write_text(json.dumps(config), "utf-8")
        return path

    def twin(self, name: str = "twin", **options: Any) -> "Server":
        """Return another server on the same log and data directory, not started."""
        same: dict[str, Any] = {
            "config": self.config,
            "folder": self.folder,
            "database_url": self.database_url,
            "dies": self._dies,
            "environment": self._environment,
        }
        twin = Server(self.data_dir, name=name, **(same | options))
        twin._has_erased = self._has_erased
        return twin

    # Its life.

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
        if self.database_url:
            environment["SPAWNLOG_DATABASE_URL"] = self.database_url
        if self._dies:
            environment[VARIABLE] = str(self._order)
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
        self._http = client_of(self.url, self.token)

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

    def is_running(self) -> bool:
        """Return True if its process has not ended."""
        return self.process is not None and self.process.poll() is None

    def descriptors(self) -> int:
        """Return how many files and connections its process has open."""
        assert self.process is not None
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self._reap()

    def terminate(self) -> None:
        """SIGTERM, without waiting."""
        assert self.process is not None
        self.process.terminate()

    def wait_exit(self) -> int:
        """Wait for an end that comes by itself. Return the exit status, negative for a signal."""
        return self._reap()

    def stop(self) -> int:
        """SIGTERM, and wait for the end. Return the exit status."""
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

    # Its death at a place in the log, if it `dies`.

    def ensure_running(self) -> None:
        """Start it, without a pending kill, unless it runs. Tests may leave it in any state."""
        self._order.unlink(missing_ok=True)
        if not self.is_running():
            self.start()

    def die_at(self, moment: str) -> None:
        """Order it to kill itself at the next such event: `after RunClaimed`, `before RunEnded`."""
        part = self._order.with_name(f"{self._order.name}.part")
        part.write_text(moment, "utf-8")
        part.rename(self._order)

    def wait_death(self) -> None:
        """Wait until the process has killed itself as ordered."""
        assert self.wait_exit() == -signal.SIGKILL, self.log()
        assert not self._order.exists()

    def die_during(self, moment: str, **body: Any) -> None:
        """Let it die during a spawn."""
        self.die_at(moment)
        self.spawn_unanswered(**body)
        self.wait_death()

    def restart(self) -> None:
        """Start it after its death, without waiting for the lease of the dead process."""
        self.expire_leases()
        self.start()

    def die_again(self, moment: str) -> None:
        """Start it after its death, and let it die while it resumes."""
        self.die_at(moment)
        self.expire_leases()
        # It may be gone before it says that it is ready.
        with contextlib.suppress(AssertionError):
            self.start()
        self.wait_death()

    def expire_leases(self, living: str = "") -> None:
        """Expire the leases and claims of all servers except the one at this URL."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            for table in ("holders", "work_claims"):
                connection.execute((EXPIRE.format(table) + OF_OTHERS).encode(), [living])

    def turnstile(self) -> Turnstile:
        """Hold it at the next place where it looks for an order to die, and at each after that."""
        return Turnstile(self._order)

    # Its configuration.

    def reload(self, values: Mapping[str, Any]) -> str:
        """Change its file and send SIGHUP. Return its log lines until the change is active."""
        return self._reload(json.dumps(values))

    @contextmanager
    def configured(self, change: Callable[[dict[str, Any]], object]) -> Iterator[None]:
        """Let it work by a changed configuration until the end of the block."""
        assert self.config is not None
        before = self.config.read_text("utf-8")
        values = json.loads(before)
        change(values)
        self._reload(json.dumps(values))
        try:
            yield
        finally:
            if self.is_running():
                self._reload(before)
            else:
                self.config.write_text(before, "utf-8")

    def _reload(self, text: str) -> str:
        assert self.config is not None
        assert self.process is not None
        self.config.write_text(text, "utf-8")
        before = len(self.log())
        self.process.send_signal(signal.SIGHUP)
        wait_for("the reload", lambda: "is active" in self.log()[before:])
        return self.log()[before:]

    # Requests.

    @property
    def http(self) -> httpx2.Client:
        """Return a client with the administrator's token."""
        assert self._http is not None
        return self._http

    @property
    def token(self) -> str:
        """Return the administrator's token."""
        return (self.data_dir / "admin-token").read_text("utf-8").strip()

    @contextmanager
    def with_token(self, token: str) -> Iterator[httpx2.Client]:
        """Yield a client with another token."""
        with client_of(self.url, token) as client:
            yield client

    @staticmethod
    def new_session(name: str = "test") -> str:
        """Return a unique session key of the agent `main`."""
        return f"agent:main:{name}-{uuid.uuid4().hex}"

    def spawn(
        self,
        task: str | list[str] = "hello",
        *,
        session: str = "agent:main:main",
        key: str | None = None,
        **body: Any,
    ) -> httpx2.Response:
        """Send `POST /v1/spawns` for a session, with the Idempotency-Key `key`."""
        headers = {"Idempotency-Key": key} if key else {}
        whole = {"requester": {"sessionKey": session}, "task": task, **body}
        return self.http.post("/v1/spawns", json=whole, headers=headers)

    def accepted(self, agent_id: str | None = None, task: str = "hello", **body: Any) -> str:
        """Spawn, which must be accepted. Return the run's id."""
        named = {} if agent_id is None else {"agentId": agent_id}
        return str(self.spawned(task, **named, **body)["runId"])

    def spawned(self, task: str | list[str] = "hello", **body: Any) -> dict[str, Any]:
        """Spawn, which must be accepted. Return the answer."""
        answer = self.spawn(task, **body)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    @contextmanager
    def held(self, session: str, **body: Any) -> Iterator["HeldRun"]:
        """Yield a run of the agent `holder`, whose program waits until the end of the block."""
        answer = self.spawned(session=session, agentId="holder", **body)
        run = HeldRun(answer, self.began(answer["runId"]))
        try:
            yield run
        finally:
            self.let_go(run.run_id)
            self.run(run.run_id, "ended")

    def announced(
        self, agent_id: str | None = None, task: str = "hello", **body: Any
    ) -> dict[str, Any]:
        """Spawn, which must be accepted. Return the run, once it is announced."""
        return self.run(self.accepted(agent_id, task, **body), "announced")

    def spawn_unanswered(self, key: str, **body: Any) -> None:
        """Spawn on a server that dies before or right after its answer."""
        with contextlib.suppress(httpx2.TransportError):
            self.spawn(key=key, **body)

    def spawn_again(self, key: str, **body: Any) -> httpx2.Response:
        """Repeat a spawn. Return its first answer, once there is one."""

        def ask() -> httpx2.Response | None:
            answer = self.spawn(key=key, **body)
            return answer if answer.status_code != 409 else None

        return wait_for("an answer to the same request", ask)

    def spawn_in_background(self, **body: Any) -> Background:
        """Spawn without waiting for the answer."""
        return Background(lambda: self.spawn(**body))

    def preparing(self, session_key: str) -> str:
        """Return the id of the one spawn of a session that is being prepared, once there is one."""
        (found,) = wait_for(
            "the spawn", lambda: self.runs(requester=session_key, status="preparing")
        )
        return str(found["runId"])

    def send(
        self, run_id: str, message: str, key: str | None = None, **body: Any
    ) -> httpx2.Response:
        """Send a message to the session of a run."""
        headers = {"Idempotency-Key": key} if key else {}
        body = {"message": message, **body}
        return self.http.post(f"/v1/runs/{run_id}/messages", json=body, headers=headers)

    def continued(self, run_id: str, message: str) -> str:
        """Send a message that is taken at once. Return the id of its run."""
        answer = self.send(run_id, message)
        assert answer.status_code == 201, answer.text
        assert answer.headers["Location"] == f"/v1/runs/{answer.json()['runId']}"
        return str(answer.json()["runId"])

    def stop_run(self, run_id: str, **body: Any) -> dict[str, Any]:
        """Stop a run and all below it. Return the answer."""
        answer = self.http.post(f"/v1/runs/{run_id}/stop", json=body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def stop_session(self, key: str) -> dict[str, Any]:
        """Stop a session. Return the answer."""
        answer = self.http.post(f"/v1/sessions/{key}/stop", json={})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    # Answers.

    def run(self, run_id: str, until: str | None = None) -> dict[str, Any]:
        """Return a run, once it has reached the stage `until`."""
        query = {"wait": "60s", "until": until} if until else {}
        return self.get(f"/v1/runs/{run_id}", **query)

    def result(self, run_id: str) -> str:
        """Return the result of a run, once it is announced; assert that it succeeded."""
        run = self.run(run_id, "announced")
        assert run["outcome"] == "success", run
        return str(run["resultText"]).strip()

    def runs(self, **query: Any) -> list[dict[str, Any]]:
        """Return the runs of a query, the newest first."""
        return list(self.get("/v1/runs", **({"limit": 100} | query))["items"])

    def session(self, key: str) -> dict[str, Any]:
        """Return a session."""
        return self.get(f"/v1/sessions/{key}")

    def session_runs(self, key: str) -> list[str]:
        """Return the ids of a session's own runs, the newest first."""
        return [str(run["runId"]) for run in self.session(key)["ownRuns"]]

    def inbox(self, session_key: str = "agent:main:main") -> list[dict[str, Any]]:
        """Return the announcements of a session."""
        return list(self.get(f"/v1/sessions/{session_key}/announcements", limit=500)["items"])

    def events(self, run_id: str) -> list[str]:
        """Return the types of a run's events, in order."""
        return [str(event["type"]) for event in self.recorded(run_id)]

    def steps(self, run_id: str) -> list[str]:
        """Return the names of a run's events, with the step (`StepTaken:workspace`), or with name
        and result of an effect: `hook:subagentEnded:done`, `failed`, `parked`, `redriven`.
        """
        return [_step_name(event["type"], event["payload"]) for event in self.recorded(run_id)]

    def wait_steps(self, run_id: str, *names: str) -> list[str]:
        """Return the steps of a run, once all of these are among them."""

        def found() -> list[str] | None:
            steps = self.steps(run_id)
            return steps if set(names) <= set(steps) else None

        return wait_for(f"{names} of {run_id}", found)

    def event(self, run_id: str, event_type: str) -> dict[str, Any]:
        """Return the one event of a type of a run."""
        (found,) = self.recorded(run_id, event_type)
        return found

    def payloads(self, run_id: str, event_type: str) -> list[dict[str, Any]]:
        """Return the payloads of a run's events of a type, in order."""
        return [dict(event["payload"]) for event in self.recorded(run_id, event_type)]

    def recorded(self, run_id: str, event_type: str | None = None) -> list[dict[str, Any]]:
        """Return the events of a run, or those of one type, in order."""
        events = self.get(f"/v1/runs/{run_id}/events", limit=500)["items"]
        return [event for event in events if event_type in (None, event["type"])]

    def head(self) -> int:
        """Return the position of the last event."""
        return int(self.get("/v1/events", limit=1)["head"])

    def whole_log(self) -> list[dict[str, Any]]:
        """Return every event, in order."""
        events: list[dict[str, Any]] = []
        while True:
            after = events[-1]["position"] if events else 0
            page = self.get("/v1/events", after=after, limit=500)["items"]
            events += page
            if not page:
                return events

    def prompt(self, run_id: str) -> dict[str, Any]:
        """Return the prompt of a run."""
        return self.get(f"/v1/runs/{run_id}/prompt")

    def transcript(self, run_id: str, **query: Any) -> list[dict[str, Any]]:
        """Return the entries of a run's transcript, with tools and counts of tokens."""
        return list(self.get(f"/v1/runs/{run_id}/transcript", tools="true", **query)["items"])

    def explained(self, run_id: str) -> list[dict[str, Any]]:
        """Return the decisions about a run."""
        return list(self.get(f"/v1/runs/{run_id}/explain")["decisions"])

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """Return the body of a read, which must succeed."""
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    # Files that its children and scripts leave in `folder`.

    def note(self, name: str) -> str:
        """Return the text of a note, once there is some."""
        path = self.folder / name
        return wait_for(f"the note {name}", lambda: path.exists() and path.read_text("utf-8"))

    def began(self, run_id: str) -> str:
        """Return the note of a run's child from the moment when it began to wait for `let_go`."""
        return self.note(f"{run_id}.began")

    def touch(self, name: str) -> None:
        """Write an empty note, for which a child or a script waits."""
        (self.folder / name).touch()

    def let_go(self, run_id: str) -> None:
        """Let the waiting child or script of a run end."""
        self.touch(f"{run_id}.go")

    # Content of its log and its database.

    def log(self) -> str:
        """Return its standard error."""
        return self.log_path.read_text("utf-8") if self.log_path.exists() else ""

    def log_command(self, order: str) -> subprocess.CompletedProcess[str]:
        """Run `spawnlog log verify` or `rebuild` on its log."""
        place = ["--data-dir", str(self.data_dir)]
        if self.database_url:
            place += ["--database-url", self.database_url]
        return run_command("log", order, *place)

    def log_faults(self, *orders: str) -> list[str]:
        """Return the faults that these commands of `spawnlog log` find in its log; print their
        other output.
        """
        faults = []
        for order in orders:
            done = self.log_command(order)
            if done.returncode == 0:
                print(f"log {order}: {done.stdout.strip()}")
            else:
                faults.append(f"log {order}: {done.stdout}{done.stderr}")
        return faults

    def require_quiet(self) -> None:
        """Assert that it logged no error and none of its secrets."""
        log = self.log()
        assert "Traceback" not in log, log[-5000:]
        assert " ERROR " not in log, log[-5000:]
        for name, secret in self.secrets.items():
            assert secret not in log, f"the {name} token stands in the log"

    def require_sound_log(self) -> None:
        """Assert that its log verifies, that its tables match the events, and that it logged no
        error. It must have stopped.
        """
        assert self.log_faults(*SOUND) == []
        assert " ERROR " not in self.log(), self.log()

    @property
    def conninfo(self) -> str:
        """Return the connection string of its database."""
        return self.database_url or Home.at(self.data_dir / "postgres").conninfo()

    def ask_database(self, query: str, *values: object) -> list[Any]:
        """Return the rows of a query, past the server."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            cursor = connection.execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def erase_session(self, session_id: str) -> None:
        """Erase the texts of a session, with their key."""
        self._erase("DELETE FROM content_keys WHERE session_id = %s", session_id)
        self._erase("DELETE FROM contents WHERE session_id = %s", session_id)

    def erase_content(self, content_id: str) -> None:
        """Erase one text."""
        self._erase("DELETE FROM contents WHERE content_id = %s", content_id)

    def erase_transcript(self, run_id: str) -> None:
        """Delete the transcript of a run."""
        self._erase("DELETE FROM transcript_entries WHERE run_id = %s", run_id)

    def _erase(self, statement: str, which: str) -> None:
        self._has_erased = True
        self.ask_database(statement, which)

    def differing_decisions(self) -> list[dict[str, Any]]:
        """Return the recorded decisions that it would now make otherwise, although nothing changed.

        A server with `dies` is started again for that; a stopped one is not asked.
        """
        if self._dies:
            self.ensure_running()
        if self._http is None or not self.is_running():
            return []
        return differing_decisions(self._http, has_erased=self._has_erased)


def _step_name(kind: str, payload: dict[str, Any]) -> str:
    if kind.startswith("Step"):
        return f"{kind}:{payload['step']}"
    if not kind.startswith("Effect"):
        return kind
    came_of = kind.removeprefix("Effect").lower()
    if came_of == "attempted":
        has_failed = payload["error"] or payload["retryAfterSeconds"] is not None
        came_of = "failed" if has_failed else "done"
    return f"{payload['kind']}:{payload['name']}:{came_of}"


Serve = Callable[..., Server]
"""Starts a server: `serve(*agents, **settings)`, with the arguments of `configuration`."""


@contextmanager
def serving(
    databases: Databases,
    config: Mapping[str, Any] | Callable[[Path], Mapping[str, Any]],
    *,
    checks: Sequence[str] = ("verify",),
    **options: Any,
) -> Iterator[Server]:
    """Yield a server on a database of its own, which outlives a kill.

    Args:
        config: A configuration, or how to make it for the folder of the server's notes.
        checks: Commands of `spawnlog log` that must find nothing wrong in its log in the end.
        options: Of `Server`.
    """
    url = databases.create()
    with new_place() as place:
        notes = place / "notes"
        notes.mkdir()
        values = config(notes) if callable(config) else config
        with Server(place / "data", values, database_url=url, **options) as server:
            yield server
        assert server.log_faults(*checks) == []
    databases.drop(url)
