"""State at each position, computed from the events without the product's code."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain

from world.checker.history import BIRTHS, Call, Event, trace_of

STAGES: Mapping[str, str] = {
    "SpawnRequested": "requested",
    "MessageReceived": "requested",
    "ContinuationPlanned": "session-created",
    "ScriptsResolved": "scripts-resolved",
    "AgentOverridden": "overridden",
    "SessionCreated": "session-created",
    "RunQueued": "queued",
    "RunStarted": "started",
    "RunEnded": "ended",
    "RunAnnounced": "announced",
    "RunArchived": "archived",
    "SpawnRefused": "refused",
}
"""Stage after each event type. Other events keep the stage."""
OVER = ("ended", "announced", "archived", "refused")
DONE = ("announced", "archived", "refused")
Request = tuple[str, str]
OWN_RUNS = ("SessionObserved", "SessionContinued")
"""Event types that give a session a run of its own."""


class Stream:
    """Events in order, found by position without counting from the beginning."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._positions: list[int] = []

    def add(self, event: Event) -> None:
        self.events.append(event)
        self._positions.append(event.position)

    def version_at(self, position: int) -> int:
        """Return the number of events of the stream up to a position."""
        return bisect_right(self._positions, position)

    def until(self, position: int) -> Sequence[Event]:
        """Return the events up to a position."""
        return self.events[: self.version_at(position)]

    def last(self, position: int, limit: int) -> Sequence[Event]:
        """Return the newest events up to a position, newest first."""
        end = self.version_at(position)
        return self.events[max(end - limit, 0) : end][::-1]

    def between(self, behind: int, position: int) -> Sequence[Event]:
        """Return the events after `behind`, up to `position`."""
        return self.events[self.version_at(behind) : self.version_at(position)]


class Places(Stream):
    """Stream of a session, with the runs that count against its cap after each event."""

    def __init__(self) -> None:
        super().__init__()
        self._counted: list[tuple[str, ...]] = [()]

    def add(self, event: Event) -> None:
        super().add(event)
        counted, run_id = self._counted[-1], str(event.facts.get("runId"))
        if event.type == "ChildAdmitted":
            counted = (*counted, run_id)
        elif event.type == "ChildReleased":
            counted = tuple(item for item in counted if item != run_id)
        self._counted.append(counted)

    def counted_at(self, position: int) -> list[str]:
        """Return the runs that count against the cap at a position, in order of admission."""
        return list(self._counted[self.version_at(position)])

    def own_runs_at(self, position: int) -> list[str]:
        """Return the child session's own runs at a position, newest first."""
        began = [event for event in self.until(position) if event.type in OWN_RUNS]
        runs = [item.facts.get("runId") for item in began]
        return [str(run_id) for run_id in reversed(runs) if run_id is not None]

    def is_closed_at(self, position: int) -> bool:
        """Return True if the session was closed by then."""
        return any(event.type == "SessionClosed" for event in self.until(position))


class Lanes:
    """Queued and running runs of each lane, by position.

    A run is queued from `RunQueued` until it is claimed, and running from then until its end.
    """

    def __init__(self) -> None:
        self._queued: list[int] = []
        self._claimed: list[int] = []
        self._ended: dict[bool, list[int]] = {True: [], False: []}
        self._holds: dict[str, bool] = {}

    def take(self, run_id: str, event: Event) -> None:
        """Apply the next event of a run."""
        if event.type == "RunQueued":
            self._queued.append(event.position)
            self._holds[run_id] = False
        elif event.type == "RunClaimed" and not self._holds[run_id]:
            self._claimed.append(event.position)
            self._holds[run_id] = True
        elif event.type == "RunEnded" and run_id in self._holds:
            self._ended[self._holds.pop(run_id)].append(event.position)

    def running_at(self, position: int) -> int:
        """Return the number of running runs."""
        return bisect_right(self._claimed, position) - bisect_right(self._ended[True], position)

    def queued_at(self, position: int) -> int:
        """Return the number of queued runs."""
        left = bisect_right(self._claimed, position) + bisect_right(self._ended[False], position)
        return bisect_right(self._queued, position) - left


