"""Three short histories without a contradiction. Each list is one append."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from world.checker.history import Call, Event, History, trace_of

START = datetime(2026, 3, 1, tzinfo=UTC)
REQUESTER = "agent:main:soak-1"
CAP = 2
CAP_OF_TALKED = 1
CAP_OF_RELATED = 5


class Fact(NamedTuple):
    """Stream, type and kept payload of an event."""

    stream: str
    type: str
    facts: Mapping[str, Any]


def child(run_id: str) -> str:
    """Return the key of a run's session."""
    return f"agent:main:subagent:{run_id}"


def run(run_id: str, kind: str, **facts: Any) -> Fact:
    """Return an event of a run."""
    return Fact(f"run:{run_id}", kind, facts)


def session(kind: str, key: str = REQUESTER, **facts: Any) -> Fact:
    """Return an event of a session."""
    return Fact(f"session:{key}", kind, facts)


def requested(run_id: str, label: str = "", mode: str = "run", **facts: Any) -> Fact:
    """Return a request for a run, labeled with its own name by default."""
    request = {"label": label or run_id, "requester": REQUESTER, "mode": mode}
    return run(run_id, "SpawnRequested", **request, **facts)


def received(run_id: str, continues: str) -> Fact:
    """Return a message to the session of run `a`."""
    request = {"requester": REQUESTER, "childSessionKey": child("a"), "mode": "session"}
    return run(run_id, "MessageReceived", **request, runId=run_id, continues=continues)


def admitted(run_id: str, taken: int, cap: int = CAP) -> Fact:
    """Return the admission of a run when this number of places was taken."""
    return session("ChildAdmitted", runId=run_id, activeChildren=taken, maxChildren=cap)


def created(run_id: str) -> Fact:
    """Return the creation of a run's session."""
    return run(run_id, "SessionCreated", childSessionKey=child(run_id))


def ended(run_id: str, outcome: str = "success", **facts: Any) -> list[Fact]:
    """Return the end of a run, which releases it."""
    return [
        run(run_id, "RunEnded", outcome=outcome, **facts),
        session("ChildReleased", runId=run_id),
    ]


def announced(run_id: str) -> list[Fact]:
    """Return the announcement of a run in its requester's inbox."""
    return [run(run_id, "RunAnnounced", disposition="inbox")]


def answered(
    caller: str,
    kind: str,
    began: int,
    position: int | None,
    status: int | None = 200,
    answer: Mapping[str, Any] | None = None,
    **more: Any,
) -> Call:
    """Return a call; one with a label is a request under a key."""
    if label := more.get("label"):
        more |= {"requester": REQUESTER, "key": f"key of {label}"}
    return Call(
        caller=caller,
        number=1,
        kind=kind,
        began=began,
        ended=began + 5,
        server=0,
        status=status,
        position=position,
        answer=answer or {},
        **more,
    )


def history(appends: Iterable[list[Fact]], calls: tuple[Call, ...], cap: int = CAP) -> History:
    """Return the history of these appends, one event per second, with the resulting inbox.

    The only server was killed, and came back at 32.
    """
    events: list[Event] = []
    for append in appends:
        last = len(events) + len(append)
        for stream, kind, facts in append:
            position = len(events) + 1
            kept = [event for event in events if event.stream == stream]
            at = START + timedelta(seconds=position)
            run_id = stream.removeprefix("run:") if stream.startswith("run:") else None
            trace = trace_of(run_id) if kind == "MessageReceived" else None
            events.append(
                Event(position, stream, len(kept) + 1, kind, at, last, run_id, facts, trace)
            )
    inbox = tuple(
        (str(event.run_id), event.position) for event in events if event.type == "RunAnnounced"
    )
    return History(calls, tuple(events), {REQUESTER: inbox}, cap, ((0, 1, 32),))


def told_of(run_id: str, **more: Any) -> dict[str, Any]:
    """Return the answer to an accepted spawn, or to a message to its session."""
    return {"runId": run_id, "childSessionKey": child(run_id), **more}


_ENDED = {"runId": "a", "stage": "ended", "outcome": "success", "version": 6}
LISTED = [
    {"runId": "b", "stage": "refused", "outcome": None, "version": 2},
    {**_ENDED, "stage": "announced", "version": 7},
]
_SESSION = {"version": 2, "activeChildren": 1, "activeRuns": ["a"]}
_ENTRY = {"runId": "a", "position": 11, "state": "delivered"}
_INBOX = {"after": 0, "limit": 50, "items": [_ENTRY]}
_PAGE = {"after": 2, "limit": 3, "positions": [3, 4, 5]}
_REFUSED = {"runId": "b", "rule": "agent_unknown", "code": "spawn_error"}

