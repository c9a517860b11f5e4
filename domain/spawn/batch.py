"""Decisions about the runs of one request, recorded in one append or not at all.

A batch is atomic until its sessions are created: either all of its runs are created, or all are
refused.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar, cast
from uuid import UUID

from domain.event_types import AnyEvent
from domain.run.commands import RunCommand
from domain.run.events import RunEvent, SessionCreated, SpawnRefused
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.session.events import SessionEvent
from domain.session.state import Session
from domain.spawn.cascade import CascadeState, StreamChanges, decide
from domain.states import State, States, stream_of
from domain.values import rules
from domain.values.record import Stamp, run_id_of, run_stream
from domain.values.refusals import ReadAgain, Rejected
from domain.values.text import single_line

AnyState = TypeVar("AnyState", Run, Session)

# Speculative state. Its stamps are provisional: positions and times are assigned by the append.


class Speculation:
    """Speculative state of a family: changes that are decided but not recorded yet.

    Changes are applied lazily, when `family` is read. `at` is the provisional creation time of new
    runs and sessions.
    """

    def __init__(self, family: CascadeState, at: datetime) -> None:
        self._family = family
        self._at = at
        self._memory: States | None = None
        self._changes: StreamChanges = []

    def add(self, changes: Iterable[tuple[str, AnyEvent]]) -> None:
        """Add changes after those added before."""
        self._changes += changes

    @property
    def family(self) -> CascadeState:
        """Return the family after all added changes."""
        if self._changes:
            memory = self._memory
            if memory is None:
                memory = self._memory = States()
                memory.runs.update(self._family.runs)
                memory.sessions.update(self._family.sessions)
                self._family = CascadeState(memory.runs, memory.sessions)
            for stream, event in self._changes:
                memory.take(stream, event, _provisional(memory.of(stream), self._at))
            self._changes.clear()
        return self._family


def begun_runs(
    run_ids: Iterable[UUID], changes: Iterable[tuple[str, AnyEvent]], at: datetime
) -> Mapping[UUID, Run]:
    """Return new runs in the state after `changes`; `at` is their provisional creation time."""
    streams = {run_stream(run_id) for run_id in run_ids}
    begun = Speculation(CascadeState({}, {}), at)
    begun.add((stream, event) for stream, event in changes if stream in streams)
    return begun.family.runs


def speculative(state: AnyState, event: RunEvent | SessionEvent) -> AnyState:
    """Return the run or session after one more event, with a provisional stamp."""
    stamp = _provisional(state, state.created_at)
    _, after = States((state,)).take(stream_of(state), event, stamp)
    return cast("AnyState", after)


def _provisional(state: State | None, at: datetime) -> Stamp:
    if state is None:
        return Stamp(1, 1, at)
    return Stamp(state.created_position, state.version + 1, state.created_at)


def is_as_assumed(run: Run, assumed: Run) -> bool:
    """Return True if a recorded run equals the assumed one except for positions and times."""
    recorded = {
        "created_position": run.created_position,
        "created_at": run.created_at,
        "last_event_id": run.last_event_id,
        "queued_position": run.queued_position,
        "effects": run.effects,
        "effects_at": run.effects_at,
    }
    return run == assumed.changed(recorded)


NONE_STARTED = " No task of this batch was started."
LABEL_SHOWN_CHARACTERS_MAX = 200
AddressedCommands = tuple[UUID, Sequence[RunCommand]]
"""A run and the commands to it, in order."""


class PartOfBatch(Rejected):
    """Only a part of a batch would be created or refused."""


def decide_for_all(ahead: Speculation, addressed: Iterable[AddressedCommands]) -> StreamChanges:
    """Decide commands to several runs in order, and add the changes to `ahead`.

    Returns:
        The changes of all commands.

    Raises:
        PartOfBatch: The commands would create or refuse only a part of a batch.
    """
    before = ahead.family
    changes: StreamChanges = []
    for run_id, commands in addressed:
        for command in commands:
            following = decide(ahead.family, run_id, command)
            ahead.add(following)
            changes += following
    _require_whole_batches(before, changes)
    return changes


def _require_whole_batches(family: CascadeState, changes: StreamChanges) -> None:
    """Raise `PartOfBatch` as a last guard; use cases already address a whole batch."""
    for kind in (SessionCreated, SpawnRefused):
        decided = [run_id_of(stream) for stream, event in changes if type(event) is kind]
        for run_id in decided:
            batch = family.runs[run_id].batch if run_id is not None else None
            if batch is not None and not set(batch.run_ids) <= set(decided):
                raise PartOfBatch(f"run {run_id} belongs to a batch with other undecided runs")


def require_prepared(family: CascadeState, run_ids: Iterable[UUID]) -> None:
    """Raise `ReadAgain` if the runs of a batch are created or refused by now."""
    if any(family.run(run_id).stage not in PREPARING for run_id in run_ids):
        raise ReadAgain("the batch was decided meanwhile; read the run again and retry")


def batch_members(run: Run) -> tuple[UUID, ...]:
    """Return the ids of all runs of the same request in order, including this one."""
    return run.batch.run_ids if run.batch is not None else (run.run_id,)


def is_refused_by_batch(run: Run) -> bool:
    """Return True if the run was refused because another run of its batch was."""
    return run.refusal is not None and run.refusal.rule == rules.BATCH.name


def batch_refusal_text(culprit: Run, text: str) -> str:
    """Return the refusal text for the other runs of a batch.

    Args:
        culprit: The run whose preparation failed.
        text: Its refusal text.
    """
    assert culprit.batch is not None
    label = single_line(culprit.label or "", characters_max=LABEL_SHOWN_CHARACTERS_MAX)
    name = f'"{label}", ' if label else ""
    return (
        f"Task {culprit.batch.index + 1} of {len(culprit.batch.run_ids)}"
        f" ({name}run {culprit.run_id}) could not be prepared: {text.rstrip('.')}.{NONE_STARTED}"
    )
