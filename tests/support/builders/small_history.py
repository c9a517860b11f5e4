"""A short history without a contradiction, and ways to put one into it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.soak.history import Call, Event, History

START = datetime(2026, 3, 1, tzinfo=UTC)
REQUESTER = "agent:main:soak-1"
CHILD = "agent:main:subagent:a"
CAP = 2

# Stream, version, type, the last position of its append, and what is kept of its payload. Run `a`
# lives its whole life, run `b` is refused.
_STORY: tuple[tuple[str, int, str, int, Mapping[str, Any]], ...] = (
    (f"session:{REQUESTER}", 1, "SessionObserved", 3, {}),
    ("run:a", 1, "SpawnRequested", 3, {"label": "a", "requester": REQUESTER, "mode": "run"}),
    (
        f"session:{REQUESTER}",
        2,
        "ChildAdmitted",
        3,
        {"runId": "a", "activeChildren": 0, "maxChildren": CAP},
    ),
    ("run:a", 2, "ScriptsResolved", 4, {}),
    ("run:a", 3, "SessionCreated", 7, {"childSessionKey": CHILD}),
    (f"session:{CHILD}", 1, "SessionObserved", 7, {}),
    ("run:a", 4, "RunQueued", 7, {}),
    ("run:a", 5, "RunClaimed", 8, {}),
    ("run:a", 6, "RunEnded", 10, {"outcome": "success"}),
    (f"session:{REQUESTER}", 3, "ChildReleased", 10, {"runId": "a"}),
    ("run:a", 7, "RunAnnounced", 11, {"disposition": "inbox"}),
    ("run:b", 1, "SpawnRequested", 13, {"label": "b", "requester": REQUESTER, "mode": "run"}),
    ("run:b", 2, "SpawnRefused", 13, {"rule": "agent_unknown"}),
    ("run:a", 8, "AnnouncementAcknowledged", 14, {}),
)


def _call(name: str, what: str, began: int, position: int | None, **more: Any) -> Call:
    plain = {"caller": name, "number": 1, "what": what, "server": 0, "status": 200}
    return Call(**{**plain, "began": began, "ended": began + 5, "position": position, **more})


def _asked(name: str, label: str, **more: Any) -> dict[str, Any]:
    return {"label": label, "requester": REQUESTER, "key": f"key of {label}", **more}


_ACCEPTED = {"runId": "a", "childSessionKey": CHILD}
_REFUSED = {"runId": "b", "rule": "agent_unknown", "code": "spawn_error"}
_ENDED = {"runId": "a", "stage": "ended", "outcome": "success", "version": 6}
_ANNOUNCED = {**_ENDED, "stage": "announced", "version": 7}
_ENTRY = {"runId": "a", "position": 11, "state": "delivered"}
_CALLS = (
    _call("first", "spawn", 10, 7, status=201, answer=_ACCEPTED, **_asked("first", "a")),
    _call("lost", "spawn", 11, None, status=None, **_asked("lost", "a")),
    _call("again", "spawn", 20, 8, status=201, answer=_ACCEPTED, **_asked("again", "a")),
    _call("sees lanes", "lanes", 29, 8, answer={"running": ["a"], "queued": []}),
    _call("reads", "run", 30, 10, about="a", answer=_ENDED),
    _call(
        "looks back",
        "session",
        32,
        3,
        at=3,
        about=REQUESTER,
        answer={"version": 2, "activeChildren": 1, "activeRuns": ["a"]},
    ),
    _call(
        "inbox",
        "inbox",
        34,
        11,
        about=REQUESTER,
        answer={"after": 0, "limit": 50, "items": [_ENTRY]},
    ),
    _call("refused", "spawn", 40, 13, status=422, answer=_REFUSED, **_asked("refused", "b")),
    _call(
        "lists",
        "runs",
        50,
        13,
        about=REQUESTER,
        answer={
            "limit": 50,
            "items": [
                {"runId": "b", "stage": "refused", "outcome": None, "version": 2},
                _ANNOUNCED,
            ],
        },
    ),
    _call("takes", "acknowledge", 60, 14, about="a"),
    _call("stops", "stop", 60, 14, about="a", answer={"runId": "a"}),
    _call("asks for lanes", "lanes", 60, 14, answer={"running": [], "queued": []}),
    _call("pages", "events", 60, 14, answer={"after": 2, "limit": 3, "positions": [3, 4, 5]}),
)


def small_history() -> History:
    """The history."""
    events = tuple(
        Event(
            position=position,
            stream=stream,
            version=version,
            type=type_name,
            recorded_at=START + timedelta(seconds=position),
            append_last=last,
            run_id=stream.removeprefix("run:") if stream.startswith("run:") else None,
            facts=facts,
        )
        for position, (stream, version, type_name, last, facts) in enumerate(_STORY, start=1)
    )
    return History(_CALLS, events, {REQUESTER: (("a", 11),)}, CAP)


def with_event(history: History, place: int, /, **changes: Any) -> History:
    """Another event in this place; `facts` are added to those it has."""
    changes["facts"] = {**history.events[place - 1].facts, **changes.get("facts", {})}
    events = list(history.events)
    events[place - 1] = replace(events[place - 1], **changes)
    return replace(history, events=tuple(events))


def without_event(history: History, position: int) -> History:
    """The log without that event, and without a gap."""
    kept = [event for event in history.events if event.position != position]
    events = tuple(
        replace(event, position=number, append_last=max(number, event.append_last - 1))
        for number, event in enumerate(kept, start=1)
    )
    return replace(history, events=events)


def with_more_events(history: History, *more: Event) -> History:
    """Further events at the end of the log."""
    return replace(history, events=(*history.events, *more))


def one_more(history: History, like: int, **changes: Any) -> Event:
    """An event like that at a position, as the next one of the log and of its stream."""
    event = history.events[like - 1]
    number = len(history.events) + 1
    stream = changes.get("stream", event.stream)
    version = 1 + sum(one.stream == stream for one in history.events)
    place = {"position": number, "append_last": number, "version": version}
    at = START + timedelta(seconds=number)
    facts = {**event.facts, **changes.pop("facts", {})}
    return replace(event, **{"recorded_at": at, **place, **changes, "facts": facts})


def with_call(history: History, caller: str, **changes: Any) -> History:
    """Another answer to one of the calls; `answer` is changed where it is given."""
    calls = list(history.calls)
    (number,) = [place for place, call in enumerate(calls) if call.caller == caller]
    changes["answer"] = {**calls[number].answer, **changes.get("answer", {})}
    calls[number] = replace(calls[number], **changes)
    return replace(history, calls=tuple(calls))
