"""What callers are told, made from the record alone, so that a repeat gives the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from application.ports.event_log import Answer
from domain.context_fork import fork_note
from domain.run.state import Run
from domain.run.steps import STEP_ORDER
from domain.spawn_notes import accepted_note

Status = Literal["forbidden", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRefusal:
    """A recorded refusal in the words of the caller. `child_session_key` is that of a child which
    something was made for before a step failed."""

    run_id: UUID
    rule: str
    status: Status
    text: str
    current: int | None = None
    limit: int | None = None
    child_session_key: str | None = None


def key_told(run: Run, step: str) -> str | None:
    """The session key that is told with a refusal: of a step that failed, save of attachments, for
    which nobody outside has heard of it."""
    return run.child_session_key if step in STEP_ORDER and step != "attachments" else None


def accepted(
    run: Run,
    *,
    key: str,
    note: str | None,
    warnings: tuple[str, ...],
    model_applied: bool | None,
    attachments: Mapping[str, object] | None,
) -> Answer:
    """The answer to a spawn whose child exists; `key` is the child's session key, `attachments` the
    receipt of what was attached."""
    one: dict[str, object] = {
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
    return Answer("accepted", {"status": "accepted", "runs": [one], **one})


def accepted_run(run: Run, attachments: Mapping[str, object] | None) -> Answer:
    """The same answer, from a run whose child exists."""
    assert run.plan is not None
    assert run.child_session_key is not None
    return accepted(
        run,
        key=run.child_session_key,
        note=accepted_note(run.options.mode, run.requester.session_key, fork_note(run.fork)),
        warnings=run.warnings,
        model_applied=run.plan.model_applied,
        attachments=attachments,
    )


def continued(
    last: Run, run_id: UUID, warnings: tuple[str, ...], model_applied: bool | None
) -> Answer:
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
    return Answer("continued", body)


def refusal_of(run: Run, text: str | None) -> SpawnRefusal:
    """The refusal of a refused run, in the words that are kept of it."""
    assert run.refusal is not None
    current, limit = run.refusal.inputs.get("current"), run.refusal.inputs.get("limit")
    return SpawnRefusal(
        run_id=run.run_id,
        rule=run.refusal.rule,
        status="forbidden" if run.refusal.status == "forbidden" else "error",
        text=text or "the text of this refusal was erased",
        current=current if isinstance(current, int) else None,
        limit=limit if isinstance(limit, int) else None,
        child_session_key=key_told(run, run.refusal.step),
    )


def refused(refusal: SpawnRefusal) -> Answer:
    """The answer to a refused spawn."""
    body: dict[str, object] = {
        "runId": str(refusal.run_id),
        "rule": refusal.rule,
        "text": refusal.text,
        "current": refusal.current,
        "limit": refusal.limit,
        "childSessionKey": refusal.child_session_key,
    }
    return Answer(refusal.status, body)
