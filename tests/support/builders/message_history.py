"""A short history of a session that goes on with a message, and another that is turned away."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.soak.history import Call, Event, History, trace_of
from tests.support.builders.small_history import CAP, REQUESTER, START
from tests.support.faults.history_mutations import (
    Mutation,
    added_event,
    changed_call,
    changed_event,
    missing_event,
)

KEY = "agent:main:subagent:a"
WAITING_KEY = "agent:main:subagent:w"
_CHILD = {"requester": REQUESTER, "childSessionKey": KEY, "mode": "session"}

# Stream, version, type, the last position of its append, and what is kept of its payload. Run `a`
# begins the session, `m` goes on with it, `n` is refused; then the session is stopped. Behind run
# `w` message `q` waits, and is dropped when that is stopped.
_STORY: tuple[tuple[str, int, str, int, Mapping[str, Any]], ...] = (
    (f"session:{REQUESTER}", 1, "SessionObserved", 3, {}),
    ("run:a", 1, "SpawnRequested", 3, {"label": "a", "requester": REQUESTER, "mode": "session"}),
    (
        f"session:{REQUESTER}",
        2,
        "ChildAdmitted",
        3,
        {"runId": "a", "activeChildren": 0, "maxChildren": CAP},
    ),
    ("run:a", 2, "SessionCreated", 6, {"childSessionKey": KEY}),
    (f"session:{KEY}", 1, "SessionObserved", 6, {"runId": "a"}),
    ("run:a", 3, "RunQueued", 6, {}),
    ("run:a", 4, "RunClaimed", 7, {}),
    ("run:a", 5, "RunEnded", 9, {"outcome": "success"}),
    (f"session:{REQUESTER}", 3, "ChildReleased", 9, {"runId": "a"}),
    ("run:a", 6, "RunAnnounced", 10, {"disposition": "inbox"}),
    ("run:m", 1, "MessageReceived", 16, {**_CHILD, "runId": "m", "continues": "a"}),
    (
        f"session:{REQUESTER}",
        4,
        "ChildAdmitted",
        16,
        {"runId": "m", "activeChildren": 0, "maxChildren": CAP},
    ),
    ("run:a", 7, "RunContinued", 16, {"runId": "m"}),
    (f"session:{KEY}", 2, "SessionContinued", 16, {"runId": "m"}),
    ("run:m", 2, "ContinuationPlanned", 16, {}),
    ("run:m", 3, "RunQueued", 16, {}),
    ("run:m", 4, "RunClaimed", 17, {}),
    ("run:m", 5, "RunEnded", 19, {"outcome": "success"}),
    (f"session:{REQUESTER}", 5, "ChildReleased", 19, {"runId": "m"}),
    ("run:m", 6, "RunAnnounced", 20, {"disposition": "inbox"}),
    ("run:n", 1, "MessageReceived", 22, {**_CHILD, "runId": "n", "continues": "m"}),
    ("run:n", 2, "SpawnRefused", 22, {"rule": "active_children"}),
    (f"session:{KEY}", 3, "SessionClosed", 24, {}),
    ("run:m", 7, "ArchiveScheduled", 24, {}),
    ("run:m", 8, "RunArchived", 26, {}),
    ("run:a", 8, "ArchiveScheduled", 26, {}),
    ("run:a", 9, "RunArchived", 27, {}),
    ("run:w", 1, "SpawnRequested", 29, {"label": "w", "requester": REQUESTER, "mode": "run"}),
    (
        f"session:{REQUESTER}",
        6,
        "ChildAdmitted",
        29,
        {"runId": "w", "activeChildren": 0, "maxChildren": CAP},
    ),
    ("run:w", 2, "SessionCreated", 32, {"childSessionKey": WAITING_KEY}),
    (f"session:{WAITING_KEY}", 1, "SessionObserved", 32, {"runId": "w"}),
    ("run:w", 3, "RunQueued", 32, {}),
    ("run:w", 4, "RunClaimed", 33, {}),
    ("run:w", 5, "MessageQueued", 34, {"runId": "q"}),
    ("run:w", 6, "StopRequested", 36, {}),
    ("run:w", 7, "MessagesDropped", 36, {"runIds": ["q"]}),
    ("run:w", 8, "RunEnded", 38, {"outcome": "stopped"}),
    (f"session:{REQUESTER}", 7, "ChildReleased", 38, {"runId": "w"}),
    ("run:w", 9, "RunAnnounced", 39, {"disposition": "inbox"}),
)


def _call(name: str, what: str, began: int, position: int | None, **more: Any) -> Call:
    plain = {"caller": name, "number": 1, "what": what, "server": 0, "status": 200}
    return Call(**{**plain, "began": began, "ended": began + 5, "position": position, **more})


def _said(name: str, label: str, began: int, position: int | None, **more: Any) -> Call:
    asked = {"label": label, "requester": REQUESTER, "key": f"key of {label}", "about": "a"}
    return _call(name, "message", began, position, **{**asked, **more})


_GOES_ON = {"runId": "m", "continues": "a", "childSessionKey": KEY}
_REFUSED = {"runId": "n", "rule": "active_children", "code": "spawn_forbidden"}
_STOPPED = {"runId": "m", "wasOver": True, "closed": True}
_WAITS = {"runId": "q", "continues": "w", "childSessionKey": WAITING_KEY}
_CALLS = (
    _call(
        "spawns",
        "spawn",
        10,
        6,
        status=201,
        label="a",
        requester=REQUESTER,
        answer={"runId": "a", "childSessionKey": KEY},
    ),
    _said("too soon", "early", 20, 8, status=409, answer={"code": "run_active"}),
    _said("says", "m", 30, 16, status=201, answer=_GOES_ON),
    _said("lost", "m", 31, None, status=None),
    _said("says again", "m", 40, 17, status=201, answer=_GOES_ON),
    _call(
        "looks",
        "session",
        45,
        17,
        about=KEY,
        answer={"version": 2, "activeChildren": 0, "activeRuns": [], "ownRuns": ["m", "a"]},
    ),
    _said("is refused", "n", 50, 22, status=403, about="m", answer=_REFUSED),
    _call("closes", "stop session", 60, 24, about=KEY, answer=_STOPPED),
    _said("too late", "late", 70, 25, status=409, answer={"code": "session_closed"}),
    _call(
        "spawns one more",
        "spawn",
        80,
        32,
        status=201,
        label="w",
        requester=REQUESTER,
        answer={"runId": "w", "childSessionKey": WAITING_KEY},
    ),
    _said("waits", "q", 90, 34, status=202, about="w", answer=_WAITS),
)


def talked_history() -> History:
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
            trace=trace_of(stream.removeprefix("run:")) if type_name == "MessageReceived" else None,
        )
        for position, (stream, version, type_name, last, facts) in enumerate(_STORY, start=1)
    )
    return History(_CALLS, events, {REQUESTER: (("a", 10), ("m", 20), ("w", 39))}, CAP)


def _unsent(label: str) -> Mutation:
    return lambda history: replace(
        history, calls=tuple(one for one in history.calls if one.label != label)
    )


CONTRADICTIONS: Mapping[str, tuple[str, Mutation]] = {
    "an accepted message that is nowhere": (
        "accepted_messages_are_recorded",
        changed_event(11, trace=trace_of("x")),
    ),
    "an accepted message under another run": (
        "accepted_messages_are_recorded",
        changed_call("says", answer={"runId": "n"}),
    ),
    "a sender told of another run before": (
        "accepted_messages_are_recorded",
        changed_call("says", answer={"continues": "b"}),
    ),
    "a message that went to another session": (
        "accepted_messages_are_recorded",
        changed_call("says", about="b"),
    ),
    "an answer before its run was queued": (
        "accepted_messages_are_recorded",
        changed_call("says", position=15),
    ),
    "a message that waits and is nowhere": ("queued_messages_are_recorded", missing_event(34)),
    "a message that is neither dropped nor a run": (
        "queued_messages_are_recorded",
        missing_event(36),
    ),
    "an answer before its message waited": (
        "queued_messages_are_recorded",
        changed_call("waits", position=33),
    ),
    "a refused message by another rule": (
        "refused_messages_are_recorded",
        changed_event(22, facts={"rule": "thinking"}),
    ),
    "a refused message that is nowhere": ("refused_messages_are_recorded", missing_event(21)),
    "a message recorded twice": (
        "sent_once_is_recorded_once",
        added_event(11, stream="run:o", run_id="o"),
    ),
    "a message that nobody has sent": ("sent_once_is_recorded_once", _unsent("m")),
    "a message that was turned away and is there": (
        "sent_once_is_recorded_once",
        changed_event(21, trace=trace_of("early")),
    ),
    "a continuation that takes no place": ("sessions_go_on_in_turn", missing_event(12)),
    "a continuation of no run": ("sessions_go_on_in_turn", missing_event(13)),
    "a place for another run": ("sessions_go_on_in_turn", changed_event(12, facts={"runId": "a"})),
    "two runs that continue the same one": (
        "sessions_go_on_in_turn",
        changed_event(14, facts={"runId": "x"}),
    ),
    "a message to a run that is at work": (
        "sessions_go_on_in_turn",
        changed_event(10, type="EffectAttempted"),
    ),
    "a message above one that is at work": (
        "sessions_go_on_in_turn",
        changed_event(
            1, stream="run:c", type="SpawnRequested", run_id="c", facts={"requester": KEY}
        ),
    ),
    "a message to a session that was closed": (
        "sessions_go_on_in_turn",
        changed_event(5, type="SessionClosed"),
    ),
    "a run that was continued twice": ("lives_are_whole", added_event(13, facts={"runId": "n"})),
    "a refused message that took a place": (
        "sessions_go_on_in_turn",
        changed_event(21, append_last=23),
    ),
    "an earlier run that was put away first": ("put_away_in_turn", missing_event(25)),
    "a closed session that is open": (
        "turned_away_for_a_reason",
        changed_call("too late", position=22),
    ),
    "a session at work that is not": (
        "turned_away_for_a_reason",
        changed_call("too late", answer={"code": "run_active"}),
    ),
    "a stopped session that is open": (
        "stopped_sessions_are_over",
        changed_call("closes", position=22),
    ),
    "a stopped session whose run goes on": (
        "stopped_sessions_are_over",
        lambda history: changed_event(18, type="EffectAttempted")(
            changed_event(20, type="EffectAttempted")(history)
        ),
    ),
    "a session without its newest run": (
        "sessions_as_recorded",
        changed_call("looks", answer={"ownRuns": ["a"]}),
    ),
    "a message in front of what was told before": (
        "spawns_in_order",
        changed_call("too soon", position=11),
    ),
    "an answer in front of its message": (
        "answers_behind_what_they_tell",
        changed_call("is refused", position=20),
    ),
    "a message key that means two runs": (
        "one_key_is_one_run",
        changed_call("says again", answer={"runId": "n"}),
    ),
    "a run of a message that nobody was told of": (
        "announced_once",
        lambda history: replace(history, inboxes={REQUESTER: (("a", 10),)}),
    ),
}
