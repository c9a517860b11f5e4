"""What is made or told outside the log for a few children, how that fails, and how it is unmade."""

from application.log.texts import TextStore
from benchmarks.history.lives.requests import Child, commanded
from benchmarks.history.world.fates import Fate
from benchmarks.history.world.scheduler import Life, Wait, ask
from benchmarks.history.world.society import OPERATOR, Society
from domain.run.commands import (
    BeginStep,
    ConfirmHook,
    ConfirmUndo,
    NoteDelivery,
    NoteHookFailure,
    NoteUndoFailure,
    ParkHook,
    RedriveDeliveries,
    RefuseSpawn,
    RunCommand,
    StartPreparation,
    TakeStep,
)
from domain.run.facts import HOOK_ORDER, STEP_ORDER, HookName, HookState, StepState
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
    begun = start.changed({"steps": ("workspace", "attachments")})
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
        yield Wait(max(0.05, (state.undo_at - society.scheduler.now).total_seconds()))
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


ATTEMPTS_MAX = 3
RETRY_SECONDS_MAX = 300
TELLING_SECONDS = 0.03
FAILURES: dict[Fate, dict[HookName, int]] = {
    Fate.HEARD: {},
    Fate.BOUND: {},
    Fate.UNHEARD: {"subagentSpawned": 1, "subagentEnded": ATTEMPTS_MAX},
}
"""At how many attempts a hook fails, of those fates in which there are hooks. One that a message
goes on with tells what is left at the first attempt."""

_ERROR = "the hook answered HTTP 503"


def hooks_of(child: Child) -> tuple[HookName, ...]:
    """The hooks that are told of the child's run."""
    return HOOK_ORDER if child.fate in FAILURES else ()


def told(society: Society, child: Child, run: Run) -> Life[None]:
    """All that is due is told, or tried often enough."""
    while (state := next((one for one in run.hooks if one.due_at is not None), None)) is not None:
        assert state.due_at is not None
        left = (state.due_at - society.scheduler.now).total_seconds()
        yield Wait(max(0.0, left) + TELLING_SECONDS)
        run = society.log.runs[run.run_id]
        text_store = child.text_store(society)
        command = _outcome(child, state, text_store)
        run = (yield from ask(commanded(society, run, (command,), text_store))).runs[run.run_id]


def _outcome(child: Child, state: HookState, text_store: TextStore) -> RunCommand:
    attempt = state.attempts + 1
    if attempt > FAILURES.get(child.fate, {}).get(state.name, 0):
        return ConfirmHook(hook=state.name, status_code=204)
    error = text_store.store("hookError", _ERROR)
    if attempt == ATTEMPTS_MAX:
        return ParkHook(hook=state.name, attempt=attempt, error=error)
    return NoteHookFailure(
        hook=state.name, attempt=attempt, error=error, retry_seconds_max=RETRY_SECONDS_MAX
    )


WEBHOOK = "gateway"
_REFUSED = "the webhook answered HTTP 503"
_REDRIVEN = "the gateway is back"


def webhooks_of(child: Child) -> tuple[str, ...]:
    """The webhooks that are sent the child's announcement."""
    return (WEBHOOK,) if child.fate in FAILURES else ()


def delivered(society: Society, child: Child, run: Run) -> Life[None]:
    """The announcement is taken by its webhook; of those that nobody hears not before it was
    parked, and redriven by an operator."""
    while (state := run.delivery(WEBHOOK)) is not None and state.phase != "delivered":
        text_store = child.text_store(society)
        command: RunCommand
        if state.phase == "parked":
            yield Wait(TELLING_SECONDS)
            reason = text_store.store("redriveReason", _REDRIVEN)
            command = RedriveDeliveries(webhook=WEBHOOK, by=OPERATOR.name, reason=reason)
        else:
            assert state.due_at is not None
            left = (state.due_at - society.scheduler.now).total_seconds()
            yield Wait(max(0.0, left) + TELLING_SECONDS)
            fails = child.fate is Fate.UNHEARD and not state.attempts_before
            command = NoteDelivery(
                webhook=WEBHOOK,
                attempt=state.attempts + 1,
                status_code=503 if fails else 204,
                error=text_store.store("deliveryError", _REFUSED) if fails else None,
                attempts_max=ATTEMPTS_MAX,
                retry_seconds_max=RETRY_SECONDS_MAX,
            )
        run = society.log.runs[run.run_id]
        run = (yield from ask(commanded(society, run, (command,), text_store))).runs[run.run_id]
