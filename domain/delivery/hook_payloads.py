"""Requests to hooks about a child, in the vocabulary of their receivers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from domain.configuration.hooks import AnyHook
from domain.context.thread_binding import Origin
from domain.run.facts import HookName, RunOutcome, hook_key, step_key
from domain.run.state import Run
from domain.values import rules
from domain.values.refusals import Refusal
from domain.values.text import replace_unstorable, single_line

ROLLBACK = "rollbackSubagentSpawn"
TOKEN_CHARACTERS_MAX = 4096
ERROR_CHARACTERS_MAX = 1000
_NEVER_STARTED = "Session failed to start"
_ENDED: Mapping[RunOutcome, tuple[str, str | None]] = {
    "success": ("subagent-complete", "ok"),
    "timeout": ("subagent-complete", "timeout"),
    "error": ("subagent-error", "error"),
    "stopped": ("subagent-killed", "killed"),
    "unknown": ("subagent-complete", None),
}
_ARCHIVED = ("session-delete", "deleted")


@dataclass(frozen=True, slots=True)
class HookCall:
    """A request to a hook.

    Attributes:
        hook: Configured hook that receives the request.
        name: Hook name in the body.
        key: Idempotency key; the same for each retry.
        event: Facts of the call.
        ctx: Ids of run, child and requester.
        needs_body: False if only the status of the answer counts.
    """

    hook: AnyHook
    name: str
    key: str
    event: Mapping[str, object]
    ctx: Mapping[str, object]
    needs_body: bool = True

    @property
    def body(self) -> dict[str, object]:
        """Return the complete request body."""
        return {"hook": self.name, "event": dict(self.event), "ctx": dict(self.ctx)}


def spawning_call(run: Run, origin: Origin) -> HookCall:
    """Build the call that asks for a thread for the child.

    Args:
        run: The run being prepared.
        origin: Where the requester is.
    """
    event = {**_spawn(run, origin), "threadRequested": True}
    return _call(run, "subagentSpawning", step_key(run.run_id, "thread_binding"), event)


def spawn_failed_call(run: Run, origin: Origin) -> HookCall:
    """Build the notification that a child for which a thread was requested will not start.

    Args:
        run: The run that failed.
        origin: Where the child's thread is.
    """
    event = _drop_unknown(
        {
            **_target(run),
            "reason": "spawn-failed",
            "sendFarewell": True,
            "accountId": origin.get("accountId"),
            "outcome": "error",
            "error": _NEVER_STARTED,
        }
    )
    key = f"{step_key(run.run_id, 'thread_binding')}:undo"
    return _call(run, "subagentEnded", key, event, needs_body=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """Conversations of a requester and its child: session ids, and transcript files if they
    exist.
    """

    parent_session_id: str | None = None
    parent_session_file: str | None = None
    child_session_file: str | None = None
    ttl_seconds: int = 0


def preparation_call(run: Run, conversations: Conversations) -> HookCall:
    """Build the call that asks the context engine to prepare the child."""
    key = step_key(run.run_id, "context_engine")
    event = _preparation(run, conversations)
    return _call(run, "prepareSubagentSpawn", key, event)


def rollback_call(run: Run, conversations: Conversations, token: str | None) -> HookCall:
    """Build the call that asks the context engine to undo its preparation.

    Args:
        run: The run that failed.
        conversations: Conversations of requester and child.
        token: Token that the engine returned from the preparation, if any.
    """
    key = f"{step_key(run.run_id, 'context_engine')}:undo"
    event = _drop_unknown({**_preparation(run, conversations), "preparation": token})
    return _call(run, "prepareSubagentSpawn", key, event, name=ROLLBACK, needs_body=False)


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """Answer of a context engine.

    `can_undo` is True if the engine wants a rollback call for a failed spawn; `token` is then
    passed back to it.
    """

    can_undo: bool
    token: str | None = None


def read_engine_answer(answer: Mapping[str, object] | None) -> EngineAnswer | Refusal:
    """Parse the answer of a context engine. Return the refusal if it refuses or is invalid."""
    answer = answer or {}
    if answer.get("status") == "error":
        error = answer.get("error")
        text = (
            single_line(error, characters_max=ERROR_CHARACTERS_MAX)
            if isinstance(error, str)
            else ""
        )
        return engine_failure(text or "it gave no error")
    rollback = answer.get("rollback")
    if isinstance(rollback, str) and len(rollback) > TOKEN_CHARACTERS_MAX:
        return engine_failure(f"its rollback is longer than {TOKEN_CHARACTERS_MAX} characters")
    if isinstance(rollback, str) and replace_unstorable(rollback) != rollback:
        return engine_failure("its rollback contains characters that cannot be stored")
    if isinstance(rollback, str) and rollback:
        return EngineAnswer(can_undo=True, token=rollback)
    return EngineAnswer(can_undo=rollback is True)


def engine_failure(message: str) -> Refusal:
    """Return the refusal for a context engine that did not prepare the child."""
    text = f"Context engine subagent preparation failed: {message}"
    return rules.CONTEXT_ENGINE.refusal(text)


def delivery_target_call(run: Run, requester_origin: Origin) -> HookCall:
    """Build the call that asks where to deliver the result of a run."""
    event = _drop_unknown(
        {
            "childSessionKey": run.child_session_key,
            "requesterSessionKey": run.requester.session_key,
            "requesterOrigin": dict(requester_origin) or None,
            "childRunId": str(run.run_id),
            "spawnMode": run.options.mode,
            "expectsCompletionMessage": run.expects_completion,
        }
    )
    return _call(run, "subagentDeliveryTarget", f"{run.run_id}:subagentDeliveryTarget", event)


def notification_call(run: Run, hook: HookName, *, origin: Origin, error: str | None) -> HookCall:
    """Build the notification of the start or the end of a run.

    Args:
        run: The run.
        hook: Hook to notify.
        origin: Origin of the requester for a start, of the child for an end.
        error: Text of the error, if any.
    """
    match hook:
        case "subagentSpawned":
            event = _spawned_payload(run, origin)
        case "subagentEnded":
            event = _ended_payload(run, origin, error)
        case "onSubagentEnded":
            event = _engine_payload(run)
        case _:
            assert_never(hook)
    return _call(run, hook, hook_key(run.run_id, hook), event, needs_body=False)


def _spawned_payload(run: Run, origin: Origin) -> dict[str, Any]:
    is_threaded = run.step("thread_binding") is not None
    spawn = _spawn(run, origin)
    return {"runId": str(run.run_id), **spawn, "threadRequested": is_threaded}


def _engine_payload(run: Run) -> dict[str, Any]:
    """Return the end event for a context engine.

    The reason is `completed`, `released` for a stopped child, or `deleted` for an archived
    persistent session.
    """
    reason = "completed"
    if run.outcome == "stopped":
        reason = "released"
    elif run.options.mode == "session":
        reason = "deleted"
    return _drop_unknown(
        {
            "childSessionKey": run.child_session_key,
            "reason": reason,
            "workspaceDir": run.plan.workspace_dir if run.plan is not None else None,
        }
    )


def _ended_payload(run: Run, origin: Origin, error: str | None) -> dict[str, Any]:
    outcome = run.outcome or "unknown"
    lives_on = run.options.mode == "session" and outcome != "stopped"
    reason, label = _ARCHIVED if lives_on else _ENDED[outcome]
    ended_at = run.archived_at if lives_on else run.ended_at
    return _drop_unknown(
        {
            **_target(run),
            "reason": reason,
            "sendFarewell": True,
            "accountId": origin.get("accountId"),
            "endedAt": int(ended_at.timestamp() * 1000) if ended_at else None,
            "outcome": label,
            "error": error,
        }
    )


def _target(run: Run) -> dict[str, object]:
    return {
        "targetSessionKey": run.child_session_key,
        "targetKind": "subagent",
        "runId": str(run.run_id),
    }


def _spawn(run: Run, origin: Origin) -> dict[str, object]:
    return _drop_unknown(
        {
            "childSessionKey": run.child_session_key,
            "agentId": run.agent_id,
            "label": run.label,
            "mode": run.options.mode,
            "requester": dict(origin),
        }
    )


def _preparation(run: Run, conversations: Conversations) -> dict[str, object]:
    seconds = conversations.ttl_seconds
    return _drop_unknown(
        {
            "parentSessionKey": run.requester.session_key,
            "childSessionKey": run.child_session_key,
            "agentId": run.agent_id,
            "contextMode": run.context_mode,
            "parentSessionId": conversations.parent_session_id,
            "parentSessionFile": conversations.parent_session_file,
            "childSessionId": str(run.session_id),
            "childSessionFile": conversations.child_session_file,
            "ttlMs": seconds * 1000 if seconds > 0 else None,
        }
    )


def _call(
    run: Run,
    hook: AnyHook,
    key: str,
    event: Mapping[str, object],
    *,
    name: str | None = None,
    needs_body: bool = True,
) -> HookCall:
    ctx = _drop_unknown(
        {
            "runId": str(run.run_id),
            "childSessionKey": run.child_session_key,
            "requesterSessionKey": run.requester.session_key,
        }
    )
    return HookCall(hook, name or hook, key, event, ctx, needs_body)


def _drop_unknown(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}
