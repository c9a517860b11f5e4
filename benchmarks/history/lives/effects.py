"""What is made or told outside the log for a few children, how that fails, and how it is unmade."""

from application.log.texts import TextStore
from benchmarks.history.lives.requests import Child, commanded
from benchmarks.history.world.fates import Fate
from benchmarks.history.world.scheduler import Life, Wait, ask
from benchmarks.history.world.society import OPERATOR, Society
from domain.run.commands import (
    BeginStep,
    ConfirmEffect,
    NoteEffectFailure,
    RedriveEffects,
    RefuseSpawn,
    RunCommand,
    StartPreparation,
    TakeStep,
)
from domain.run.facts import HOOK_ORDER, Effect, EffectKind, HookName
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
    while (effect := _due(run, "undo")) is not None:
        assert effect.due_at is not None
        yield Wait(max(0.05, (effect.due_at - society.scheduler.now).total_seconds()))
        run = society.log.runs[run.run_id]
        text_store = child.text_store(society)
        command: RunCommand = ConfirmEffect(kind="undo", name=effect.name, outcome="undone")
        if run.stage == "refused" and effect.name == "attachments" and not effect.attempts:
            error = text_store.store("undoError", _NOT_REMOVED)
            command = NoteEffectFailure(kind="undo", name=effect.name, attempt=1, error=error)
        run = (yield from ask(commanded(society, run, (command,), text_store))).runs[run.run_id]


def _due(run: Run, kind: EffectKind) -> Effect | None:
    return next((one for one in run.effects_of(kind) if one.due_at is not None), None)


ATTEMPTS_MAX = 3
RETRY_SECONDS_MAX = 300
TELLING_SECONDS = 0.03
FAILURES: dict[Fate, dict[str, int]] = {
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
    while (effect := _due(run, "hook")) is not None:
        assert effect.due_at is not None
        left = (effect.due_at - society.scheduler.now).total_seconds()
        yield Wait(max(0.0, left) + TELLING_SECONDS)
        run = society.log.runs[run.run_id]
        text_store = child.text_store(society)
        command = _outcome(child, effect, text_store)
        run = (yield from ask(commanded(society, run, (command,), text_store))).runs[run.run_id]


def _outcome(child: Child, effect: Effect, text_store: TextStore) -> RunCommand:
    attempt = effect.attempts + 1
    if attempt > FAILURES.get(child.fate, {}).get(effect.name, 0):
        return ConfirmEffect(kind="hook", name=effect.name, status_code=204)
    return NoteEffectFailure(
        kind="hook",
        name=effect.name,
        attempt=attempt,
        error=text_store.store("hookError", _ERROR),
        attempts_max=ATTEMPTS_MAX,
        retry_seconds_max=RETRY_SECONDS_MAX,
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
    while (effect := run.effect("webhook", WEBHOOK)) is not None and effect.phase != "done":
        text_store = child.text_store(society)
        command: RunCommand
        fails = child.fate is Fate.UNHEARD and not effect.attempts_before
        if effect.phase == "parked":
            yield Wait(TELLING_SECONDS)
            reason = text_store.store("redriveReason", _REDRIVEN)
            command = RedriveEffects(kind="webhook", name=WEBHOOK, by=OPERATOR.name, reason=reason)
        else:
            assert effect.due_at is not None
            left = (effect.due_at - society.scheduler.now).total_seconds()
            yield Wait(max(0.0, left) + TELLING_SECONDS)
            command = ConfirmEffect(kind="webhook", name=WEBHOOK, status_code=204)
            if fails:
                command = NoteEffectFailure(
                    kind="webhook",
                    name=WEBHOOK,
                    attempt=effect.attempts + 1,
                    status_code=503,
                    error=text_store.store("deliveryError", _REFUSED),
                    attempts_max=ATTEMPTS_MAX,
                    retry_seconds_max=RETRY_SECONDS_MAX,
                )
        run = society.log.runs[run.run_id]
        run = (yield from ask(commanded(society, run, (command,), text_store))).runs[run.run_id]
