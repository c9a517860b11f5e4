"""Views of runs."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_type_hints
from uuid import UUID

import orjson
from pydantic import Field, JsonValue

from application.delivery.announce import estimated_cost_usd
from application.log.answers import AttachmentsReceipt
from application.log.texts import Contents
from application.ports.registry import StatusRows
from application.ports.run_bars import ReachedStage, RunBar, RunBars
from application.queries.views.rule import RuleName
from application.queries.views.run_totals import RunTotalsView
from application.queries.views.view import View, selection
from domain.context.attachment_manifest import FilesMismatchError, parse_file_list, relative_dir
from domain.run.error_cause import error_line
from domain.run.facts import (
    Cleanup,
    ContextMode,
    DependencyNeeds,
    DependencyVia,
    Effect,
    MessageCause,
    RunOutcome,
    SpawnMode,
    StepName,
)
from domain.run.lifecycle import PREPARING, RunStage
from domain.run.state import Run
from domain.spawn.dependencies import read_dependencies
from domain.values.record import ContentRef

RecordedStage = Literal[
    "requested", "scripts-resolved", "overridden", "session-created", "queued", "started",
    "ended", "announced", "archived", "refused",
]  # fmt: skip
RunStatus = Literal[
    "preparing", "waiting", "queued", "running", "done", "failed", "timeout", "stopped",
    "unknown", "refused",
]  # fmt: skip
AttachmentsState = Literal["written", "removing", "removed", "left_in_place"]
AnnouncementStateName = Literal[
    "none", "pending", "delivered", "acknowledged", "skipped", "not_required"
]


class ListedAttachmentsView(AttachmentsReceipt):
    """The receipt of a run's attachments, with the files by name."""

    state: AttachmentsState


@selection("count", "total_bytes", "rel_dir", "state")
class AttachmentsView(ListedAttachmentsView):
    """The receipt of the attachments written to `relDir` below the child's workspace, and their
    current state."""


class PendingUndoView(View):
    """A step that is still to be undone: where it is, how often undoing it failed and why it failed
    last, and when it is retried."""

    step: StepName
    root: str | None
    relative: str | None
    failures: int
    next_attempt_at: datetime
    error: str | None


class ReachedStageView(View):
    """A stage that a run reached, with the log position and time."""

    stage: RecordedStage
    position: int
    at: datetime


class ToolsView(View):
    """The tools of a child. If `allow` is null, every tool that is not denied is allowed."""

    allow: list[str] | None
    deny: list[str]


class ModelUsageView(View):
    """Usage of one model, by the name that the runtime reported; null if it reported no name.
    `costUsd` is null if no price is configured for the model."""

    model: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    priced_as: str | None
    cost_usd: float | None


