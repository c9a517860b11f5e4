"""Decisions about the steps of a preparation, and about undoing them."""

from domain.run.holding import must_hold
from domain.run.state import Run
from domain.run.step_commands import BeginStep, ConfirmUndo, NoteUndoFailure, TakeStep
from domain.run.step_events import StepBegun, StepTaken, StepUndoFailed, StepUndone
from domain.run.steps import STEP_ORDER, StepName, StepState, step_key
from domain.values.refusals import NotYet, WrongStage

RETRY_SECONDS_MAX = 3600


def begin_step(run: Run, command: BeginStep) -> tuple[StepBegun, ...]:
    """In their order, one at a time. The same holder begins a step once; another one begins it
    once more, so that the record says until when somebody may be at it."""
    must_hold(run, command.epoch)
    name = command.step
    if run.child_session_key is None:
        raise WrongStage(f"begin step {name}", "not prepared")
    before = run.step(name)
    if before is not None and before.phase != "begun":
        raise WrongStage(f"begin step {name}", f"past it ({before.phase})")
    place = STEP_ORDER.index(name)
    for one in run.steps:
        if one.name != name and (one.phase != "taken" or STEP_ORDER.index(one.name) > place):
            raise WrongStage(f"begin step {name}", f"at step {one.name} ({one.phase})")
    if before is not None:
        if (before.root, before.relative) != (command.root, command.relative):
            raise WrongStage(f"begin step {name} elsewhere", "bound to the place on record")
        if before.epoch == run.epoch:
            return ()
    return (
        StepBegun(
            step=name,
            key=step_key(run.run_id, name),
            limit_seconds=command.limit_seconds,
            root=command.root,
            relative=command.relative,
        ),
    )


def take_step(run: Run, command: TakeStep) -> tuple[StepTaken, ...]:
    """Only what this holder has begun; once."""
    must_hold(run, command.epoch)
    state = run.step(command.step)
    if state is not None and state.phase == "taken":
        return ()
    if state is None or state.phase != "begun" or state.epoch != run.epoch:
        raise WrongStage(f"take step {command.step}", "not at it under this claim")
    return (
        StepTaken(
            step=command.step,
            made=command.made,
            outcome=command.outcome,
            manifest=command.manifest,
            file_count=command.file_count,
            total_bytes=command.total_bytes,
            can_undo=command.can_undo,
            origin=command.origin,
            fork=command.fork,
            token=command.token,
        ),
    )


def must_be_taken(run: Run, wanted: str) -> None:
    """`WrongStage` while a step is begun and not taken."""
    for one in run.steps:
        if one.phase == "begun":
            raise WrongStage(wanted, f"at step {one.name}")


def confirm_undo(run: Run, command: ConfirmUndo) -> tuple[StepUndone, ...]:
    """In the reverse of their order; once."""
    state = _find_begun_step(run, command.step)
    if state.phase == "undone":
        return ()
    _must_be_next(run, state)
    return (StepUndone(step=state.name, how=command.how, attempts=state.undo_failures + 1),)


def note_undo_failure(run: Run, command: NoteUndoFailure) -> tuple[StepUndoFailed, ...]:
    """Tried again after 1, 2, 4 … seconds, an hour at most, without end."""
    state = _find_begun_step(run, command.step)
    if state.phase == "undone" or command.attempt <= state.undo_failures:
        return ()
    _must_be_next(run, state)
    return (
        StepUndoFailed(
            step=state.name,
            attempt=state.undo_failures + 1,
            error=command.error,
            retry_after_seconds=retry_after_seconds(state.undo_failures),
        ),
    )


def retry_after_seconds(failures: int, seconds_max: int = RETRY_SECONDS_MAX) -> int:
    """How long to wait after so many failures before the one that has just been."""
    # The shift is bounded, or it would become a number without end.
    return min(1 << min(failures, 12), seconds_max)


def _find_begun_step(run: Run, name: StepName) -> StepState:
    state = run.step(name)
    if state is None:
        raise WrongStage(f"undo step {name}", "one that never began it")
    return state


def _must_be_next(run: Run, state: StepState) -> None:
    if state.undo_at is None:
        raise NotYet(f"step {state.name} is not to be undone")
    place = STEP_ORDER.index(state.name)
    for one in run.steps:
        if one.undo_at is not None and STEP_ORDER.index(one.name) > place:
            raise NotYet(f"step {one.name} is to be undone before step {state.name}")
