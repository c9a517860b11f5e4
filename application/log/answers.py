"""Answers to callers, derived from the record alone, so that a repeated request gets the same
answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from application.log.event_log import StoredAnswer
from application.log.view import View
from domain.context.fork import accepted_note, fork_note
from domain.run.facts import STEP_ORDER, SpawnMode
from domain.run.state import Run
from domain.values import rules
from domain.values.refusals import ERASED

_ERASED_SINCE = "the text of this refusal was erased"
AnswerStatus = Literal["forbidden", "error"]


class AttachedFileView(View):
    """An attached file. `sha256` is the hash of its content."""

    name: str
    bytes: int
    sha256: str


class AttachmentsReceipt(View):
    """The attached files, and their folder relative to the child's workspace."""

    count: int
    total_bytes: int
    files: list[AttachedFileView]
    rel_dir: str


class AcceptedRun(View):
    """A child of an accepted spawn. `modelApplied` is true if the first requested model is the one
    that runs, and null if none was requested."""

    run_id: UUID
    child_session_key: str
    session_id: UUID
    label: str | None
    mode: SpawnMode
    note: str | None
    model_applied: bool | None
    attachments: AttachmentsReceipt | None
    warnings: list[str]


class _AcceptedRuns(View):
    status: Literal["accepted"]
    runs: list[AcceptedRun]


class AcceptedSpawn(AcceptedRun, _AcceptedRuns):
    """An accepted spawn of one run, listed in `runs`, whose fields are repeated at the top."""


class AcceptedBatch(View):
    """An accepted batch, with one run per task."""

    status: Literal["accepted"]
    batch_id: UUID
    runs: list[AcceptedRun]


class AcceptedBatchOfOne(AcceptedRun, AcceptedBatch):
    """An accepted batch of one task, with the fields of its run repeated at the top."""


class ContinuedAnswer(View):
    """The new run with which a session continues."""

    status: Literal["accepted"]
    run_id: UUID
    continues: UUID
    child_session_key: str
    session_id: UUID
    model_applied: bool | None
    warnings: list[str]


class QueuedAnswer(View):
    """The receipt of a message that waits for the current run to end. `place` is its place among
    the waiting messages, from 1. `runId` is the id of the run that will continue with it."""

    status: Literal["queued"]
    run_id: UUID
    continues: UUID
    child_session_key: str
    session_id: UUID
    place: int


class SteeredAnswer(View):
    """A run that is being ended for a message. `runId` is the id of the run that continues with
    it."""

    status: Literal["accepted"]
    run_id: UUID
    replaces: UUID
    child_session_key: str
    session_id: UUID
    mode: Literal["restart"]
    label: str | None
    text: str


class FinishedAnswer(View):
    """A steer of a run that is already over: a no-op."""

    status: Literal["done"]
    run_id: UUID
    child_session_key: str
    session_id: UUID
    label: str | None
    text: str


class StoppedAnswer(View):
    """A run that is stopped. `wasOver` is true if it had already ended."""

    run_id: UUID
    was_over: bool


class SessionStoppedAnswer(View):
    """A session that is stopped, with its newest run. `wasOver` is true if there was nothing to
    stop, `closed` if the session accepts no more messages."""

    session_key: str
    session_id: UUID
    run_id: UUID | None
    was_over: bool
    closed: bool


class YieldedAnswer(View):
    """A run that ends its turn and waits for its children."""

    status: Literal["yielded"]
    message: str
    run_id: UUID
    session_key: str


class AcknowledgedAnswer(View):
    """An announcement that was acknowledged."""

    id: UUID
    run_id: UUID


class RedrivenAnswer(View):
    """Webhooks that receive the announcement again, and hooks that are called again."""

    run_id: UUID
    webhooks: list[str]
    hooks: list[str]


class RedrivenItem(View):
    """An announcement that is sent again, and the webhooks that receive it."""

    run_id: UUID
    webhooks: list[str]


class RedriveRefusal(View):
    """An announcement that stays parked, and why."""

    run_id: UUID
    code: Literal["erased"]
    detail: str


class RedrivenManyAnswer(View):
    """Announcements that are sent again, and those that stay parked. If `moreAfter` is given, more
    may be parked after that position, up to `until`."""

    redriven: list[RedrivenItem]
    refused: list[RedriveRefusal]
    more_after: int | None
    until: int


class PreambleAnswer(View):
    """The preamble of a session's later runs. `characters` is 0 if there is none. `changed` is true
    if it differs from the previous one."""

    session_key: str
    session_id: UUID
    characters: int
    changed: bool


