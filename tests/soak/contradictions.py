"""Ways to put a contradiction into a short history, and the rule of the checker that finds each."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import reduce
from typing import Any

from tests.soak.small_histories import BATCH, LISTED, REQUESTER, START, child
from world.checker.history import History, trace_of

Mutation = Callable[[History], History]
Table = Mapping[str, Mapping[str, Mutation]]
"""Mutations that each rule finds, by description."""


def event(place: int, /, **changes: Any) -> Mutation:
    """Change the event in this place; `facts` are added to its own."""

    def mutate(history: History) -> History:
        events = list(history.events)
        facts = {**events[place - 1].facts, **changes.get("facts", {})}
        events[place - 1] = replace(events[place - 1], **{**changes, "facts": facts})
        return replace(history, events=tuple(events))

    return mutate


def missing(position: int) -> Mutation:
    """Remove an event from the log, without a gap."""

    def mutate(history: History) -> History:
        kept = [event for event in history.events if event.position != position]
        events = tuple(
            replace(fact, position=number, append_last=max(number, fact.append_last - 1))
            for number, fact in enumerate(kept, start=1)
        )
        return replace(history, events=events)

    return mutate


def more(like: int, **changes: Any) -> Mutation:
    """Repeat the event of a position as the next one of the log and of its stream."""

    def mutate(history: History) -> History:
        event = history.events[like - 1]
        number = len(history.events) + 1
        stream = changes.get("stream", event.stream)
        facts = {**event.facts, **changes.get("facts", {})}
        place = {
            "recorded_at": START + timedelta(seconds=number),
            "position": number,
            "append_last": number,
            "version": 1 + sum(event.stream == stream for event in history.events),
        }
        added = replace(event, **{**place, **changes, "facts": facts})
        return replace(history, events=(*history.events, added))

    return mutate


def call(caller: str, **changes: Any) -> Mutation:
    """Change a caller's request or answer; `answer` is merged."""

    def mutate(history: History) -> History:
        calls = list(history.calls)
        (number,) = [place for place, call in enumerate(calls) if call.caller == caller]
        answer = {**calls[number].answer, **changes.get("answer", {})}
        calls[number] = replace(calls[number], **{**changes, "answer": answer})
        return replace(history, calls=tuple(calls))

    return mutate


def unasked(label: str) -> Mutation:
    """Remove the calls with this label, but not their record."""
    return lambda history: replace(
        history, calls=tuple(call for call in history.calls if call.label != label)
    )


def inbox(*entries: tuple[str, int]) -> Mutation:
    """Replace the final inbox of the requester."""
    return lambda history: replace(history, inboxes={REQUESTER: entries})


def died(server: int, began: int, back: int) -> Mutation:
    """Make this the only killed server."""
    return lambda history: replace(history, deaths=((server, began, back),))


def all_of(*mutations: Mutation) -> Mutation:
    """Apply mutations one after the other."""
    return lambda history: reduce(lambda changed, mutate: mutate(changed), mutations, history)