class UsageView(View):
    """Token counts as reported by the runtime. `totalTokens` is input plus output; cache tokens are
    separate. `unpricedModels` is the number of `models` without a price: `estimatedCostUsd` of the
    run does not include their tokens."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    models: list[ModelUsageView]
    unpriced_models: int


class AnnouncementStateView(View):
    """The state of an announcement."""

    state: AnnouncementStateName
    reason: str | None
    attempts: int
    last_error: str | None


class DependencyView(View):
    """A run that this run depends on. `state` is `unmet` if this run was over before that run ended
    as required. `runId` is null if a name in the request matched no run, or several: then nothing
    was awaited, and lists of runs omit the entry."""

    run_id: UUID | None
    name: str
    via: DependencyVia
    require: DependencyNeeds
    state: Literal["waiting", "met", "unmet"]


class PreambleView(View):
    """Length of the preamble that the parent gave, before and after truncation, in characters."""

    given_characters: int
    kept_characters: int
    limit: int


class ProgressView(View):
    """The latest progress that the run reported while running, and when."""

    text: str
    at: datetime


class ForContent(NamedTuple):
    """Marker of a field that requires scope `content`. Otherwise the fields `instead` replace
    it."""

    instead: tuple[str, ...] = ()


_ONE_RUN = "of one run"
"""Marker of a field that lists omit."""


class RunView(View):
    """A run with its texts. `parentRunId` is the run that requested it; null if its requester is a
    session that was not spawned here. `respawns` lists the first hundred respawns that the caller
    may see. Times are UTC; `*Ms` fields are milliseconds."""

    run_id: UUID
    stage: RecordedStage
    status: RunStatus
    outcome: RunOutcome | None
    agent_id: str | None
    requested_agent_id: str | None
    requester_session_key: str
    parent_run_id: Annotated[UUID | None, _ONE_RUN]
    child_session_key: str | None
    session_id: UUID
    controller_session_key: str
    continues: UUID | None
    respawned_from: UUID | None
    batch_id: UUID | None
    label: str | None
    task: Annotated[str | None, ForContent(instead=("task_preview", "task_bytes"))]
    depth: int
    role: str | None
    model_provider: str | None
    model: str | None
    thinking: str | None
    run_timeout_seconds: int | None
    mode: SpawnMode
    cleanup: Cleanup
    context_mode: ContextMode
    workspace_dir: str | None
    sandboxed: bool | None
    tools: ToolsView | None
    warnings: list[str]
    lane: str | None
    attachments: ListedAttachmentsView | AttachmentsView | None
    undoing: list[PendingUndoView]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    announced_at: datetime | None
    archived_at: datetime | None
    archive_at: datetime | None
    stages: list[ReachedStageView]
    runtime_ms: int | None
    error: str | None
    rule: RuleName | None
    usage: UsageView | None
    estimated_cost_usd: float | None
    transcript_path: str | None
    announcement: AnnouncementStateView
    depends_on: list[DependencyView]
    config_revision: int
    version: int
    cause: MessageCause | None
    continued_by: UUID | None
    yielded: bool
    respawns: Annotated[list[UUID], _ONE_RUN]
    context_preamble: Annotated[PreambleView | None, _ONE_RUN]
    transcript_entries: Annotated[int | None, _ONE_RUN]
    progress: Annotated[ProgressView | None, ForContent()]
    result_text: Annotated[str | None, ForContent()]
    stop_requested_by: Annotated[str | None, _ONE_RUN]
    stop_reason: Annotated[str | None, ForContent()]
    requester_origin: Annotated[JsonValue, ForContent()]


def _masked(field: str) -> tuple[str, ...]:
    """Return the fields that replace this one for a caller without scope `content`."""
    marks = (mark for mark in RunView.model_fields[field].metadata if isinstance(mark, ForContent))
    return next((mark.instead for mark in marks), (field,))


@selection(*(shown for name in RunView.model_fields for shown in _masked(name)))
class RunMetadataView(RunView):
    """A run for a caller that may not read its texts: previews of the task and of an error, and
    every field that holds no text. `parentRunId` is the run that requested it; null if its
    requester is a session that was not spawned here. `respawns` lists the first hundred respawns
    that the caller may see. Times are UTC; `*Ms` fields are milliseconds."""

    task_preview: str | None
    task_bytes: int


@selection(
    *(
        name
        for name, field in RunMetadataView.model_fields.items()
        if _ONE_RUN not in field.metadata
    ),
    "error_cause",
)
class RunSummary(RunMetadataView):
    """A run in a list, with previews of its task and its error. Times are UTC; `*Ms` fields are
    milliseconds."""

    error_cause: str | None = Field(
        None, description="Line of the error that names its cause; requires scope `content`."
    )


class RunListView(View):
    """A page of runs; `nextCursor` is null on the last page. `totals` is set on the first page if
    it was requested."""

    items: list[RunSummary]
    next_cursor: str | None
    totals: RunTotalsView | None = None


def attachment_list(run: Run) -> ContentRef | None:
    """Return the list of the files that were written, or None if none ever were."""
    step = run.step("attachments")
    return step.manifest if step is not None else None


def attachments_view(
    run: Run, texts: Mapping[UUID, str]
) -> ListedAttachmentsView | AttachmentsView | None:
    """Return the receipt of the written files and their state, or None if none were written.

    The files are named if their list is among the texts.
    """
    step = run.step("attachments")
    if step is None or step.manifest is None:
        return None
    receipt = {
        "rel_dir": relative_dir(run.run_id),
        "state": _attachments_state(run.effect("undo", step.name)),
    }
    try:
        listed = parse_file_list(texts[step.manifest.id])
    except (KeyError, FilesMismatchError):
        count, total_bytes = step.file_count or 0, step.total_bytes or 0
        return AttachmentsView.from_source(step, count=count, total_bytes=total_bytes, **receipt)
    return ListedAttachmentsView.from_source(listed, count=len(listed.files), **receipt)


def _attachments_state(undo: Effect | None) -> AttachmentsState:
    if undo is None:
        return "written"
    if undo.phase != "done":
        return "removing"
    return "left_in_place" if undo.outcome == "left_in_place" else "removed"


def pending_undo_views(run: Run, texts: Mapping[UUID, str]) -> list[PendingUndoView]:
    """Return the steps that are still to be undone.

    `texts` contains the errors of failed attempts.
    """
    return [
        PendingUndoView.from_source(
            step,
            step=step.name,
            failures=undo.attempts,
            next_attempt_at=undo.due_at,
            error=text_of(undo.error, texts),
        )
        for step in run.steps
        if (undo := run.effect("undo", step.name)) is not None and undo.due_at is not None
    ]


STATUS_BY_OUTCOME: Mapping[RunOutcome, RunStatus] = {
    "success": "done",
    "error": "failed",
    "timeout": "timeout",
    "stopped": "stopped",
    "unknown": "unknown",
}
ENDED_STAGES = ("ended", "announced", "archived")
ROWS_BY_STATUS: Mapping[RunStatus, StatusRows] = {
    "preparing": StatusRows(
        ("requested", "scripts-resolved", "overridden", "session-created"), waiting=False
    ),
    "waiting": StatusRows(("session-created",), waiting=True),
    "queued": StatusRows(("queued",)),
    "running": StatusRows(("started",)),
    "refused": StatusRows(("refused",)),
    **{status: StatusRows(ENDED_STAGES, outcome) for outcome, status in STATUS_BY_OUTCOME.items()},
}
"""The row condition by which runs of each status are searched."""


def status_of(run: Run) -> RunStatus:
    """Return the status that follows from the run's stage and outcome."""
    return status_of_stage(run.stage, run.outcome, waits=is_waiting(run))