SMALL = history(
    (
        [session("SessionObserved"), requested("a"), admitted("a", 0)],
        [run("a", "ScriptsResolved")],
        [created("a"), session("SessionObserved", child("a")), run("a", "RunQueued")],
        [run("a", "RunClaimed")],
        ended("a"),
        announced("a"),
        [requested("b"), run("b", "SpawnRefused", rule="agent_unknown")],
        [run("a", "AnnouncementAcknowledged")],
    ),
    (
        answered("first", "spawn", 10, 7, 201, told_of("a"), label="a"),
        answered("lost", "spawn", 11, None, None, label="a"),
        answered("again", "spawn", 20, 8, 201, told_of("a"), label="a"),
        answered("sees lanes", "lanes", 29, 8, answer={"running": ["a"], "queued": []}),
        answered("reads", "run", 30, 10, answer=_ENDED, about="a"),
        answered("looks back", "session", 32, 3, answer=_SESSION, about=REQUESTER, at=3),
        answered("inbox", "inbox", 34, 11, answer=_INBOX, about=REQUESTER),
        answered("refused", "spawn", 40, 13, 422, _REFUSED, label="b"),
        answered("lists", "runs", 50, 13, answer={"limit": 50, "items": LISTED}, about=REQUESTER),
        answered("takes", "acknowledge", 60, 14, about="a"),
        answered("stops", "stop", 60, 14, answer={"runId": "a"}, about="a"),
        answered("asks for lanes", "lanes", 60, 14, answer={"running": [], "queued": []}),
        answered("pages", "events", 60, 14, answer=_PAGE),
    ),
)
"""Run `a` lives its whole life, run `b` is refused."""

_GOES_ON = told_of("a", runId="m", continues="a")
_TURNED_AWAY = {"runId": "n", "rule": "model", "code": "spawn_error"}
_FULL = {"runId": "z", "rule": "active_children", "current": 1, "limit": 1}
_WAITS = told_of("w", runId="q", continues="w")
_ACTIVE, _CLOSED = {"code": "run_active"}, {"code": "session_closed"}
_STOPPED = {"runId": "m", "wasOver": True, "closed": True}
_OWN = {"version": 2, "activeChildren": 0, "activeRuns": [], "ownRuns": ["m", "a"]}

TALKED = history(
    (
        [session("SessionObserved"), requested("a", mode="session"), admitted("a", 0, 1)],
        [created("a"), session("SessionObserved", child("a"), runId="a"), run("a", "RunQueued")],
        [run("a", "RunClaimed")],
        ended("a"),
        announced("a"),
        [
            received("m", "a"),
            admitted("m", 0, 1),
            run("a", "RunContinued", runId="m"),
            session("SessionContinued", child("a"), runId="m"),
            run("m", "ContinuationPlanned"),
            run("m", "RunQueued"),
        ],
        [run("m", "RunClaimed")],
        ended("m"),
        announced("m"),
        [received("n", "m"), run("n", "SpawnRefused", rule="model")],
        [session("SessionClosed", child("a")), run("m", "ArchiveScheduled")],
        [run("m", "RunArchived"), run("a", "ArchiveScheduled")],
        [run("a", "RunArchived")],
        [requested("w"), admitted("w", 0, 1)],
        [created("w"), session("SessionObserved", child("w"), runId="w"), run("w", "RunQueued")],
        [run("w", "RunClaimed")],
        [requested("z"), run("z", "SpawnRefused", rule="active_children")],
        [run("w", "MessageQueued", runId="q")],
        [run("w", "StopRequested"), run("w", "MessagesDropped", runIds=["q"])],
        ended("w", "stopped"),
        announced("w"),
    ),
    (
        answered("spawns", "spawn", 10, 6, 201, told_of("a"), label="a"),
        answered("too soon", "message", 20, 8, 409, _ACTIVE, label="early", about="a"),
        answered("says", "message", 30, 16, 201, _GOES_ON, label="m", about="a"),
        answered("lost", "message", 31, None, None, label="m", about="a"),
        answered("says again", "message", 40, 17, 201, _GOES_ON, label="m", about="a"),
        answered("looks", "session", 45, 17, answer=_OWN, about=child("a")),
        answered("is refused", "message", 50, 22, 422, _TURNED_AWAY, label="n", about="m"),
        answered("closes", "stop session", 60, 24, answer=_STOPPED, about=child("a")),
        answered("too late", "message", 70, 25, 409, _CLOSED, label="late", about="a"),
        answered("spawns one more", "spawn", 80, 32, 201, told_of("w"), label="w"),
        answered("too many", "spawn", 85, 35, 403, _FULL, label="z"),
        answered("waits", "message", 90, 36, 202, _WAITS, label="q", about="w"),
    ),
    CAP_OF_TALKED,
)
"""Run `a` begins a session, `m` continues it, `n` is refused; then the session is stopped. While
run `w` is running there is no place for `z`. Message `q` waits for it, and is dropped by its stop.
"""


