"""Calls that clients noted, and the events of the log: the two sides that the checker compares.

A folder holds `calls-*.jsonl`, `events.jsonl`, `inboxes.json` and `terms.json`. `began` and `ended`
are nanoseconds of one monotonic clock, so calls of all clients can be ordered.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from application.log.envelope import RecordedEvent

FACTS = (
    "runId",
    "label",
    "rule",
    "outcome",
    "disposition",
    "activeChildren",
    "maxChildren",
    "childSessionKey",
    "announcement",
    "continues",
    "byRequester",
    "stoppedByRequester",
    "batch",
    "dependencies",
    "runIds",
    "reason",
)
"""Members of an event's payload that the checker keeps."""
ASKED = ("spawn", "message", "batch")
"""Kinds of calls that request runs."""
BIRTHS = ("SpawnRequested", "MessageReceived")
"""Events that begin a run: a request for a child, or a message to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request and its answer.

    `status` is None if the connection was lost, so that the outcome is unknown. `kind` is the kind
    of request; `about` is its run, session or position.
    """

    caller: str
    number: int
    kind: str
    began: int
    ended: int
    server: int
    about: str | None = None
    at: int | None = None
    key: str | None = None
    label: str | None = None
    requester: str | None = None
    status: int | None = None
    position: int | None = None
    replayed: bool = False
    answer: Mapping[str, Any] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """Return caller, number and subject of the call, for a report."""
        return f"{self.caller} #{self.number} {self.kind} {self.about or self.label or ''}".strip()


@dataclass(frozen=True, slots=True)
class Event:
    """An event of the log; `facts` are the parts of its payload that are compared."""

    position: int
    stream: str
    version: int
    type: str
    recorded_at: datetime
    append_last: int
    run_id: str | None
    facts: Mapping[str, Any]
    trace: str | None = None

    @property
    def requester(self) -> str:
        """Return the requesting session of a `SpawnRequested` or `MessageReceived` event."""
        return str(self.facts["requester"])


@dataclass(frozen=True, slots=True)
class History:
    """All calls and events.

    `inboxes` are the final announcements of each requester, as pairs of run and position. `cap` is
    the maximum number of active children of a session. `deaths` are the times at which each killed
    server went away and came back; None if answers may be lost.
    """

    calls: tuple[Call, ...]
    events: tuple[Event, ...]
    inboxes: Mapping[str, tuple[tuple[str, int], ...]]
    cap: int
    deaths: tuple[tuple[int, int, int], ...] | None = None


def trace_of(label: str | None) -> str:
    """Return the trace context of a message with this label.

    It identifies the message on record, even if it was never answered.
    """
    digest = hashlib.sha256(str(label).encode()).hexdigest()
    return f"00-{digest[:32]}-{digest[32:48]}-01"


def event_of(body: Mapping[str, Any]) -> Event:
    """Return the event that a server described in JSON."""
    payload = body["payload"]
    facts = {name: payload[name] for name in FACTS if payload.get(name) is not None}
    if body["type"] in BIRTHS:
        facts["requester"] = payload["requester"]["sessionKey"]
        facts["mode"] = payload["options"]["mode"]
        if payload["options"].get("cleanup") == "delete":
            facts["cleanup"] = "delete"
    if facts.get("announcement") is not None:
        facts["announcement"] = True
    return Event(
        position=body["position"],
        stream=body["stream"],
        version=body["version"],
        type=body["type"],
        recorded_at=datetime.fromisoformat(body["recordedAt"]),
        append_last=body["appendLast"],
        run_id=body["runId"],
        facts=facts,
        trace=body["traceparent"],
    )


def event_of_record(recorded: "RecordedEvent") -> Event:
    """Return the facts of a recorded event that the checker compares."""
    envelope = recorded.envelope
    run_id = envelope.provenance.run_id
    return event_of(
        {
            "position": envelope.position,
            "stream": envelope.stream,
            "version": envelope.version,
            "type": envelope.type,
            "recordedAt": envelope.recorded_at.isoformat(),
            "appendLast": envelope.append_last,
            "runId": None if run_id is None else str(run_id),
            "traceparent": envelope.provenance.traceparent,
            "payload": recorded.event.members(),
        }
    )


class Writing:
    """Writer of a history, line by line, as it happens."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = (folder / f"calls-{name}.jsonl").open("a", encoding="utf-8", buffering=1)

    def call(self, call: Call) -> None:
        """Write a completed call."""
        self._file.write(json.dumps(asdict(call)) + "\n")

    def close(self) -> None:
        self._file.close()


def write_events(folder: Path, events: Iterable[Mapping[str, Any]]) -> None:
    """Write the events of the log, as a server describes them."""
    with (folder / "events.jsonl").open("w", encoding="utf-8") as file:
        for event in events:
            file.write(json.dumps(event) + "\n")


def write_end(
    folder: Path,
    inboxes: Mapping[str, Iterable[tuple[str, int]]],
    cap: int,
    deaths: Sequence[tuple[int, int, int]] | None,
) -> None:
    """Write the final inboxes, the cap, and the deaths of servers."""
    whole = {key: list(items) for key, items in inboxes.items()}
    (folder / "inboxes.json").write_text(json.dumps(whole), "utf-8")
    (folder / "terms.json").write_text(json.dumps({"cap": cap, "deaths": deaths}), "utf-8")


def read_history(folder: Path) -> History:
    """Read a folder.

    Raises:
        FileNotFoundError: The history in it is not complete.
    """
    calls: list[Call] = []
    for path in sorted(folder.glob("calls-*.jsonl")):
        with path.open(encoding="utf-8") as file:
            calls += [Call(**json.loads(line)) for line in file]
    with (folder / "events.jsonl").open(encoding="utf-8") as file:
        events = tuple(event_of(json.loads(line)) for line in file)
    inboxes = {
        key: tuple((run_id, position) for run_id, position in items)
        for key, items in json.loads((folder / "inboxes.json").read_text("utf-8")).items()
    }
    terms = json.loads((folder / "terms.json").read_text("utf-8"))
    died = terms["deaths"]
    deaths = None if died is None else tuple((number, at, back) for number, at, back in died)
    return History(tuple(calls), events, inboxes, terms["cap"], deaths)