class Folded:
    """All streams of a log. Positions are looked up by bisection, without another pass over the
    log.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.runs: dict[str, Stream] = {}
        self.sessions: dict[str, Places] = {}
        self.by_requester: dict[str, Stream] = {}
        self.batches: dict[str, list[Event]] = {}
        self.asked_for: dict[Request, list[list[Event]]] = {}
        self.queued: dict[str, list[Event]] = {}
        self.dropped: set[str] = set()
        self.session_of: dict[str, str] = {}
        self.announced: dict[str, Stream] = {}
        self.lanes = Lanes()
        self._requesters: dict[str, str] = {}
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        kind, _, name = event.stream.partition(":")
        if kind == "session":
            self.sessions.setdefault(name, Places()).add(event)
        if kind != "run":
            return
        self.runs.setdefault(name, Stream()).add(event)
        self.lanes.take(name, event)
        if event.type in BIRTHS:
            self._requesters[name] = event.requester
            self.by_requester.setdefault(event.requester, Stream()).add(event)
        if "batch" in event.facts:
            self._take_member(event)
        elif event.type == "SpawnRequested":
            label = str(event.facts.get("label"))
            self.asked_for.setdefault(("spawn", label), []).append([event])
        elif event.type == "MessageQueued":
            self.queued.setdefault(str(event.facts["runId"]), []).append(event)
        elif event.type == "MessagesDropped":
            self.dropped.update(map(str, event.facts["runIds"]))
        elif event.type == "MessageReceived":
            self.asked_for.setdefault(("message", str(event.trace)), []).append([event])
        if event.type in ("SessionCreated", "MessageReceived"):
            self.session_of[name] = str(event.facts["childSessionKey"])
        if is_announcement(event):
            self.announced.setdefault(self._requesters.get(name, ""), Stream()).add(event)

    def _take_member(self, event: Event) -> None:
        """Register a run of a batch, whose label is that of the request and a number."""
        batch_id = str(event.facts["batch"]["batchId"])
        label, _, _ = str(event.facts.get("label")).rpartition("-")
        members = self.batches.setdefault(batch_id, [])
        if not members:
            self.asked_for.setdefault(("batch", label), []).append(members)
        members.append(event)

    def asked_by(self, call: Call) -> list[Event]:
        """Return each recorded run that this call requested."""
        return list(chain(*self.asked_for.get(request_of(call), ())))

    def requester_of(self, run_id: str) -> str | None:
        """Return the session that requested the run, or None if the run is not recorded."""
        return self._requesters.get(run_id)

    def is_busy_at(self, session_key: str, position: int) -> bool:
        """Return True if, at that position, the session's newest run is not announced, or a run
        that it requested is not done.
        """
        session = self.sessions.get(session_key, Places())
        own = session.own_runs_at(position)
        if own and self.stage_at(own[0], position) not in DONE:
            return True
        answer = self.by_requester.get(session_key, Stream())
        return any(
            self.stage_at(str(run.run_id), position) not in DONE for run in answer.until(position)
        )

    def stage_at(self, run_id: str, position: int) -> str | None:
        """Return the stage of a run, or None before its first event."""
        stream = self.runs.get(run_id)
        for event in reversed(stream.until(position) if stream else ()):
            if event.type in STAGES:
                return STAGES[event.type]
        return None

    def outcome_at(self, run_id: str, position: int) -> str | None:
        """Return the outcome of a run, or None if it has not ended."""
        stream = self.runs.get(run_id)
        ends = [
            event
            for event in (stream.until(position) if stream else ())
            if event.type == "RunEnded"
        ]
        return str(ends[0].facts["outcome"]) if ends else None


def request_of(call: Call) -> Request:
    """Return the identity of a request, which its repetitions and its record share."""
    return call.kind, trace_of(call.label) if call.kind == "message" else str(call.label)


def lane_part(events: Sequence[Event]) -> str | None:
    """Return `queued` or `running` for a run after these events, or None if it is in no lane."""
    types = {event.type for event in events}
    if "RunQueued" not in types or "RunEnded" in types:
        return None
    return "running" if "RunClaimed" in types else "queued"


def is_announcement(event: Event) -> bool:
    """Return True if the event adds an entry to the requester's inbox."""
    if event.type == "RunAnnounced":
        return event.facts.get("disposition") == "inbox"
    return event.type == "SpawnRefused" and "announcement" in event.facts