def status_of_stage(stage: RunStage, outcome: RunOutcome | None, *, waits: bool) -> RunStatus:
    """Return the status of a stage and outcome; `waits` is True if the run waits for other runs."""
    if waits:
        return "waiting"
    if stage in PREPARING or stage == "session-created":
        return "preparing"
    if stage == "queued":
        return "queued"
    if stage == "started":
        return "running"
    if stage == "refused":
        return "refused"
    return STATUS_BY_OUTCOME[outcome or "unknown"]


def is_waiting(run: Run) -> bool:
    """Return True if the run is prepared and waits for other runs."""
    return run.stage == "session-created" and run.waits_for is not None


def dependency_views(run: Run) -> list[DependencyView]:
    """Return the runs that this run depends on."""
    # Within the append that creates the session, the awaited runs are not recorded yet.
    is_undecided = run.stage == "session-created" and run.holder is not None
    is_open = run.stage in PREPARING or is_undecided or is_waiting(run)
    never_waited = run.stage in PREPARING or is_undecided or run.stage == "refused"
    unmet = (
        {dependency.run_id for dependency in run.dependencies or ()}
        if never_waited
        else set(run.waits_for or ())
    )
    unmet_state: Literal["waiting", "unmet"] = "waiting" if is_open else "unmet"
    return [
        DependencyView.from_source(
            dependency, state=unmet_state if dependency.run_id in unmet else "met"
        )
        for dependency in run.dependencies or ()
    ]