class KeptTranscript(View):
    """The stored part of an uploaded transcript."""

    session_key: str
    session_id: UUID
    entries: int
    bytes: int
    tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRefusal:
    """A recorded refusal, as it is returned to the caller.

    Attributes:
        run_id: The refused run; in a batch, the run that caused the refusal.
        child_session_key: Key of a child that a step had been made for before a step failed.
        task: Index of the run in its batch, from 0; None if the batch was refused as a whole.
    """

    run_id: UUID
    rule: str
    status: AnswerStatus
    text: str
    current: int | None = None
    limit: int | None = None
    child_session_key: str | None = None
    batch_id: UUID | None = None
    task: int | None = None


def refused_session_key(key: str | None, step: str) -> str | None:
    """Return the child session key to include in a refusal, or None if it was never exposed.

    Only a failed step exposes it, except the attachments step.
    """
    return key if step in STEP_ORDER and step != "attachments" else None


def accepted_response(children: Sequence[AcceptedRun], batch_id: UUID | None) -> StoredAnswer:
    """Return the answer to a spawn whose children exist.

    With one child, its fields are repeated at the top. `batch_id` is set for a request with several
    tasks.
    """
    members = {"status": "accepted", "batch_id": batch_id, "runs": children}
    if batch_id is None:
        answer: View = AcceptedSpawn.from_source(children[0], **members)
    elif len(children) == 1:
        answer = AcceptedBatchOfOne.from_source(children[0], **members)
    else:
        answer = AcceptedBatch(**members)
    return StoredAnswer.of("accepted", answer)


def accepted_run(run: Run, attachments: AttachmentsReceipt | None) -> AcceptedRun:
    """Return the view of an accepted child. `attachments` is the receipt of its attached files."""
    assert run.plan is not None
    return AcceptedRun.from_source(
        run,
        mode=run.options.mode,
        note=accepted_note(run.options, run.requester, fork_note(run.fork)),
        model_applied=run.plan.model_applied,
        attachments=attachments,
    )


def continued_response(
    last: Run, run_id: UUID, warnings: tuple[str, ...], model_applied: bool | None
) -> StoredAnswer:
    """Return the answer to a message that continues a session. `last` is the run before the new
    one."""
    answer = ContinuedAnswer.from_source(
        last,
        status="accepted",
        run_id=run_id,
        continues=last.run_id,
        model_applied=model_applied,
        warnings=warnings,
    )
    return StoredAnswer.of("continued", answer)


def queued_response(last: Run, run_id: UUID, place: int) -> StoredAnswer:
    """Return the answer to a message that waits for the run `last`. `place` counts from 1."""
    answer = QueuedAnswer.from_source(
        last, status="queued", run_id=run_id, continues=last.run_id, place=place
    )
    return StoredAnswer.of("queued", answer)


def steered_response(last: Run, run_id: UUID, name: str) -> StoredAnswer:
    """Return the answer to a steer that ends the run `last`. `name` is the display name of the
    run."""
    answer = SteeredAnswer.from_source(
        last,
        status="accepted",
        run_id=run_id,
        replaces=last.run_id,
        mode="restart",
        text=f"steered {name}.",
    )
    return StoredAnswer.of("steered", answer)


def finished_response(last: Run, name: str) -> StoredAnswer:
    """Return the answer to a steer of a session whose run is over: a no-op."""
    text = f"{name} is already finished."
    return StoredAnswer.of("finished", FinishedAnswer.from_source(last, status="done", text=text))


def refusal_of_run(run: Run, text: str | None) -> SpawnRefusal:
    """Return the refusal of a refused run, with its recorded text if that still exists."""
    assert run.refusal is not None
    current, limit = run.refusal.inputs.get("current"), run.refusal.inputs.get("limit")
    return SpawnRefusal(
        run_id=run.run_id,
        rule=run.refusal.rule,
        status="forbidden" if run.refusal.status == "forbidden" else "error",
        text=text or (ERASED if run.refusal.rule == rules.ERASED.name else _ERASED_SINCE),
        current=current if isinstance(current, int) else None,
        limit=limit if isinstance(limit, int) else None,
        child_session_key=refused_session_key(run.child_session_key, run.refusal.step),
        batch_id=run.batch.batch_id if run.batch else None,
        task=refused_task_index(run, run.refusal.step),
    )


def refused_task_index(run: Run, step: str) -> int | None:
    """Return the index of a refused run in its batch; None without a batch, or if the batch was
    refused as a whole."""
    return run.batch.index if run.batch is not None and step != "admission" else None


def refusal_response(refusal: SpawnRefusal) -> StoredAnswer:
    """Return the answer to a refused spawn."""
    body: dict[str, object] = {
        "runId": str(refusal.run_id),
        "rule": refusal.rule,
        "text": refusal.text,
        "current": refusal.current,
        "limit": refusal.limit,
        "childSessionKey": refusal.child_session_key,
    }
    if refusal.batch_id is not None:
        body |= {"batchId": str(refusal.batch_id), "task": refusal.task}
    return StoredAnswer(refusal.status, body)