def related(label: str, *awaited: tuple[str, str], run_id: str = "", **facts: Any) -> Fact:
    """Return a request for a run with dependencies and their required outcomes."""
    dependencies = [{"runId": name, "require": require} for name, require in awaited]
    return requested(run_id or label, label, dependencies=dependencies, **facts)


def member(label: str, number: int, *awaited: tuple[str, str]) -> Fact:
    """Return a request for one of the two runs of a batch."""
    run_ids = [f"{label}1", f"{label}2"]
    batch = {"batchId": f"batch of {label}", "index": number - 1, "runIds": run_ids}
    return related(f"{label}-{number}", *awaited, run_id=f"{label}{number}", batch=batch)


def place(run_id: str, taken: int) -> Fact:
    """Return the admission of a run under the greater cap."""
    return admitted(run_id, taken, CAP_OF_RELATED)


def met(run_id: str) -> Fact:
    """Return the event that the dependency `t` of this run has succeeded."""
    return run(run_id, "DependencyMet", runId="t", outcome="success")


BATCH = [told_of("p1", label="p-1"), told_of("p2", label="p-2")]
_BATCH = {"batchId": "batch of p", "runs": BATCH}
_REFUSED_BATCH = {**_REFUSED, "batchId": "batch of r", "runId": "r1"}
_UNKNOWN = {"rule": "agent_unknown"}
_ON_T = ("t", "success")

RELATED = history(
    (
        [session("SessionObserved")],
        [related("t"), place("t", 0)],
        [created("t"), run("t", "RunQueued")],
        [member("p", 1, _ON_T), member("p", 2, _ON_T), place("p1", 1), place("p2", 2)],
        [
            created("p1"),
            run("p1", "RunWaits", runIds=["t"]),
            created("p2"),
            run("p2", "RunWaits", runIds=["t"]),
        ],
        [run("t", "RunClaimed")],
        ended("t"),
        announced("t"),
        [met("p1"), run("p1", "RunQueued")],
        [met("p2"), run("p2", "RunQueued")],
        [run("p1", "RunClaimed")],
        ended("p1"),
        announced("p1"),
        [run("p2", "RunClaimed")],
        ended("p2"),
        announced("p2"),
        [related("f"), place("f", 0)],
        [created("f"), run("f", "RunQueued")],
        [related("w", ("f", "success"), ("t", "ended")), place("w", 1)],
        [created("w"), met("w"), run("w", "RunWaits", runIds=["f"])],
        ended("f", "stopped", reason="stopped"),
        announced("f"),
        ended("w", "error", reason="dependency_failed"),
        announced("w"),
        [
            member("r", 1),
            member("r", 2),
            run("r1", "SpawnRefused", **_UNKNOWN),
            run("r2", "SpawnRefused", **_UNKNOWN),
        ],
    ),
    (
        answered("target", "spawn", 10, 5, 201, told_of("t"), label="t"),
        answered("batch", "batch", 20, 13, 201, _BATCH, label="p"),
        answered("failing", "spawn", 30, 33, 201, told_of("f"), label="f"),
        answered("waiting", "spawn", 40, 38, 201, told_of("w"), label="w"),
        answered("refused", "batch", 50, 48, 422, _REFUSED_BATCH, label="r"),
    ),
    CAP_OF_RELATED,
)
"""The batch `p1`, `p2` waits for `t`; `f` fails, and `w` with it; the batch `r1`, `r2` is
refused.
"""
