"""The effects of a run outside the log: undos of its steps, calls of hooks, and webhooks.

One machine decides about all of them: an effect is due, attempted until it is done, and maybe
parked and redriven. `EFFECT_RULES` says in what the kinds differ; `effects_after` says which events
make an effect due.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple, assert_never

from domain.run.commands import (
    ConfirmEffect,
    EffectCommand,
    NoteEffectFailure,
    ParkEffect,
    RedriveEffects,
)
from domain.run.events import (
    ContinuationPlanned,
    EffectAttempted,
    EffectEvent,
    EffectParked,
    EffectRedriven,
    RunAnnounced,
    RunArchived,
    RunContinued,
    RunEnded,
    RunEvent,
    RunQueued,
    SessionCreated,
    SpawnRefused,
)
from domain.run.facts import (
    HOOK_ORDER,
    HOOKS_OF_ENDS,
    STEP_ORDER,
    Effect,
    EffectKind,
    HookName,
    ParkReason,
)
from domain.run.preparation_steps import refusal_undo_time, steps_to_undo
from domain.run.state import PAUSES, Run
from domain.values.record import Stamp
from domain.values.refusals import CorruptHistory, NotYet, Rejected, WrongStage

PAUSE_SECONDS_MAX = 86_400
"""A receiver that wants to be left alone for longer is asked again after a day."""


class EffectRules(NamedTuple):
    """What is special about a kind of effects.

    `order` are its names in their order if one effect waits for the one before it; without it they
    are attempted side by side. With `gives_up` one is parked after some attempts, or when the texts
    of its run are erased. With `varies_pause` a pause is up to a half shorter, another
    one for each run. With `returns_to_inbox` a parked one puts the announcement back into the
    inbox.
    """

    order: tuple[str, ...] = ()
    gives_up: bool = True
    varies_pause: bool = False
    returns_to_inbox: bool = False


EFFECT_RULES: Mapping[EffectKind, EffectRules] = {
    # What was made later may be made on top of it.
    "undo": EffectRules(order=STEP_ORDER[::-1], gives_up=False),
    # Nobody hears of an end before the beginning.
    "hook": EffectRules(order=HOOK_ORDER),
    "webhook": EffectRules(varies_pause=True, returns_to_inbox=True),
}
_KINDS = tuple(EFFECT_RULES)


class NothingParked(Rejected):
    """There is no delivery that could be redriven."""


def decide_effect(run: Run, command: EffectCommand) -> tuple[EffectEvent, ...]:
    """Return what is recorded of an effect; nothing if that is on record already."""
    if isinstance(command, RedriveEffects):
        return redrive_effects(run, command)
    effect = _effect_in_turn(run, command.kind, command.name)
    if effect is None:
        return ()
    match command:
        case ConfirmEffect():
            done = EffectAttempted(
                kind=effect.kind,
                name=effect.name,
                attempt=effect.attempts + 1,
                status_code=command.status_code,
                outcome=command.outcome,
            )
            return (done,)
        case NoteEffectFailure():
            return _note_failure(run, effect, command)
        case ParkEffect():
            return (_parked(effect, effect.attempts, command.reason),)
        case _:
            assert_never(command)


def _note_failure(run: Run, effect: Effect, command: NoteEffectFailure) -> tuple[EffectEvent, ...]:
    """Each attempt once, whoever made it; the last one parks the effect."""
    if command.attempt <= effect.attempts:
        return ()
    failures = effect.attempts - effect.attempts_before
    is_enough = command.refused or failures + 1 >= command.attempts_max
    is_last = is_enough and EFFECT_RULES[effect.kind].gives_up
    attempted = EffectAttempted(
        kind=effect.kind,
        name=effect.name,
        attempt=effect.attempts + 1,
        status_code=command.status_code,
        error=command.error,
        retry_after_seconds=None if is_last else _pause_seconds(run, failures, command),
    )
    if not is_last:
        return (attempted,)
    reason: ParkReason = "refused" if command.refused else "attempts"
    return (attempted, _parked(effect, attempted.attempt, reason))


def _parked(effect: Effect, attempts: int, reason: ParkReason) -> EffectParked:
    return EffectParked(kind=effect.kind, name=effect.name, attempts=attempts, reason=reason)


def redrive_effects(run: Run, command: RedriveEffects) -> tuple[EffectRedriven, ...]:
    """Return the redrive of each parked effect of a kind, or of the one of this name.

    Raises:
        NothingParked: None of them is parked.
    """
    parked = [
        one.name
        for one in run.effects_of(command.kind)
        if one.phase == "parked" and command.name in (None, one.name)
    ]
    if not parked:
        where = f" to {command.kind} {command.name}" if command.name is not None else ""
        raise NothingParked(f"run {run.run_id} has no parked delivery{where}")
    return tuple(
        EffectRedriven(kind=command.kind, name=one, by=command.by, reason=command.reason)
        for one in parked
    )


def _pause_seconds(run: Run, failures: int, command: NoteEffectFailure) -> int:
    """Return how long after a failure the next attempt comes: 1, 2, 4 … seconds.

    A pause that varies keeps a receiver that was away from being asked by all at once.
    """
    # The shift is bounded, or it would become a number without end.
    longest = min(1 << min(failures, 12), command.retry_seconds_max)
    part = 0.0
    if EFFECT_RULES[command.kind].varies_pause:
        seed = f"{run.run_id} {command.name} {command.attempt}".encode()
        part = int.from_bytes(sha256(seed).digest()[:4], "big") / 2**32
    pause = max(1, round(longest * (1 - part / 2)))
    return max(pause, min(command.pause_seconds, PAUSE_SECONDS_MAX))


def _effect_in_turn(run: Run, kind: EffectKind, name: str) -> Effect | None:
    """Return the effect if it is its turn; None when it is done or parked."""
    effect = run.effect(kind, name)
    if effect is None:
        raise WrongStage(f"attempt {kind} {name}", "a run without it")
    if effect.phase in ("done", "parked"):
        return None
    if effect.phase == "passed_on":
        raise WrongStage(f"attempt {kind} {name}", "continued by another, which does it")
    if effect.phase == "waiting":
        raise NotYet(f"{kind} {name} is not due yet")
    if EFFECT_RULES[kind].order:
        before = next(one for one in run.effects_of(kind) if one.phase == "due")
        if before is not effect:
            raise NotYet(f"{kind} {before.name} comes before {name}")
    return effect


# How events change the effects of a run. It only grows.


def effect_changes(run: Run, event: EffectEvent, stamp: Stamp) -> dict[str, object]:
    """What such an event changes. `CorruptHistory` when the run has no such effect."""
    effect = run.effect(event.kind, event.name)
    if effect is None:
        raise CorruptHistory(f"the run has no {event.kind} {event.name}")
    match event:
        case EffectAttempted():
            pause = timedelta(seconds=event.retry_after_seconds or 0)
            changes: dict[str, object] = {
                "phase": "due" if event.has_failed else "done",
                "due_at": stamp.recorded_at + pause if event.has_failed else None,
                "attempts": event.attempt,
                "status_code": event.status_code,
                "error": event.error,
                "outcome": event.outcome,
            }
            return _replaced(run, effect, changes)
        case EffectParked():
            changes = {
                "phase": "parked",
                "due_at": None,
                "attempts": event.attempts,
                "reason": event.reason,
            }
            return {
                **_replaced(run, effect, changes),
                **(_inbox_changes(run, stamp) if EFFECT_RULES[event.kind].returns_to_inbox else {}),
            }
        case EffectRedriven():
            changes = {
                "phase": "due",
                "due_at": stamp.recorded_at,
                "reason": None,
                "attempts_before": effect.attempts,
            }
            return _replaced(run, effect, changes)
        case _:
            assert_never(event)


def _inbox_changes(run: Run, stamp: Stamp) -> dict[str, object]:
    """Whoever reads the inbox is told, also when the announcement was taken already."""
    if run.inbox is None:
        raise CorruptHistory("a delivery was parked of a run without an announcement")
    changes = {
        "position": stamp.position,
        "first_position": run.inbox.announced_position,
        "acknowledged_at": None,
    }
    return {"inbox": run.inbox.changed(changes)}


EFFECT_TRIGGERS: frozenset[type[RunEvent]] = frozenset(
    {
        SpawnRefused,
        SessionCreated,
        ContinuationPlanned,
        RunQueued,
        RunEnded,
        RunAnnounced,
        RunArchived,
        RunContinued,
    }
)
"""The events that give a run effects, or make them due."""


def effects_after(run: Run, event: RunEvent, stamp: Stamp) -> dict[str, object]:
    """What one of the `EFFECT_TRIGGERS` changes; `run` is as it is before it."""
    webhooks: tuple[str, ...] = ()
    match event:
        case SessionCreated() | ContinuationPlanned():
            hooks = [Effect(kind="hook", name=one, phase="waiting") for one in event.hooks]
            return _changes_to((*run.effects, *hooks)) if hooks else {}
        case RunContinued():
            left = tuple(
                one.changed({"phase": "passed_on"}) if one.phase == "waiting" else one
                for one in run.effects
            )
            return _changes_to(left)
        case SpawnRefused() | RunAnnounced():
            webhooks = event.webhooks
        case _:
            pass
    now = stamp.recorded_at
    # Most runs have no steps: nothing has to be undone of them.
    new = [*_due_undos(run, event, now)] if run.steps else []
    new += [Effect(kind="webhook", name=one, due_at=now) for one in webhooks]
    due = _hooks_triggered_by(run, event) if run.effects else ()
    if not new and not due:
        return {}
    effects = (*run.effects, *new)
    # Undoing the binding of a thread tells the same receiver that there is no child any more.
    is_unbound = any((one.kind, one.name) == ("undo", "thread_binding") for one in effects)
    return _changes_to(
        one.changed({"phase": "due", "due_at": now})
        if one.kind == "hook"
        and one.phase == "waiting"
        and one.name in due
        and not (one.name == "subagentEnded" and is_unbound)
        else one
        for one in effects
    )


def _due_undos(run: Run, event: RunEvent, now: datetime) -> Iterator[Effect]:
    at = refusal_undo_time(run, event, now) if isinstance(event, SpawnRefused) else now
    for step in steps_to_undo(run, event):
        if run.effect("undo", step.name) is None:
            yield Effect(kind="undo", name=step.name, due_at=at)


def _hooks_triggered_by(run: Run, event: RunEvent) -> tuple[HookName, ...]:
    """Return the hooks that an event of a run calls.

    `subagentEnded` is called at the end of a run if it was stopped or nobody hears its result, else
    when that is announced. If the session lives on, it is called when that is archived.
    """
    match event:
        case RunQueued():
            return ("subagentSpawned",)
        case RunEnded() if event.reason in PAUSES:
            # Its session goes on: the run in its place tells of the end.
            return ()
        case RunEnded() if event.outcome == "stopped":
            return HOOKS_OF_ENDS
        case RunEnded() if run.options.mode == "run" and not run.expects_completion:
            return HOOKS_OF_ENDS
        case RunAnnounced() if run.options.mode == "run":
            return HOOKS_OF_ENDS
        case RunArchived() if run.options.mode == "session":
            return HOOKS_OF_ENDS
        case _:
            return ()


def _replaced(run: Run, effect: Effect, changes: dict[str, object]) -> dict[str, object]:
    return _changes_to(one.changed(changes) if one is effect else one for one in run.effects)


def _changes_to(effects: Iterable[Effect]) -> dict[str, object]:
    """What is changed of a run that has these effects now. None is due before one in front of it
    that is still to be attempted."""
    last: dict[EffectKind, datetime] = {}
    kept: list[Effect] = []
    for one in sorted(effects, key=_place):
        effect = one
        if one.due_at is not None and EFFECT_RULES[one.kind].order:
            at = last[one.kind] = max(one.due_at, last.get(one.kind, one.due_at))
            if at is not one.due_at:
                effect = one.changed({"due_at": at})
        kept.append(effect)
    due_at = (one.due_at for one in kept if one.due_at is not None)
    return {"effects": tuple(kept), "effects_at": min(due_at, default=None)}


_PLACES = {
    (kind, name): (_KINDS.index(kind), rules.order.index(name))
    for kind, rules in EFFECT_RULES.items()
    for name in rules.order
}


def _place(effect: Effect) -> tuple[int, int]:
    return _PLACES.get((effect.kind, effect.name)) or (_KINDS.index(effect.kind), 0)