IN_SMALL: Table = {
    "in_order": {
        "a gap": event(9, position=10),
        "two positions changed places": event(4, position=3),
        "a version that is missing": event(7, version=5),
        "a time that runs backwards": event(8, recorded_at=START),
    },
    "whole_appends": {
        "half an append": event(14, append_last=15),
        "an append that was torn": event(6, append_last=8),
    },
    "caps_kept": {
        "a decision from an old count": event(3, facts={"activeChildren": 1}),
        "a decision under another cap": event(3, facts={"maxChildren": 3}),
        "a child that took no place": missing(3),
        "a place taken twice": all_of(more(3), more(10)),
        "a child too many": all_of(
            *(
                more(3, facts={"runId": name, "activeChildren": number})
                for number, name in enumerate("xyz")
            )
        ),
        "a place released twice": more(10),
    },
    "lives_are_whole": {
        "a run that ended twice": more(9),
        "a run refused and created": more(13, stream="run:a", run_id="a"),
        "a run that never ended": missing(9),
        "a run born by its end": missing(2),
    },
    "places_are_free_again": {
        "a place that nobody gave back": missing(10),
        "a place of one that was refused": more(3, facts={"runId": "b"}),
    },
    "answers_are_known": {
        "an internal error": call("reads", status=500),
        "a spawn that waits": call("first", status=202),
    },
    "accepted_are_recorded": {
        "an accepted spawn that is nowhere": missing(2),
        "an accepted spawn under another run": call("first", answer={"runId": "b"}),
        "an accepted spawn of somebody else": event(2, facts={"requester": "agent:main:soak-2"}),
        "an accepted spawn without a session": missing(5),
        "an answer before the session was there": call("first", position=4),
    },
    "refused_are_recorded": {
        "a refusal that is nowhere": missing(13),
        "a refusal by another rule": event(13, facts={"rule": "depth"}),
        "a refusal recorded twice": more(13),
    },
    "asked_once_is_recorded_once": {
        "a request recorded twice": more(2, stream="run:c", run_id="c"),
        "a spawn that nobody asked for": more(2, stream="run:c", run_id="c", facts={"label": "c"}),
    },
    "one_key_is_one_run": {"a key that means two runs": call("again", answer={"runId": "b"})},
    "those_alive_answer": {
        "a server that lives and does not answer": died(0, 17, 20),
        "another server that died": died(1, 10, 20),
    },
    "announced_once": {
        "an announcement that went astray": inbox(),
        "an announcement told twice": inbox(("a", 11), ("a", 11)),
        "an announcement nobody made": inbox(("a", 11), ("b", 13)),
        "an accepted run told of to nobody": event(11, facts={"disposition": "skipped"}),
    },
    "stopped_are_over": {"a stop that was not recorded": call("stops", position=8)},
    "acknowledged_are_recorded": {"an acknowledgement that was lost": missing(14)},
    "runs_as_recorded": {
        "a read newer than its position": call(
            "reads", answer={"stage": "announced", "version": 7}
        ),
        "a read older than its position": call(
            "reads", answer={"stage": "queued", "outcome": None, "version": 5}
        ),
        "a read of another outcome": call("reads", answer={"outcome": "error"}),
    },
    "lists_as_recorded": {
        "a list without its newest": call("lists", answer={"items": LISTED[1:]}),
        "a list with a run of the future": call("lists", position=11),
    },
    "sessions_as_recorded": {
        "a session that counts another": call("looks back", answer={"activeRuns": ["b"]}),
        "a session that is not up to date": call("looks back", at=10),
    },
    "inboxes_as_recorded": {
        "an inbox newer than its position": call("inbox", position=10),
        "an announcement taken in the future": call(
            "inbox", answer={"items": [{"runId": "a", "position": 11, "state": "acknowledged"}]}
        ),
        "an inbox without an entry": call("inbox", answer={"items": []}),
    },
    "lanes_as_recorded": {
        "a lane of the future": call("sees lanes", position=7),
        "a lane of the past": call("sees lanes", position=10),
        "a lane without one who runs": call("sees lanes", answer={"running": []}),
    },
    "pages_as_recorded": {"a page with a hole": call("pages", answer={"positions": [3, 5]})},
    "past_is_answered_as_past": {"a past that is another": call("looks back", position=4)},
    "nothing_is_missing": {"a run that is not found": call("reads", status=404)},
    "promises_are_kept": {
        "a read behind what was told before": call(
            "reads", position=7, answer={"stage": "queued", "outcome": None, "version": 4}
        ),
        "a refusal behind what was told before": call("reads", status=404, position=7, answer={}),
        "a server that is not ready and forgot what it told": call(
            "reads", status=503, position=7, answer={}
        ),
    },
    "spawns_in_order": {"a spawn in front of what was told before": call("inbox", position=12)},
    "answers_behind_what_they_tell": {
        "an answer in front of its record": call("refused", position=11),
    },
}