def _unbound_views(run: Run, texts: Mapping[UUID, str]) -> Iterator[DependencyView]:
    text = text_of(run.dependencies_argument, texts)
    for dependency in read_dependencies(text) if text is not None else ():
        yield DependencyView.from_source(dependency, run_id=None, state="unmet")


async def run_summaries(
    runs: Sequence[Run], contents: Contents, bars: RunBars, *, with_causes: bool = False
) -> list[RunSummary]:
    """Return runs with previews of their texts and, with `with_causes`, the causes of their
    errors."""
    errors = [run.error for run in runs if run.error is not None] if with_causes else []
    stages, previews, ends = await asyncio.gather(
        bars.stages({run.run_id: run.version for run in runs}),
        contents.previews([ref for run in runs for ref in summary_texts(run)]),
        contents.ends(errors),
    )
    return [
        view_of_run(
            RunSummary,
            run,
            previews,
            stages[run.run_id],
            error_cause=None
            if run.error is None
            else error_line(ends.get(run.error.id, "")) or None,
        )
        for run in runs
    ]


R = TypeVar("R", bound=RunView)


async def read_run(
    form: type[R],
    run: Run,
    contents: Contents,
    bars: RunBars,
    respawns: Sequence[UUID] = (),
    *,
    recent: bool = False,
) -> R:
    """Return a run in one of its forms, with its texts or previews.

    Args:
        form: `RunView` for whole texts, or a selection of its fields for previews.
        run: The run.
        contents: Where texts are read from.
        bars: Where stages are read from.
        respawns: The respawns of the run.
        recent: As in `Contents.texts`.
    """
    is_full = form is RunView
    read_stages = bars.stages({run.run_id: run.version})
    if is_full and recent:
        # Both are usually in memory.
        texts = await contents.texts(view_texts(run), recent=True)
        stages = await read_stages
    else:
        stages, texts = await asyncio.gather(
            read_stages,
            contents.texts(view_texts(run)) if is_full else contents.previews(summary_texts(run)),
        )
    return view_of_run(form, run, texts, stages[run.run_id], respawns)


def view_of_run(
    form: type[R],
    run: Run,
    texts: Mapping[UUID, str],
    stages: Sequence[ReachedStage],
    respawns: Sequence[UUID] = (),
    **more: Any,
) -> R:
    """Return a run in one of its forms.

    Args:
        form: `RunView` or a selection of its fields.
        run: The run.
        texts: The available texts or previews by id (see `view_texts`, `summary_texts`).
        stages: The stages that the run has reached.
        respawns: The respawns of the run.
        more: Further fields of the form.
    """
    task = texts.get(run.task.id)
    members: dict[str, Any] = {
        **{name: read(run) for name, read in RUN_READERS.items()},
        "task": task,
        "task_preview": task,
        "task_bytes": run.task.bytes,
        "attachments": attachments_view(run, texts),
        "undoing": pending_undo_views(run, texts),
        "stages": stages,
        "error": text_of(error_text(run), texts),
        "depends_on": [*dependency_views(run), *_unbound_views(run, texts)],
        "respawns": respawns,
        "transcript_entries": run.transcript.count if run.transcript is not None else None,
        "progress": None,
        "result_text": text_of(run.result, texts),
        "stop_reason": text_of(run.stop_reason, texts),
        "requester_origin": _origin(run, texts),
    }
    return form(**members, **more)


def view_texts(run: Run) -> list[ContentRef]:
    """Return references to the texts that a whole run shows."""
    refs = [
        *summary_texts(run),
        run.result,
        run.stop_reason,
        run.requester.origin,
        run.dependencies_argument,
        attachment_list(run),
    ]
    return [ref for ref in refs if ref is not None]


