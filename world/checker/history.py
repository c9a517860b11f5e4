"""What clients wrote down, and what the log says: the two sides that the checker compares.

A folder holds `calls-*.jsonl`, `events.jsonl`, `inboxes.json` and `terms.json`; `began` and
`ended` are nanoseconds of one monotonic clock, so that calls of all clients can be ordered.
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
"""What is kept of an event's payload."""
ASKED = ("spawn", "message", "batch")
"""The kinds of calls that ask for runs."""
BIRTHS = ("SpawnRequested", "MessageReceived")
"""What a run begins with: a request for a child, or a message to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request and what came of it. `status` is None when the connection died: then nobody
    knows. `what` names the kind of request, `about` the run, session or position it was about."""

    caller: str
    number: int
    what: str
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
        """Who, when and what, for a report."""
        return f"{self.caller} #{self.number} {self.what} {self.about or self.label or ''}".strip()


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
        """Who asked for the child, of a `SpawnRequested` or a `MessageReceived`."""
        return str(self.facts["requester"])


@dataclass(frozen=True, slots=True)
class History:
    """Everything. `inboxes` are the announcements of each requester at the end, as pairs of run
    and position; `cap` is how many active children a session may have. `deaths` says of each server
    that was killed when it began to be away and when it was back; None where answers are lost."""

    calls: tuple[Call, ...]
    events: tuple[Event, ...]
    inboxes: Mapping[str, tuple[tuple[str, int], ...]]
    cap: int
    deaths: tuple[tuple[int, int, int], ...] | None = None


def trace_of(label: str | None) -> str:
    """The trace context that a message of this label is sent with: by it the message is found on
    record again, also by those who were never answered."""
    digest = hashlib.sha256(str(label).encode()).hexdigest()
    return f"00-{digest[:32]}-{digest[32:48]}-01"


def event_of(body: Mapping[str, Any]) -> Event:
    """An event as the server describes it."""
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
    """Return what the checker compares of an event of the log."""
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
    """Writes a history down, line by line, as it happens."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = (folder / f"calls-{name}.jsonl").open("a", encoding="utf-8", buffering=1)

    def call(self, call: Call) -> None:
        """One call that is over."""
        self._file.write(json.dumps(asdict(call)) + "\n")

    def close(self) -> None:
        """No more calls."""
        self._file.close()


def write_events(folder: Path, events: Iterable[Mapping[str, Any]]) -> None:
    """The log, as the server describes it."""
    with (folder / "events.jsonl").open("w", encoding="utf-8") as file:
        for event in events:
            file.write(json.dumps(event) + "\n")


def write_end(
    folder: Path,
    inboxes: Mapping[str, Iterable[tuple[str, int]]],
    cap: int,
    deaths: Sequence[tuple[int, int, int]] | None,
) -> None:
    """The inboxes as they are in the end, the cap that held, and which servers died."""
    whole = {key: list(items) for key, items in inboxes.items()}
    (folder / "inboxes.json").write_text(json.dumps(whole), "utf-8")
    (folder / "terms.json").write_text(json.dumps({"cap": cap, "deaths": deaths}), "utf-8")


def read_history(folder: Path) -> History:
    """All of a folder. `FileNotFoundError` when it was never finished."""
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
