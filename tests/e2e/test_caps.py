"""Many callers spawn for one requester at the same time: its cap is exact at every moment."""

import threading
from collections import Counter
from collections.abc import Sequence

import httpx2
import pytest

from tests.support.builders.key_spellings import spellings
from tests.support.servers.server import Server
from tests.support.servers.stories import CHILDREN_MAX

pytestmark = pytest.mark.server

CALLERS = 64
SPAWNS_EACH = 4
LOOKERS = 3
PAST_MOMENTS = 50


class Crowd:
    """Concurrent callers, and a reader that counts children meanwhile."""

    def __init__(self, servers: Sequence[Server], name: str, callers: int) -> None:
        self.servers = servers
        self.name = name
        self.key = f"agent:main:{name}"
        self.statuses: Counter[int] = Counter()
        self.accepted: list[str] = []
        self.sampled: Counter[int] = Counter()
        self._failures: list[BaseException] = []
        self._start = threading.Barrier(callers + LOOKERS)
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(self._ask, number))
            for number in range(callers)
        ]
        self._callers = list(self._threads)
        self._threads += [
            threading.Thread(target=self._guarded, args=(self._look, number))
            for number in range(LOOKERS)
        ]

    def play(self) -> None:
        """Run all callers to their end."""
        for thread in self._threads:
            thread.start()
        for thread in self._callers:
            thread.join(90)
        self._over.set()
        for thread in self._threads:
            thread.join(30)
        assert not self._failures, self._failures
        assert not any(thread.is_alive() for thread in self._threads)

    def _guarded(self, guard: object, number: int) -> None:
        try:
            server = self.servers[number % len(self.servers)]
            headers = {"Authorization": f"Bearer {server.token}"}
            with httpx2.Client(base_url=server.url, headers=headers, timeout=60) as client:
                self._start.wait(30)
                guard(client, number)  # type: ignore[operator]
        except BaseException as failure:
            self._failures.append(failure)

    def _ask(self, client: httpx2.Client, number: int) -> None:
        written = spellings(self.name)
        for turn in range(SPAWNS_EACH):
            key = written[(number + turn) % len(written)]
            body = {"requester": {"sessionKey": key}, "task": "hello", "agentId": "plain"}
            answer = client.post("/v1/spawns", json=body | {"cleanup": "delete"})
            self.statuses[answer.status_code] += 1
            if answer.status_code == 201:
                self.accepted.append(answer.json()["runId"])
            else:
                assert answer.json().get("rule") == "active_children", answer.text

    def _look(self, client: httpx2.Client, _: int) -> None:
        while not self._over.is_set():
            answer = client.get(f"/v1/sessions/{self.key}")
            if answer.status_code == 200:
                self.sampled[answer.json()["activeChildren"]] += 1
            self._over.wait(0.005)

    def require_cap_kept(self) -> None:
        """Assert the cap in every answer, in the record, at every read, and at the end."""
        server = self.servers[0]
        assert set(self.statuses) == {201, 403}
        assert max(self.sampled) <= CHILDREN_MAX
        for run_id in self.accepted:
            assert server.run(run_id, "archived")["outcome"] == "success"
        counts = self._counts(server)
        assert max(counts.values()) == CHILDREN_MAX
        assert list(counts.values())[-1] == 0
        for position in list(counts)[:: max(1, len(counts) // PAST_MOMENTS)]:
            past = server.http.get(f"/v1/sessions/{self.key}", params={"at": f"pos:{position}"})
            assert past.json()["activeChildren"] == counts[position]
        self._require_every_place(server)

    def _counts(self, server: Server) -> dict[int, int]:
        """Return the number of children in the record, by the position of its change."""
        counted: set[str] = set()
        counts: dict[int, int] = {}
        for event in server.whole_log():
            if event["stream"] != f"session:{self.key}":
                continue
            if event["type"] == "ChildAdmitted":
                assert event["payload"]["activeChildren"] == len(counted)
                counted.add(event["payload"]["runId"])
            elif event["type"] == "ChildReleased":
                counted.remove(event["payload"]["runId"])
            counts[event["position"]] = len(counted)
        return counts

    def _require_every_place(self, server: Server) -> None:
        session = server.session(self.key)
        assert (session["activeChildren"], session["maxChildren"]) == (0, CHILDREN_MAX)
        requester = {"sessionKey": self.key}
        held = [server.accepted("waiter", requester=requester) for _ in range(CHILDREN_MAX)]
        assert server.spawn(requester=requester, agentId="plain").status_code == 403
        for run_id in held:
            server.stop_run(run_id)
            server.run(run_id, "announced")


def test_cap_is_one_for_two_servers(server: Server, partner: Server) -> None:
    crowd = Crowd([server, partner], "shared", CALLERS)
    crowd.play()
    assert crowd.statuses.total() == CALLERS * SPAWNS_EACH
    assert crowd.sampled.total() >= LOOKERS
    crowd.require_cap_kept()
    assert " ERROR " not in server.log() + partner.log()
