"""Cases of thread bindings, and of hooks about the end of children."""

from collections.abc import Mapping
from typing import Any

import pytest

from application.delivery.announce import disposition_of
from domain.context.thread_binding import read_binding_answer
from domain.delivery.hook_payloads import notification_call
from domain.run.events import EffectAttempted, RunAnnounced, RunEnded
from domain.run.facts import Effect, HookName, SpawnOptions
from domain.values.refusals import Refusal
from tests.support.builders import continued_runs as continued
from tests.support.builders import effects
from tests.support.builders import run_commands as ask
from tests.support.builders.facts import fact_of
from tests.support.builders.family_log import child_key
from tests.support.builders.storytelling import ref
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold
from tests.support.cases.families import CaseFamily

ENDED: HookName = "subagentEnded"


def bound_to(given: Given) -> Answer:
    """Return the refusal of a child in session mode, by the answer of the hook."""
    answer = read_binding_answer(given["hook_result"], "session")
    assert isinstance(answer, Refusal)
    return {"status": answer.status, "error": answer.text}


def told_of_an_end(given: Given) -> Answer:
    """Return whether the hook was called now (`returned`), and the record after it.

    No call is in progress (`inFlight`) if it may be called again.
    """
    family = hooked()
    family.end("a")
    family.announce("a")
    if "handler" in given:
        family.tell("a", effects.note_hook_failure(ENDED))
        returned = _told(family) > 0
    else:
        family.tell("a", effects.confirm_hook(ENDED))
        before = _told(family)
        family.tell("a", effects.confirm_hook(ENDED))
        returned = _told(family) > before
    state = _state(family)
    return {
        "returned": returned,
        "endedHookEmittedAt": "set" if state.phase == "done" else None,
        "inFlight": state.phase == "due" and state.due_at is None,
    }


def killed(given: Given) -> Answer:
    """Return the record of a run that its requester stopped, its outcome for a hook (`hook`), and
    whether the requester is notified.
    """
    family = hooked()
    before = family.session("main").active_children
    reason = ref(given["reason"])
    family.tell("a", ask.stop(by="main", by_requester=True, reason=reason))
    family.tell("a", ask.end(family.run("a").epoch, outcome="stopped", reason="stopped"))
    run = family.run("a")
    texts = {reason: given["reason"]}
    disposition, why = disposition_of(run)
    family.tell("a", ask.announce(disposition=disposition, reason=why, text=None))
    error = texts[run.stop_reason] if run.stop_reason else None
    event = notification_call(run, ENDED, origin={}, error=error).event
    assert _state(family).phase == "due"
    return {
        "updated": len([event for event in family.recorded if isinstance(event.event, RunEnded)]),
        "active": family.session("main").active_children == before,
        "outcome": {"error": error},
        "cleanupHandled": family.run("a").inbox is not None,
        "hook": {name: event[name] for name in ("outcome", "reason", "error")},
        "announce_calls": len(
            [
                event
                for event in family.recorded
                if isinstance(event.event, RunAnnounced) and event.event.disposition == "inbox"
            ]
        ),
    }


def completed_in_session_mode(given: Given) -> Answer:
    """Return whether the hook is called once such a run is over and announced.

    Also return whether a run is announced after all if it ended for a message that could not
    replace it.
    """
    if given.get("marked_then_ended"):
        return _announced_after_all()
    family = hooked(mode=given["spawnMode"])
    family.end("a")
    family.announce("a")
    run = family.run("a")
    return {
        "hook_calls": int(_state(family).phase != "waiting"),
        "cleanupCompletedAt": "set" if run.announced_at else None,
    }


def _announced_after_all() -> Answer:
    family = hooked()
    family.tell("a", continued.queue(cause="steer"))
    family.end("a")
    assert family.run("a").is_paused
    family.tell("a", continued.fail())
    family.announce("a")
    inbox = family.run("a").inbox
    return {"announce_calls": int(inbox is not None and inbox.disposition == "inbox")}


def put_away(given: Given) -> Answer:
    """Return whether the hook is called when the session is archived."""
    family = hooked(mode=given["spawnMode"])
    family.end("a")
    family.tell("a", ask.announce(disposition="skipped", text=None))
    waits = _state(family).phase == "waiting"
    family.tell("a", ask.archive())
    calls = waits and _state(family).phase == "due"
    return {"sessions.delete": {"emitLifecycleHooks": calls}}


def hooked(**options: Any) -> CaseFamily:
    """Return a family with a running child `a` of `main`, whose end a hook is notified of."""
    chosen = fact_of(SpawnOptions, options)
    family = CaseFamily()
    family.spawn("a", options=chosen, thread=chosen.mode == "session")
    run = family.run("a")
    family.tell(
        "a",
        ask.resolve(run.epoch),
        ask.prepare(run.epoch, child_session_key=child_key(run.run_id)),
        ask.create(run.epoch, hooks=(ENDED,)),
    )
    family.tell("a", ask.claim())
    family.tell("a", ask.start(family.run("a").epoch))
    return family


def _state(family: CaseFamily) -> Effect:
    state = family.run("a").effect("hook", ENDED)
    assert state is not None
    return state


def _told(family: CaseFamily) -> int:
    attempts = [
        event.event for event in family.recorded if isinstance(event.event, EffectAttempted)
    ]
    return len([attempt for attempt in attempts if not attempt.has_failed])


RUNNERS: Mapping[str, Runner] = {
    "spawn.thread": bound_to,
    "hooks.ended": told_of_an_end,
    "registry.kill": killed,
    "registry.steer": completed_in_session_mode,
    "announce.silent": put_away,
}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_hooks_are_told_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
