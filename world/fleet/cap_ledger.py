"""The places of one session, read off the log event by event, and off what its callers heard."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

FAULTS_MAX = 20
ANSWERS = (201, 403, 503)
TYPES = ("ChildAdmitted", "ChildReleased")


class CapLedger:
    """Holds the log against the cap: `faults` says where it does not keep it.

    Every event of these types must be of this session: nobody else spawns meanwhile.
    """

    def __init__(self, key: str, cap: int) -> None:
        self._stream = f"session:{key}"
        self._cap = cap
        self._counted: set[str] = set()
        self._accepted: set[str] = set()
        self._refused: set[str] = set()
        self.admitted: set[str] = set()
        self.most = 0
        self.statuses: Counter[int] = Counter()
        self.faults: list[str] = []

    @property
    def answers(self) -> int:
        """How many were heard."""
        return self.statuses.total()

    def must(self, holds: bool, fault: str) -> None:
        """Note the fault unless it holds."""
        if not holds and len(self.faults) < FAULTS_MAX:
            self.faults.append(fault)

    def record(self, event: Mapping[str, Any]) -> None:
        """The next event of the log, one of `TYPES`."""
        at, run_id = f"position {event['position']}", str(event["payload"]["runId"])
        self.must(event["stream"] == self._stream, f"{at} is of {event['stream']}")
        if event["type"] == "ChildReleased":
            self.must(run_id in self._counted, f"{at} releases {run_id}, which has no place")
            self._counted.discard(run_id)
            return
        count, limit = event["payload"]["activeChildren"], event["payload"]["maxChildren"]
        held = len(self._counted)
        self.must(count == held, f"{at} was decided with {count} children, there were {held}")
        self.must(limit == self._cap, f"{at} was decided with the cap {limit}, not {self._cap}")
        self.must(held < self._cap, f"{at} admits a child beside {held}, the cap is {self._cap}")
        self.must(run_id not in self.admitted, f"{at} admits {run_id} once more")
        self._counted.add(run_id)
        self.admitted.add(run_id)
        self.most = max(self.most, len(self._counted))

    def hear(self, status: int, body: Mapping[str, Any], *, of_message: bool = False) -> None:
        """Take the answer to a spawn, or to a message: its session may be at work still."""
        self.statuses[status] += 1
        is_at_work = of_message and (status, body.get("code")) == (409, "run_active")
        waits = of_message and (status, body.get("status")) == (202, "queued")
        known = status in ANSWERS or is_at_work or waits
        self.must(known, f"an answer with {status}: {str(body)[:300]}")
        if status == 201:
            self._accepted.add(str(body["runId"]))
        elif status == 403:
            told = (body.get("rule"), body.get("current"), body.get("limit"))
            expected = ("active_children", self._cap, self._cap)
            self.must(told == expected, f"refused by {told}, not by {expected}")
            self._refused.add(str(body.get("runId")))

    def look(self, session: Mapping[str, Any]) -> None:
        """The session as a server shows it."""
        shown = session["activeChildren"]
        self.must(shown <= self._cap, f"a server shows {shown} children, the cap is {self._cap}")

    def close(self) -> None:
        """Nobody spawns any more and everything is over: every place must be free again."""
        self.must(not self._counted, f"places were lost: {sorted(self._counted)[:FAULTS_MAX]}")
        nowhere = self._accepted - self.admitted
        self.must(not nowhere, f"accepted and never admitted: {sorted(nowhere)[:FAULTS_MAX]}")
        both = self._refused & self.admitted
        self.must(not both, f"refused and yet admitted: {sorted(both)[:FAULTS_MAX]}")
