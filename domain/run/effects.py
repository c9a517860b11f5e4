"""Effects of a run outside the log: undos of its steps, hook calls, and webhook deliveries.

All kinds share one state machine: an effect becomes due and is retried until it is done or parked;
a parked effect can be redriven. `EFFECT_RULES` holds the differences between the kinds,
`effects_after` the events that make an effect due.
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
from domain.values.refusals import CorruptHistoryError, NotYet, Rejected, WrongStage

PAUSE_SECONDS_MAX = 86_400
"""Cap on the pause that a receiver may ask for: one day."""


class EffectRules(NamedTuple):
    """Rules of one kind of effects.

    Attributes:
        order: The names in order, if each effect waits for the one before it; empty if they are
            attempted in parallel.
        gives_up: Whether an effect is parked after the maximum of attempts, or if the texts of its
            run are erased. Otherwise it is retried forever.
        varies_pause: Whether retries have jitter: a pause is up to a half shorter, derived from
            run, effect and attempt.
        returns_to_inbox: Whether parking an effect returns the announcement to the inbox.
    """

    order: tuple[str, ...] = ()
    gives_up: bool = True
    varies_pause: bool = False
    returns_to_inbox: bool = False


EFFECT_RULES: Mapping[EffectKind, EffectRules] = {
    # Reverse order, because a later step may build on an earlier one.
    "undo": EffectRules(order=STEP_ORDER[::-1], gives_up=False),
    # A receiver must not learn of the end before the beginning.
    "hook": EffectRules(order=HOOK_ORDER),
    "webhook": EffectRules(varies_pause=True, returns_to_inbox=True),
}
_KINDS = tuple(EFFECT_RULES)


class NothingParked(Rejected):
    """No parked effect matches."""


def decide_effect(run: Run, command: EffectCommand) -> tuple[EffectEvent, ...]:
    """Return the events to record for an effect; empty if it is done or parked already.

    Raises:
        NotYet: The effect is not due, or an earlier one of its kind comes first.
        NothingParked: Nothing can be redriven.
        WrongStage: The run has no such effect, or the run that continues it has.
    """
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
    """Record each attempt once, whichever server made it; the last one parks the effect."""
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
        retry_after_seconds=None if is_last else _backoff_seconds(run, failures, command),
    )
    if not is_last:
        return (attempted,)
    reason: ParkReason = "refused" if command.refused else "attempts"
    return (attempted, _parked(effect, attempted.attempt, reason))


def _parked(effect: Effect, attempts: int, reason: ParkReason) -> EffectParked:
    return EffectParked(kind=effect.kind, name=effect.name, attempts=attempts, reason=reason)


def redrive_effects(run: Run, command: RedriveEffects) -> tuple[EffectRedriven, ...]:
    """Return a redrive event for each parked effect of the kind, or only for the effect `name`.

    Raises:
        NothingParked: No such effect is parked.
    """
    parked = [
        effect.name
        for effect in run.effects_of(command.kind)
        if effect.phase == "parked" and command.name in (None, effect.name)
    ]
    if not parked:
        where = f" to {command.kind} {command.name}" if command.name is not None else ""
        raise NothingParked(f"run {run.run_id} has no parked delivery{where}")
    return tuple(
        EffectRedriven(kind=command.kind, name=name, by=command.by, reason=command.reason)
        for name in parked
    )


def _backoff_seconds(run: Run, failures: int, command: NoteEffectFailure) -> int:
    """Return the pause before the next attempt: 1, 2, 4 … seconds, up to `retry_seconds_max`.

    The pause to a webhook is up to half shorter (jitter), so that not all runs retry at once when
    it is back. It is never shorter than the receiver asks, up to `PAUSE_SECONDS_MAX`.
    """
    # Bound the shift: attempts are not limited, and the number would grow with each.
    longest = min(1 << min(failures, 12), command.retry_seconds_max)
    part = 0.0
    if EFFECT_RULES[command.kind].varies_pause:
        seed = f"{run.run_id} {command.name} {command.attempt}".encode()
        part = int.from_bytes(sha256(seed).digest()[:4], "big") / 2**32
    pause = max(1, round(longest * (1 - part / 2)))
    return max(pause, min(command.pause_seconds, PAUSE_SECONDS_MAX))


def _effect_in_turn(run: Run, kind: EffectKind, name: str) -> Effect | None:
    """Return the effect if it is its turn, or None if it is done or parked."""
    effect = run.effect(kind, name)
    if effect is None:
        raise WrongStage(f"attempt {kind} {name}", "a run without it")
    if effect.phase in ("done", "parked"):
        return None
    if effect.phase == "passed_on":
        raise WrongStage(f"attempt {kind} {name}", "continued by another run, which does it")
    if effect.phase == "waiting":
        raise NotYet(f"{kind} {name} is not due yet")
    if EFFECT_RULES[kind].order:
        first = next(other for other in run.effects_of(kind) if other.phase == "due")
        if first is not effect:
            raise NotYet(f"{kind} {first.name} comes before {name}")
    return effect


# How events change the effects of a run. This part only grows.


def effect_changes(run: Run, event: EffectEvent, stamp: Stamp) -> dict[str, object]:
    """Return the fields that an effect event changes.

    Raises:
        CorruptHistoryError: The run has no such effect.
    """
    effect = run.effect(event.kind, event.name)
    if effect is None:
        raise CorruptHistoryError(f"the run has no {event.kind} {event.name}")
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
    """Return the announcement to the inbox as unread, even if it was acknowledged."""
    if run.inbox is None:
        raise CorruptHistoryError("a parked delivery belongs to a run without an announcement")
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
    """Return the fields that one of the `EFFECT_TRIGGERS` changes in `run`, the state before it."""
    webhooks: tuple[str, ...] = ()
    match event:
        case SessionCreated() | ContinuationPlanned():
            hooks = [Effect(kind="hook", name=hook, phase="waiting") for hook in event.hooks]
            return _changes_to((*run.effects, *hooks)) if hooks else {}
        case RunContinued():
            left = tuple(
                effect.changed({"phase": "passed_on"}) if effect.phase == "waiting" else effect
                for effect in run.effects
            )
            return _changes_to(left)
        case SpawnRefused() | RunAnnounced():
            webhooks = event.webhooks
        case _:
            pass
    now = stamp.recorded_at
    # Most runs have no steps to undo.
    new = [*_due_undos(run, event, now)] if run.steps else []
    new += [Effect(kind="webhook", name=webhook, due_at=now) for webhook in webhooks]
    due = _hooks_triggered_by(run, event) if run.effects else ()
    if not new and not due:
        return {}
    effects = (*run.effects, *new)
    # Undoing the thread binding already notifies the same receiver that the child is gone.
    is_unbound = any((effect.kind, effect.name) == ("undo", "thread_binding") for effect in effects)
    return _changes_to(
        effect.changed({"phase": "due", "due_at": now})
        if effect.kind == "hook"
        and effect.phase == "waiting"
        and effect.name in due
        and not (effect.name == "subagentEnded" and is_unbound)
        else effect
        for effect in effects
    )


def _due_undos(run: Run, event: RunEvent, now: datetime) -> Iterator[Effect]:
    at = refusal_undo_time(run, event, now) if isinstance(event, SpawnRefused) else now
    for step in steps_to_undo(run, event):
        if run.effect("undo", step.name) is None:
            yield Effect(kind="undo", name=step.name, due_at=at)


def _hooks_triggered_by(run: Run, event: RunEvent) -> tuple[HookName, ...]:
    """Return the hooks that become due with an event.

    The hooks for the end are called at once if the run is stopped. Otherwise in mode `session` they
    are called when it is archived; in mode `run` when it is announced, or when it ends if it
    expects no announcement.
    """
    match event:
        case RunQueued():
            return ("subagentSpawned",)
        case RunEnded() if event.reason in PAUSES:
            # The session continues; the run that replaces this one calls the hooks.
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


def _replaced(run: Run, attempted: Effect, changes: dict[str, object]) -> dict[str, object]:
    return _changes_to(
        effect.changed(changes) if effect is attempted else effect for effect in run.effects
    )


def _changes_to(effects: Iterable[Effect]) -> dict[str, object]:
    """Return the changes for these effects. In an ordered kind none is due before an earlier one.

    Also computes when the first effect is due.
    """
    last: dict[EffectKind, datetime] = {}
    kept: list[Effect] = []
    for given in sorted(effects, key=_place):
        effect = given
        if given.due_at is not None and EFFECT_RULES[given.kind].order:
            at = last[given.kind] = max(given.due_at, last.get(given.kind, given.due_at))
            if at is not given.due_at:
                effect = given.changed({"due_at": at})
        kept.append(effect)
    due_at = (effect.due_at for effect in kept if effect.due_at is not None)
    return {"effects": tuple(kept), "effects_at": min(due_at, default=None)}


_PLACES = {
    (kind, name): (_KINDS.index(kind), rules.order.index(name))
    for kind, rules in EFFECT_RULES.items()
    for name in rules.order
}


def _place(effect: Effect) -> tuple[int, int]:
    return _PLACES.get((effect.kind, effect.name)) or (_KINDS.index(effect.kind), 0)
