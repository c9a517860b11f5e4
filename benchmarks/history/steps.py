"""What is made for a few children outside the log, and how it is unmade."""

from dataclasses import replace

from application.log.texts import TextStore
from benchmarks.history.fates import Fate
from benchmarks.history.requests import Child, commanded
from benchmarks.history.society import Society
from benchmarks.history.town import Life, Wait, ask
from domain.run.commands import (
    BeginStep,
    ConfirmUndo,
    NoteUndoFailure,
    RefuseSpawn,
    RunCommand,
    StartPreparation,
    TakeStep,
)
from domain.run.facts import STEP_ORDER, StepState
from domain.run.state import Run

LIMIT_SECONDS = 5.0
FILES = frozenset({Fate.FILES, Fate.FILES_NOT_WRITTEN})
_NOT_WRITTEN = "attachments_materialization_failed (No space left on device)"
_NOT_REMOVED = "the attachments cannot be removed: Device or resource busy"


def stepped(
    society: Society, child: Child, run: Run, before: tuple[RunCommand, ...], folder: str
) -> Life[tuple[Run, tuple[RunCommand, ...]]]:
    """The run after its folder is made and its files are written, or not; and the commands that
    come before what follows, the last of `before` being the start of the preparation."""
    if child.fate not in FILES:
        return run, before
    *others, start = before
    assert isinstance(start, StartPreparation)
    begun = replace(start, resources=(), steps=("workspace", "attachments"))
    workspace = BeginStep(
        epoch=run.epoch,
        step="workspace",
        limit_seconds=LIMIT_SECONDS,
        root="/workspaces",
        relative=folder,
    )
    text_store = child.text_store(society)
    run = (yield from ask(commanded(society, run, (*others, begun, workspace), text_store))).runs[
        run.run_id
    ]
    yield Wait(0.01)
    attachments = BeginStep(
        epoch=run.epoch,
        step="attachments",
        limit_seconds=LIMIT_SECONDS,
        root=f"/workspaces/{folder}",
        relative=f".openclaw/attachments/{run.run_id}",
    )
    made = TakeStep(epoch=run.epoch, step="workspace", outcome="made")
    run = (yield from ask(commanded(society, run, (made, attachments)))).runs[run.run_id]
    yield Wait(0.02)
    count = society.random.randint(1, 4)
    size = count * society.random.randint(200, 20_000)
    written = TakeStep(
        epoch=run.epoch, step="attachments", outcome="written", file_count=count, total_bytes=size
    )
    return run, (written,)


def not_written(child: Child, run: Run, text_store: TextStore) -> RefuseSpawn | None:
    """The refusal of a child whose files cannot be written."""
    if child.fate is not Fate.FILES_NOT_WRITTEN:
        return None
    return RefuseSpawn(
        epoch=run.epoch,
        rule="attachments",
        status="error",
        step="attachments",
        text=text_store.store("refusal", _NOT_WRITTEN),
    )


def undone(society: Society, child: Child, run: Run) -> Life[None]:
    """All that is to be undone, the last step first; of a refused spawn not at the first try."""
    while (state := _last(run)) is not None:
        assert state.undo_at is not None
        yield Wait(max(0.05, (state.undo_at - society.town.now).total_seconds()))
        run = society.log.runs[run.run_id]
        text_store = child.text_store(society)
        command: RunCommand = ConfirmUndo(step=state.name, how="undone")
        if run.stage == "refused" and state.name == "attachments" and not state.undo_failures:
            error = text_store.store("undoError", _NOT_REMOVED)
            command = NoteUndoFailure(step=state.name, attempt=1, error=error)
        run = (yield from ask(commanded(society, run, (command,), text_store))).runs[run.run_id]


def _last(run: Run) -> StepState | None:
    due = [one for one in run.steps if one.undo_at is not None]
    return max(due, key=lambda one: STEP_ORDER.index(one.name), default=None)
