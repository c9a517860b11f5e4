"""A server whose sub-agents are told of over HTTP, and the requests for them."""

import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.servers.child_programs import waiter
from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer
from tests.support.servers.mortal_server import QUICK_LEASE_SECONDS, mortal_on
from tests.support.servers.preparing_server import Porter
from tests.support.servers.running_server import configuration, scripted, wait_for

ORIGIN = {"channel": "discord", "accountId": "acct", "to": "channel:1", "threadId": 7}
ASKING = ("subagentSpawning", "prepareSubagentSpawn")
TELLING = ("subagentSpawned", "subagentEnded")
TIMEOUT_SECONDS = 2.0
ATTEMPTS_MAX = 3
BOUND = {
    "status": "ok",
    "threadBindingReady": True,
    "deliveryOrigin": {"to": "thread:9", "threadId": "9"},
}
AT_THE_THREAD = {"channel": "discord", "accountId": "acct", "to": "thread:9", "threadId": "9"}


def hooked(
    folder: Path, hooks: dict[str, Any], agents: Sequence[dict[str, Any]] = (), **more: Any
) -> dict[str, Any]:
    """Agents `plain`, `failing` and `waiter`, and any others; one run at a time."""
    (folder / "work").mkdir(parents=True, exist_ok=True)
    config = configuration(
        {**scripted("main"), "default": True},
        scripted("plain"),
        scripted("failing", outcome="error", error="the harbour is closed"),
        waiter("waiter", folder),
        *agents,
        archiveAfterMinutes=0,
        maxSpawnDepth=2,
        maxConcurrent=1,
    )
    for agent in config["agents"]["list"]:
        agent.setdefault("workspace", str(folder / "work"))
    config["spawnlog"] = {
        "leaseSeconds": QUICK_LEASE_SECONDS,
        "drainSeconds": 2,
        "hooks": {**hooks, "attemptsMax": ATTEMPTS_MAX, "retrySecondsMax": 2},
    }
    return config | more


class Hooked(Porter):
    """Spawns of children that somebody outside hears of."""

    def __init__(
        self,
        data_dir: Path,
        folder: Path,
        database_url: str,
        hooks: dict[str, Any],
        *,
        order: str = "fail-point",
        config: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        config = config or hooked(folder, hooks, **more)
        super().__init__(data_dir, folder, database_url, config=config, order=order)

    @contextmanager
    def configured(self, change: Callable[[dict[str, Any]], None]) -> Iterator[None]:
        """By another configuration until the end of the block."""
        assert self.config is not None
        as_it_was = self.config.read_text("utf-8")
        changed = json.loads(as_it_was)
        change(changed)
        self._reloads(json.dumps(changed))
        try:
            yield
        finally:
            self._reloads(as_it_was)

    def _reloads(self, text: str) -> None:
        assert self.config is not None
        assert self.process is not None
        seen = len(self.log())
        self.config.write_text(text, "utf-8")
        self.process.send_signal(signal.SIGHUP)
        wait_for("the reload", lambda: "is active" in self.log()[seen:])

    def comes_to(self, run_id: str, *events: str) -> list[str]:
        """The story of a run once all of these are in it."""

        def there() -> list[str] | None:
            story = self.steps(run_id)
            return story if set(events) <= set(story) else None

        return wait_for(f"{events} of {run_id}", there)

    def refused(self, body: dict[str, Any], rule: str, text: str) -> str:
        """The spawn is refused by a step, in these words; gives the run's id."""
        answer = self.spawn(**body)
        assert answer.status_code == 422, answer.text
        problem = answer.json()
        assert (problem["rule"], problem["detail"]) == (rule, text)
        run_id = str(problem["runId"])
        started = "PreparationStarted" in self.steps(run_id)
        assert ("childSessionKey" in problem) is started
        (refusal,) = self.recorded(run_id, "SpawnRefused")
        assert refusal["step"] == rule
        assert self.session(body["requester"]["sessionKey"])["activeChildren"] == 0
        return run_id

    def asked_for(self, body: dict[str, Any]) -> str:
        """The spawn is accepted; gives the run's id."""
        answer = self.spawn(**body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["runId"])

    def stopped_in_its_lane(self, body: dict[str, Any]) -> str:
        """A child that is stopped before it could start."""
        name = f"{body['requester']['sessionKey'][11:]}-first"
        first = self.asked_for(threaded(name, agentId="waiter", thread=False))
        self.note(f"{first}.began")
        run_id = self.asked_for(body)
        assert self.http.post(f"/v1/runs/{run_id}/stop", json={"reason": "enough"}).is_success
        (self.folder / f"{first}.go").touch()
        self.run(first, "announced")
        return run_id


def threaded(name: str, **more: Any) -> dict[str, Any]:
    """A request for a child in a thread, by a session of its own."""
    requester = {"sessionKey": f"agent:main:{name}", **ORIGIN}
    body = {"agentId": "plain", "thread": True, "mode": "run", "context": "isolated"}
    return {**body, "requester": requester, **more}


@contextmanager
def hooked_on(databases: Databases, hooks: dict[str, Any], **more: Any) -> Iterator[Hooked]:
    """Such a server on a database of its own; its log is verified once all is over."""

    def make(data_dir: Path, folder: Path, url: str) -> Hooked:
        return Hooked(data_dir, folder, url, hooks, **more)

    with mortal_on(databases, make) as server:
        yield server


def all_of(server: HookServer, **more: Any) -> dict[str, Any]:
    """Every hook but that which is asked where results go."""
    return server.hooks(*ASKING, *TELLING, timeoutSeconds=TIMEOUT_SECONDS, **more)
