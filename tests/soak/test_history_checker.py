"""The checker finds nothing in a good history, and every kind of contradiction in a bad one."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.soak.checker import RULES, check
from tests.soak.history import History, Writing, read_history, write_end, write_events
from tests.support.builders import related_history as related
from tests.support.builders.message_history import CONTRADICTIONS, talked_history
from tests.support.builders.small_history import (
    REQUESTER,
    START,
    one_more,
    small_history,
    with_call,
    with_more_events,
)
from tests.support.faults.history_mutations import Mutation
from tests.support.faults.history_mutations import added_event as more
from tests.support.faults.history_mutations import changed_call as call
from tests.support.faults.history_mutations import changed_event as event
from tests.support.faults.history_mutations import missing_event as missing
from tests.support.servers.preloaded import ROOT


def inbox(*entries: tuple[str, int]) -> Mutation:
    return lambda history: replace(history, inboxes={REQUESTER: entries})


def listed(history: History) -> list[Any]:
    return next(list(one.answer["items"]) for one in history.calls if one.caller == "lists")


def _crowded(history: History) -> History:
    for number, name in enumerate(("x", "y", "z")):
        facts = {"runId": name, "activeChildren": number}
        history = with_more_events(history, one_more(history, 3, facts=facts))
    return history


SEEDED: Mapping[str, tuple[str, Mutation]] = {
    "a gap": ("in_order", event(9, position=10)),
    "two positions changed places": ("in_order", event(4, position=3)),
    "a version that is missing": ("in_order", event(7, version=5)),
    "a time that runs backwards": ("in_order", event(8, recorded_at=START)),
    "half an append": ("whole_appends", event(14, append_last=15)),
    "an append that was torn": ("whole_appends", event(6, append_last=8)),
    "a decision from an old count": ("caps_kept", event(3, facts={"activeChildren": 1})),
    "a child too many": ("caps_kept", _crowded),
    "a place released twice": ("caps_kept", more(10)),
    "a run that ended twice": ("lives_are_whole", more(9)),
    "a run refused and created": ("lives_are_whole", more(13, stream="run:a", run_id="a")),
    "a run that never ended": ("lives_are_whole", missing(9)),
    "a run born by its end": ("lives_are_whole", missing(2)),
    "a place that nobody gave back": ("places_are_free_again", missing(10)),
    "an internal error": ("answers_are_known", call("reads", status=500)),
    "an accepted spawn that is nowhere": ("accepted_are_recorded", missing(2)),
    "an accepted spawn under another run": (
        "accepted_are_recorded",
        call("first", answer={"runId": "b"}),
    ),
    "an accepted spawn of somebody else": (
        "accepted_are_recorded",
        event(2, facts={"requester": "agent:main:soak-2"}),
    ),
    "an accepted spawn without a session": ("accepted_are_recorded", missing(5)),
    "an answer before the session was there": ("accepted_are_recorded", call("first", position=4)),
    "a refusal that is nowhere": ("refused_are_recorded", missing(13)),
    "a refusal by another rule": ("refused_are_recorded", event(13, facts={"rule": "depth"})),
    "a refusal recorded twice": ("refused_are_recorded", more(13)),
    "a request recorded twice": (
        "asked_once_is_recorded_once",
        more(2, stream="run:c", run_id="c"),
    ),
    "a spawn that nobody asked for": (
        "asked_once_is_recorded_once",
        more(2, stream="run:c", run_id="c", facts={"label": "c"}),
    ),
    "a key that means two runs": ("one_key_is_one_run", call("again", answer={"runId": "b"})),
    "an announcement that went astray": ("announced_once", inbox()),
    "an announcement told twice": ("announced_once", inbox(("a", 11), ("a", 11))),
    "an announcement nobody made": ("announced_once", inbox(("a", 11), ("b", 13))),
    "an accepted run told of to nobody": (
        "announced_once",
        event(11, facts={"disposition": "skipped"}),
    ),
    "a stop that was not recorded": ("stopped_are_over", call("stops", position=8)),
    "an acknowledgement that was lost": ("acknowledged_are_recorded", missing(14)),
    "a read newer than its position": (
        "runs_as_recorded",
        call("reads", answer={"stage": "announced", "version": 7}),
    ),
    "a read older than its position": (
        "runs_as_recorded",
        call("reads", answer={"stage": "queued", "outcome": None, "version": 5}),
    ),
    "a read of another outcome": ("runs_as_recorded", call("reads", answer={"outcome": "error"})),
    "a list without its newest": (
        "lists_as_recorded",
        lambda history: with_call(history, "lists", answer={"items": listed(history)[1:]}),
    ),
    "a list with a run of the future": ("lists_as_recorded", call("lists", position=11)),
    "a session that counts another": (
        "sessions_as_recorded",
        call("looks back", answer={"activeRuns": ["b"]}),
    ),
    "a session that is not up to date": ("sessions_as_recorded", call("looks back", at=10)),
    "an inbox newer than its position": ("inboxes_as_recorded", call("inbox", position=10)),
    "an announcement taken in the future": (
        "inboxes_as_recorded",
        call("inbox", answer={"items": [{"runId": "a", "position": 11, "state": "acknowledged"}]}),
    ),
    "an inbox without an entry": ("inboxes_as_recorded", call("inbox", answer={"items": []})),
    "a lane of the future": ("lanes_as_recorded", call("sees lanes", position=7)),
    "a lane of the past": ("lanes_as_recorded", call("sees lanes", position=10)),
    "a lane without one who runs": (
        "lanes_as_recorded",
        call("sees lanes", answer={"running": []}),
    ),
    "a page with a hole": ("pages_as_recorded", call("pages", answer={"positions": [3, 5]})),
    "a past that is another": ("past_is_answered_as_past", call("looks back", position=4)),
    "a run that is not found": ("nothing_is_missing", call("reads", status=404)),
    "a read behind what was told before": (
        "promises_are_kept",
        call("reads", position=7, answer={"stage": "queued", "outcome": None, "version": 4}),
    ),
    "a refusal behind what was told before": (
        "promises_are_kept",
        call("reads", status=404, position=7, answer={}),
    ),
    "a server that is not ready and forgot what it told": (
        "promises_are_kept",
        call("reads", status=503, position=7, answer={}),
    ),
    "a spawn in front of what was told before": ("spawns_in_order", call("inbox", position=12)),
    "an answer in front of its record": (
        "answers_behind_what_they_tell",
        call("refused", position=11),
    ),
}


def test_a_good_history_has_no_contradiction() -> None:
    assert check(small_history()) == {}
    assert check(talked_history()) == {}


@pytest.mark.parametrize("seeded", SEEDED)
def test_a_contradiction_is_found(seeded: str) -> None:
    rule, mutation = SEEDED[seeded]
    broken = check(mutation(small_history()))
    assert rule in broken, f"found only {broken}"


@pytest.mark.parametrize("seeded", CONTRADICTIONS)
def test_a_contradiction_about_a_message_is_found(seeded: str) -> None:
    rule, mutation = CONTRADICTIONS[seeded]
    broken = check(mutation(talked_history()))
    assert rule in broken, f"found only {broken}"


def test_a_server_that_is_not_ready_need_not_know_what_others_told() -> None:
    unready = call("reads", status=503, position=7, server=1, answer={})
    assert check(unready(small_history())) == {}


def test_each_rule_has_a_contradiction_that_it_finds() -> None:
    seeded = (*SEEDED.values(), *CONTRADICTIONS.values(), *related.CONTRADICTIONS.values())
    assert {rule for rule, _ in seeded} == set(RULES)


def test_what_nobody_heard_of_may_be_recorded_or_not() -> None:
    history = small_history()
    heard_of_nothing = [
        replace(one, status=None, position=None, answer={})
        for one in history.calls
        if one.label == "b"
    ]
    others = [one for one in history.calls if one.label != "b"]
    unheard = replace(history, calls=(*others, *heard_of_nothing))
    assert check(unheard) == {}
    never_arrived = replace(unheard.calls[-1], label="c", key="key of c")
    assert check(replace(unheard, calls=(*unheard.calls, never_arrived))) == {}


def test_the_checker_is_a_program_that_names_what_it_finds(tmp_path: Path) -> None:
    bad = SEEDED["a key that means two runs"][1](small_history())
    for name, history in {"good": small_history(), "talked": talked_history(), "bad": bad}.items():
        folder = tmp_path / name
        folder.mkdir()
        writing = Writing(folder, "all")
        for one in history.calls:
            writing.call(one)
        writing.close()
        write_events(folder, map(_body, history.events))
        write_end(folder, history.inboxes, history.cap)
        assert read_history(folder) == history
    good, talked, told = (_checked(tmp_path / name) for name in ("good", "talked", "bad"))
    assert (good.returncode, "no contradiction" in good.stdout) == (0, True)
    assert (talked.returncode, "no contradiction" in talked.stdout) == (0, True)
    assert told.returncode == 1
    assert "VIOLATED one_key_is_one_run" in told.stdout
    assert "key key of a was answered with 2 runs: a, b" in told.stdout


def _checked(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.soak.checker", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _body(one: Any) -> dict[str, Any]:
    """The event as a server describes it."""
    facts = asdict(one)["facts"]
    if "requester" in facts:
        facts["requester"] = {"sessionKey": facts["requester"]}
        facts["options"] = {one: facts.pop(one) for one in ("mode", "cleanup") if one in facts}
    return {
        "position": one.position,
        "stream": one.stream,
        "version": one.version,
        "type": one.type,
        "recordedAt": one.recorded_at.isoformat(),
        "appendLast": one.append_last,
        "runId": one.run_id,
        "traceparent": one.trace,
        "payload": facts,
    }
