"""Steps and effects of a few children: how they are made, fail, and are undone."""

from application.log.texts import TextStore
from application.steps.thread_binding import SPARE_SECONDS
from benchmarks.history.lives.requests import Child, commanded
from benchmarks.history.world.configuration import (
    EFFECT_ATTEMPTS_MAX,
    EFFECT_RETRY_SECONDS_MAX,
    GATEWAY,
)
from benchmarks.history.world.fates import Fate
from benchmarks.history.world.scheduler import Life, Wait, ask
from benchmarks.history.world.society import OPERATOR, Society
from domain.context.attachment_manifest import relative_dir
from domain.context.thread_binding import merge_origins, origin_text
from domain.delivery.webhook import receivers
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
STEP_SECONDS = 0.02
_NOT_WRITTEN = "attachments_materialization_failed (No space left on device)"
_NOT_REMOVED = "the attachments cannot be removed: Device or resource busy"


def stepped(
    society: Society,
    child: Child,
    run: Run,
    before: tuple[RunCommand, ...],
    folder: str,
    text_store: TextStore,
) -> Life[tuple[Run, tuple[RunCommand, ...]]]:
    """Take the steps of the preparation, except for the result of the last one.

    Returns:
        The run then, and the commands that precede the following ones. `before` ends with the start
            of the preparation; texts of the commands are in `text_store`.
    """
    steps = _steps(society, child, run, folder, text_store)
    if steps:
        *others, start = before
        assert isinstance(start, StartPreparation)
        before = (*others, start.changed({"steps": tuple(begin.step for begin, _ in steps)}))
    for begin, take in steps:
        begun = commanded(society, run, (*before, begin), child.text_store(society))
        run = (yield from ask(begun)).runs[run.run_id]
        yield Wait(STEP_SECONDS)
        before = (take,)
    return run, before


def _steps(
    society: Society, child: Child, run: Run, folder: str, text_store: TextStore
) -> list[tuple[BeginStep, TakeStep]]:
    if run.thread:
        return [_thread_bound(society, child, run, text_store)]
    return _files_written(run, folder) if run.attachments is not None else []


def _thread_bound(
    society: Society, child: Child, run: Run, text_store: TextStore
) -> tuple[BeginStep, TakeStep]:
    hook = society.pinned.configuration.spawnlog.hooks.subagent_spawning
    assert hook is not None
    thread = {"threadId": f"thread-{run.run_id.hex[-8:]}"}
    origin = origin_text(merge_origins(thread, child.origin))
    assert origin is not None
    begin = BeginStep(
        epoch=run.epoch,
        step="thread_binding",
        limit_seconds=hook.timeout_seconds + SPARE_SECONDS,
    )
    take = TakeStep(
        epoch=run.epoch,
        step="thread_binding",
        outcome="bound",
        can_undo=True,
        origin=text_store.store("origin", origin),
    )
    return begin, take


def _files_written(run: Run, folder: str) -> list[tuple[BeginStep, TakeStep]]:
    assert run.attachments is not None
    workspace = BeginStep(
        epoch=run.epoch,
        step="workspace",
        limit_seconds=LIMIT_SECONDS,
        root="/workspaces",
        relative=folder,
    )
    attachments = BeginStep(
        epoch=run.epoch,
        step="attachments",
        limit_seconds=LIMIT_SECONDS,
        root=f"/workspaces/{folder}",
        relative=relative_dir(run.run_id),
    )
    written = TakeStep(
        epoch=run.epoch,
        step="attachments",
        outcome="written",
        manifest=run.attachments.manifest,
        file_count=run.attachments.count,
        total_bytes=run.attachments.total_bytes,
    )
    made = TakeStep(epoch=run.epoch, step="workspace", outcome="made")
    return [(workspace, made), (attachments, written)]


def not_written(child: Child, run: Run, text_store: TextStore) -> RefuseSpawn | None:
    """Return the refusal of a child whose files cannot be written, or None."""
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
    """Undo every due step, last one first. For a refused spawn, the first attempt fails."""
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
    return next((effect for effect in run.effects_of(kind) if effect.due_at is not None), None)


TELLING_SECONDS = 0.03
_ERROR = "the hook answered HTTP 503"


def hooks_of(society: Society) -> tuple[HookName, ...]:
    """Return the hooks that are called for each run."""
    configured = society.pinned.configuration.spawnlog.hooks.configured
    return tuple(hook for hook in HOOK_ORDER if hook in configured)


def told(society: Society, child: Child, run: Run) -> Life[None]:
    """Perform every due hook call, or park it after its last attempt."""
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
    # Each attempt fails for a run with this fate.
    if child.fate is not Fate.UNHEARD:
        return ConfirmEffect(kind="hook", name=effect.name, status_code=204)
    return NoteEffectFailure(
        kind="hook",
        name=effect.name,
        attempt=attempt,
        error=text_store.store("hookError", _ERROR),
        attempts_max=EFFECT_ATTEMPTS_MAX,
        retry_seconds_max=EFFECT_RETRY_SECONDS_MAX,
    )


_REFUSED = "the webhook responded with HTTP 503"
_REDRIVEN = "the gateway is back"


def webhooks_of(society: Society, child: Child, run: Run) -> tuple[str, ...]:
    """Return the webhooks that are sent an announcement of the run."""
    announce = society.pinned.configuration.spawnlog.announce
    # Announcements to a sub-agent have no address outside of the inbox.
    return receivers(
        announce, run.requester.agent_id, child.origin if not run.requester.depth else {}
    )


def delivered(society: Society, child: Child, run: Run) -> Life[None]:
    """Deliver the announcement to its webhook. For some fates, it is parked first and redriven by
    an operator.
    """
    while (effect := run.effect("webhook", GATEWAY)) is not None and effect.phase != "done":
        text_store = child.text_store(society)
        command: RunCommand
        fails = child.fate is Fate.UNHEARD and not effect.attempts_before
        if effect.phase == "parked":
            yield Wait(TELLING_SECONDS)
            reason = text_store.store("redriveReason", _REDRIVEN)
            command = RedriveEffects(kind="webhook", name=GATEWAY, by=OPERATOR.name, reason=reason)
        else:
            assert effect.due_at is not None
            left = (effect.due_at - society.scheduler.now).total_seconds()
            yield Wait(max(0.0, left) + TELLING_SECONDS)
            command = ConfirmEffect(kind="webhook", name=GATEWAY, status_code=204)
            if fails:
                command = NoteEffectFailure(
                    kind="webhook",
                    name=GATEWAY,
                    attempt=effect.attempts + 1,
                    status_code=503,
                    error=text_store.store("deliveryError", _REFUSED),
                    attempts_max=EFFECT_ATTEMPTS_MAX,
                    retry_seconds_max=EFFECT_RETRY_SECONDS_MAX,
                )
        run = society.log.runs[run.run_id]
        run = (yield from ask(commanded(society, run, (command,), text_store))).runs[run.run_id]