IN_TALKED: Table = {
    "accepted_messages_are_recorded": {
        "an accepted message that is nowhere": event(11, trace=trace_of("x")),
        "an accepted message under another run": call("says", answer={"runId": "n"}),
        "a sender told of another run before": call("says", answer={"continues": "b"}),
        "a message that went to another session": call("says", about="b"),
        "an answer before its run was queued": call("says", position=15),
    },
    "queued_messages_are_recorded": {
        "a message that waits and is nowhere": missing(36),
        "a message that is neither dropped nor a run": missing(38),
        "an answer before its message waited": call("waits", position=35),
    },
    "refused_are_recorded": {
        "a refused message by another rule": event(22, facts={"rule": "thinking"}),
        "a refused message that is nowhere": missing(21),
    },
    "refused_by_the_cap": {
        "a refusal by an old count": call("too many", answer={"current": 0}),
        "a refusal by another cap": call("too many", answer={"limit": 2}),
    },
    "asked_once_is_recorded_once": {
        "a message recorded twice": more(11, stream="run:o", run_id="o"),
        "a message that nobody has sent": unasked("m"),
        "a message that was turned away and is there": event(21, trace=trace_of("early")),
        "an answer without a reason to a message that is nowhere": call(
            "too soon", answer={"code": None}
        ),
    },
    "sessions_go_on_in_turn": {
        "a continuation that takes no place": missing(12),
        "a continuation of no run": missing(13),
        "a place for another run": event(12, facts={"runId": "a"}),
        "two runs that continue the same one": event(14, facts={"runId": "x"}),
        "a message to a run that is at work": event(10, type="EffectAttempted"),
        "a message above one that is at work": event(
            1, stream="run:c", type="SpawnRequested", run_id="c", facts={"requester": child("a")}
        ),
        "a message to a session that was closed": event(5, type="SessionClosed"),
        "a refused message that took a place": event(21, append_last=23),
    },
    "lives_are_whole": {"a run that was continued twice": more(13, facts={"runId": "n"})},
    "put_away_in_turn": {"an earlier run that was put away first": missing(25)},
    "turned_away_for_a_reason": {
        "a closed session that is open": call("too late", position=22),
        "a session at work that is not": call("too late", answer={"code": "run_active"}),
    },
    "stopped_sessions_are_over": {
        "a stopped session that is open": call("closes", position=22),
        "a stopped session whose run goes on": all_of(
            event(18, type="EffectAttempted"), event(20, type="EffectAttempted")
        ),
    },
    "sessions_as_recorded": {
        "a session without its newest run": call("looks", answer={"ownRuns": ["a"]}),
    },
    "spawns_in_order": {
        "a message in front of what was told before": call("too soon", position=11),
    },
    "answers_behind_what_they_tell": {
        "an answer in front of its message": call("is refused", position=20),
    },
    "one_key_is_one_run": {
        "a message key that means two runs": call("says again", answer={"runId": "n"}),
    },
    "announced_once": {"a run of a message that nobody was told of": inbox(("a", 10))},
}

IN_RELATED: Table = {
    "batches_are_whole": {
        "a part of a batch": missing(12),
        "a batch that was asked for in two parts": event(
            6, facts={"batch": {"batchId": "batch of p", "index": 0, "runIds": ["p1"]}}
        ),
        "a batch that was created twice": event(12, append_last=12),
        "a batch refused in part": more(47, stream="run:p2", run_id="p2"),
    },
    "accepted_are_recorded": {
        "a batch of other runs": call("batch", answer={"runs": BATCH[::-1]}),
        "a batch under another id": call("batch", answer={"batchId": "batch of r"}),
        "a batch that was told of too early": call("batch", position=9),
    },
    "refused_are_recorded": {
        "a batch refused by another rule": event(47, facts={"rule": "depth"}),
        "a batch refused as another run": call("refused", answer={"runId": "p1"}),
    },
    "asked_once_is_recorded_once": {
        "a batch that nobody asked for": unasked("p"),
        "a batch that is there twice": event(
            46, facts={"batch": {"batchId": "another", "index": 1, "runIds": ["r1", "r2"]}}
        ),
    },
    "queued_when_all_is_met": {
        "a run in line before all is met": missing(18),
        "a run that met another twice": more(20, stream="run:p2", run_id="p2"),
    },
    "met_when_done": {
        "a run that met what had not ended": missing(15),
        "a run that met what had failed": all_of(
            event(15, facts={"outcome": "error"}), event(18, facts={"outcome": "error"})
        ),
        "a run that met another end": event(18, facts={"outcome": "timeout"}),
        "a run that met what had somebody below": all_of(
            event(17, type="AnnouncementAcknowledged"), event(7, facts={"requester": child("t")})
        ),
    },
    "failed_for_a_reason": {
        "a run that failed for no reason": event(39, facts={"outcome": "success"}),
        "a run that failed and had started": more(33, stream="run:w"),
    },
    "those_that_wait_go_on": {
        "a run that waits for ever": missing(42),
        "a run that waits for somebody else": event(38, facts={"runIds": ["p1"]}),
    },
    "announced_after_all_below": {
        "a run announced before those below it": event(7, facts={"requester": child("t")}),
    },
}
