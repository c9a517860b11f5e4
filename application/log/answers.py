"""What callers are told, made from the record alone, so that a repeat gives the same."""

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
    """A file that was attached; `sha256` is of its content."""

    name: str
    bytes: int
    sha256: str


class AttachmentsReceipt(View):
    """What was attached, and where it is below the child's workspace."""

    count: int
    total_bytes: int
    files: list[AttachedFileView]
    rel_dir: str


class AcceptedRun(View):
    """One child of an accepted spawn. `modelApplied` is whether the model that was named first is
    the one that runs; null when none was named."""

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
    """An accepted spawn: its run in `runs`, and the members of that run beside it."""


class AcceptedBatch(View):
    """An accepted list of tasks: a run for each."""

    status: Literal["accepted"]
    batch_id: UUID
    runs: list[AcceptedRun]


class AcceptedBatchOfOne(AcceptedRun, AcceptedBatch):
    """An accepted list with one task: the members of its run stand beside it."""


class ContinuedAnswer(View):
    """The new run of a session that goes on."""

    status: Literal["accepted"]
    run_id: UUID
    continues: UUID
    child_session_key: str
    session_id: UUID
    model_applied: bool | None
    warnings: list[str]


class QueuedAnswer(View):
    """A message that waits for the run at work, at this place from 1 on; `runId` is that of the run
    which will go on with it, and is known from then on."""

    status: Literal["queued"]
    run_id: UUID
    continues: UUID
    child_session_key: str
    session_id: UUID
    place: int


class SteeredAnswer(View):
    """A run that is ended for a message; `runId` is that of the run which goes on with it."""

    status: Literal["accepted"]
    run_id: UUID
    replaces: UUID
    child_session_key: str
    session_id: UUID
    mode: Literal["restart"]
    label: str | None
    text: str


class FinishedAnswer(View):
    """A run that was over when it was to be steered: nothing happened."""

    status: Literal["done"]
    run_id: UUID
    child_session_key: str
    session_id: UUID
    label: str | None
    text: str


class StoppedAnswer(View):
    """A run that is stopped; `wasOver` when there was nothing to stop."""

    run_id: UUID
    was_over: bool


class SessionStoppedAnswer(View):
    """A session that is stopped, with its newest run; `wasOver` when there was nothing to stop,
    `closed` when it takes no more messages."""

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
    """An announcement that was taken."""

    id: UUID
    run_id: UUID


class RedrivenAnswer(View):
    """An announcement that is sent again to these webhooks, or hooks that are called again."""

    run_id: UUID
    webhooks: list[str]
    hooks: list[str]


class PreambleAnswer(View):
    """What stands in front of the prompts of a session's later runs from now on; `characters` 0:
    nothing. `changed` is whether it was something else before."""

    session_key: str
    session_id: UUID
    characters: int
    changed: bool


class KeptTranscript(View):
    """What is kept of a transcript that was sent."""

    session_key: str
    session_id: UUID
    entries: int
    bytes: int
    tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRefusal:
    """A recorded refusal in the words of the caller. `child_session_key` is that of a child which
    something was made for before a step failed. Of a batch `run_id` is the run for which all were
    refused, and `task` its place, from 0 on; None when the refusal is of the batch as a whole."""

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
    """The session key that is told with a refusal: of a step that failed, save of attachments, for
    which nobody outside has heard of it."""
    return key if step in STEP_ORDER and step != "attachments" else None


def accepted_response(children: Sequence[AcceptedRun], batch_id: UUID | None) -> StoredAnswer:
    """The answer to a spawn whose children exist; with the fields of the one at the top when there
    is one. `batch_id` is that of a request for several."""
    told = {"status": "accepted", "batch_id": batch_id, "runs": children}
    if batch_id is None:
        answer: View = AcceptedSpawn.from_source(children[0], **told)
    elif len(children) == 1:
        answer = AcceptedBatchOfOne.from_source(children[0], **told)
    else:
        answer = AcceptedBatch(**told)
    return StoredAnswer.of("accepted", answer)


def accepted_run(run: Run, attachments: AttachmentsReceipt | None) -> AcceptedRun:
    """What is told of a child, from its run; `attachments` is the receipt of what was attached."""
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
    """The answer to a message that a session goes on with; `last` is the run before the new one."""
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
    """The answer to a message that waits for the `last` run, at this place from 1 on."""
    answer = QueuedAnswer.from_source(
        last, status="queued", run_id=run_id, continues=last.run_id, place=place
    )
    return StoredAnswer.of("queued", answer)


def steered_response(last: Run, run_id: UUID, name: str) -> StoredAnswer:
    """The answer to a message for which the `last` run is ended; `name` is what it is called."""
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
    """The answer to a steer of a session whose run is over: nothing was to be replaced."""
    text = f"{name} is already finished."
    return StoredAnswer.of("finished", FinishedAnswer.from_source(last, status="done", text=text))


def refusal_of_run(run: Run, text: str | None) -> SpawnRefusal:
    """The refusal of a refused run, in the words that are kept of it."""
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
    """The place in its batch of a run that was refused in this step; None when it is in none, and
    when all of the batch was refused as one."""
    return run.batch.index if run.batch is not None and step != "admission" else None


def refusal_response(refusal: SpawnRefusal) -> StoredAnswer:
    """The answer to a refused spawn."""
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