def summary_texts(run: Run) -> list[ContentRef]:
    """Return references to the texts that a summary previews."""
    undos = (undo.error for undo in run.effects_of("undo") if undo.due_at is not None)
    return [ref for ref in (run.task, error_text(run), *undos) if ref is not None]


def error_text(run: Run) -> ContentRef | None:
    """Return the reference to the text that says why the run was refused or failed."""
    return run.refusal.text if run.refusal is not None else run.error


def view_of_bar(
    form: type[R], bar: RunBar, stages: Mapping[UUID, Sequence[ReachedStage]], **members: Any
) -> R:
    """Return a run in a form whose fields follow from its bar, its stages and these members."""
    status = status_of_stage(bar.stage, bar.outcome, waits=bar.waits)
    return form.from_source(bar, status=status, stages=stages[bar.run_id], **members)


def _preamble(run: Run) -> PreambleView | None:
    sizes = run.preamble_sizes
    if sizes is None:
        return None
    return PreambleView.from_source(sizes, limit=sizes.characters_max)


def text_of(ref: ContentRef | None, texts: Mapping[UUID, str]) -> str | None:
    """Return a text, or None if there is none or it was erased."""
    return texts.get(ref.id) if ref is not None else None


def _origin(run: Run, texts: Mapping[UUID, str]) -> Any:
    text = text_of(run.requester.origin, texts)
    return orjson.loads(text) if text else None


def announcement_state(run: Run) -> AnnouncementStateView:
    """Return the state of the run's announcement."""
    inbox = run.inbox
    state: AnnouncementStateName
    if inbox is None:
        state = "none" if run.outcome is None else "pending"
    elif inbox.disposition != "inbox":
        state = inbox.disposition
    else:
        state = "delivered" if inbox.acknowledged_at is None else "acknowledged"
    attempts = 1 if inbox is not None and inbox.disposition == "inbox" else 0
    reason = inbox.reason if inbox else None
    return AnnouncementStateView(state=state, reason=reason, attempts=attempts, last_error=None)


def _cause(run: Run) -> MessageCause | None:
    return run.cause or ("message" if run.continues is not None else None)


def _tools(run: Run) -> dict[str, Any] | None:
    return {"allow": run.plan.tools_allow, "deny": run.plan.tools_deny} if run.plan else None


_SOURCES: Mapping[str, str | Callable[[Run], Any]] = {
    "stage": "stage",
    "status": status_of,
    "requester_session_key": "requester.session_key",
    "controller_session_key": "requester.session_key",
    "parent_run_id": "requester.run_id",
    "respawned_from": "respawn.run_id",
    "batch_id": "batch.batch_id",
    "model_provider": "plan.model_provider",
    "model": "plan.model",
    "thinking": "plan.thinking",
    "run_timeout_seconds": "plan.run_timeout_seconds",
    "workspace_dir": "plan.workspace_dir",
    "sandboxed": "plan.sandboxed",
    "mode": "options.mode",
    "cleanup": "cleanup",
    "context_mode": "context_mode",
    "tools": _tools,
    "warnings": "warnings",
    "rule": "refusal.rule",
    "usage": "usage",
    "estimated_cost_usd": estimated_cost_usd,
    "announcement": announcement_state,
    "cause": _cause,
    "yielded": lambda run: run.yielded_by is not None,
    "context_preamble": _preamble,
}
"""Where fields of the view are in the state, if not in a field of the same name and type."""


def _reader(source: str | Callable[[Run], Any]) -> Callable[[Run], Any]:
    if not isinstance(source, str):
        return source
    part, _, name = source.partition(".")
    if not name:
        return attrgetter(part)
    return lambda run: getattr(found, name) if (found := getattr(run, part)) is not None else None


_IN_STATE = get_type_hints(Run)


RUN_READERS: Mapping[str, Callable[[Run], Any]] = {
    name: _reader(_SOURCES.get(name, name))
    for name, field in RunView.model_fields.items()
    if name in _SOURCES or _IN_STATE.get(name) == field.annotation
}
"""Readers of the fields that follow from the state alone."""
