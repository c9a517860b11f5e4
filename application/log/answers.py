"""What callers are told, made from the record alone, so that a repeat gives the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from application.log.event_log import StoredAnswer
from domain.context.fork import accepted_note, fork_note
from domain.run.facts import STEP_ORDER
from domain.run.state import Run
from domain.values import rules
from domain.values.refusals import ERASED

_ERASED_SINCE = "the text of this refusal was erased"
AnswerStatus = Literal["forbidden", "error"]
ResponseBody = dict[str, object]
"""What the caller is told of one child."""


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


def child_body(
    run: Run,
    *,
    key: str,
    note: str | None,
    warnings: tuple[str, ...],
    model_applied: bool | None,
    attachments: Mapping[str, object] | None,
) -> ResponseBody:
    """What is told of a child that exists; `key` is its session key, `attachments` the receipt of
    what was attached."""
    return {
        "runId": str(run.run_id),
        "childSessionKey": key,
        "sessionId": str(run.session_id),
        "label": run.label,
        "mode": run.options.mode,
        "note": note,
        "modelApplied": model_applied,
        "attachments": attachments,
        "warnings": list(warnings),
    }


def accepted_response(children: Sequence[ResponseBody], batch_id: UUID | None) -> StoredAnswer:
    """The answer to a spawn whose children exist; with the fields of the one at the top when there
    is one. `batch_id` is that of a request for several."""
    body: dict[str, object] = {"status": "accepted"}
    if batch_id is not None:
        body["batchId"] = str(batch_id)
    body["runs"] = list(children)
    return StoredAnswer("accepted", body | (children[0] if len(children) == 1 else {}))


def body_of_run(run: Run, attachments: Mapping[str, object] | None) -> ResponseBody:
    """What is told of a child, from its run."""
    assert run.plan is not None
    assert run.child_session_key is not None
    return child_body(
        run,
        key=run.child_session_key,
        note=accepted_note(run.options, run.requester, fork_note(run.fork)),
        warnings=run.warnings,
        model_applied=run.plan.model_applied,
        attachments=attachments,
    )


def continued_response(
    last: Run, run_id: UUID, warnings: tuple[str, ...], model_applied: bool | None
) -> StoredAnswer:
    """The answer to a message that a session goes on with; `last` is the run before the new one."""
    body: dict[str, object] = {
        "status": "accepted",
        "runId": str(run_id),
        "continues": str(last.run_id),
        "childSessionKey": last.child_session_key,
        "sessionId": str(last.session_id),
        "modelApplied": model_applied,
        "warnings": list(warnings),
    }
    return StoredAnswer("continued", body)


def queued_response(last: Run, run_id: UUID, place: int) -> StoredAnswer:
    """The answer to a message that waits for the `last` run, at this place from 1 on."""
    body: dict[str, object] = {
        "status": "queued",
        "runId": str(run_id),
        "continues": str(last.run_id),
        "childSessionKey": last.child_session_key,
        "sessionId": str(last.session_id),
        "place": place,
    }
    return StoredAnswer("queued", body)


def steered_response(last: Run, run_id: UUID, name: str) -> StoredAnswer:
    """The answer to a message for which the `last` run is ended; `name` is what it is called."""
    body: dict[str, object] = {
        "status": "accepted",
        "runId": str(run_id),
        "replaces": str(last.run_id),
        "childSessionKey": last.child_session_key,
        "sessionId": str(last.session_id),
        "mode": "restart",
        "label": last.label,
        "text": f"steered {name}.",
    }
    return StoredAnswer("steered", body)


def finished_response(last: Run, name: str) -> StoredAnswer:
    """The answer to a steer of a session whose run is over: nothing was to be replaced."""
    body: dict[str, object] = {
        "status": "done",
        "runId": str(last.run_id),
        "childSessionKey": last.child_session_key,
        "sessionId": str(last.session_id),
        "label": last.label,
        "text": f"{name} is already finished.",
    }
    return StoredAnswer("finished", body)


def redriven_response(run: Run, webhooks: Sequence[str]) -> StoredAnswer:
    """The answer to whoever has what was parked sent again."""
    return StoredAnswer("redriven", {"runId": str(run.run_id), "webhooks": list(webhooks)})


def yielded_response(run: Run, message: str) -> StoredAnswer:
    """The answer to a run that yields."""
    body: dict[str, object] = {
        "status": "yielded",
        "message": message,
        "runId": str(run.run_id),
        "sessionKey": run.child_session_key,
    }
    return StoredAnswer("yielded", body)


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
