"""The short facts of an event, for one line: what a person looks for first.

Events come from a server that may be newer than this program: what is missing is left out, and a
type that is not known here shows its plain values.
"""

from collections.abc import Callable, Mapping
from typing import Any

from infrastructure.inbound.command_line.plain_text import one_line
from infrastructure.inbound.command_line.shared_event_facts import inherited, shared
from infrastructure.inbound.command_line.times import duration

Payload = Mapping[str, Any]

FACTS_CHARACTERS_MAX = 400


def facts(event: Mapping[str, Any]) -> str:
    """One line about an event as `/v1/events` gives it."""
    payload = event.get("payload")
    if not isinstance(payload, Mapping):
        return ""
    try:
        text = _FACTS.get(str(event.get("type")), _plain)(payload)
    except (AttributeError, LookupError, TypeError, ValueError):
        text = _plain(payload)
    texts = event.get("texts")
    error = texts.get("error") if isinstance(texts, Mapping) else None
    if error:
        text += f": {error}"
    return one_line(text, FACTS_CHARACTERS_MAX)


def _joined(*parts: object) -> str:
    return ", ".join(str(part) for part in parts if part not in (None, "", ()))


def _named(name: str, value: object) -> str:
    return "" if value in (None, "") else f"{name} {value}"


def _requested(payload: Payload) -> str:
    requester = payload.get("requester") or {}
    return _joined(
        _named("agent", payload.get("requestedAgentId")),
        _named("label", payload.get("label")),
        _named("for", requester.get("sessionKey")),
        _files((payload.get("attachments") or {}).get("count")),
    )


def _scripts(payload: Payload) -> str:
    receipts = payload.get("receipts") or []
    if not receipts:
        return "no context script"
    return _joined(
        *(
            " ".join(
                part
                for part in (
                    f"{receipt.get('id')} {receipt.get('outcome')}",
                    _named("HTTP", receipt.get("statusCode")),
                    _bytes(receipt.get("injected")),
                    f"in {duration(receipt.get('durationMs'))}",
                    _named("proposes", receipt.get("candidate")),
                )
                if part
            )
            for receipt in receipts
        )
    )


def _overridden(payload: Payload) -> str:
    return f"{payload.get('fromAgentId')} → {payload.get('toAgentId')}"


def _created(payload: Payload) -> str:
    plan = payload.get("plan") or {}
    timeout = plan.get("runTimeoutSeconds")
    return _joined(
        _named("agent", payload.get("agentId")),
        _named("depth", payload.get("depth")),
        payload.get("role"),
        _named("model", _model(plan)),
        f"timeout {timeout}s" if timeout else "",
        "brings its result to its thread" if payload.get("directDelivery") else "",
    )


def _message(payload: Payload) -> str:
    requester = payload.get("requester") or {}
    return _joined(
        _named("continues run", payload.get("continues")),
        _named("agent", payload.get("agentId")),
        _named("label", payload.get("label")),
        _named("message", _bytes(payload.get("message"))),
        _named("by", payload.get("by")),
        _named("for", requester.get("sessionKey")),
    )


def _model(plan: Payload) -> str:
    return "/".join(filter(None, (plan.get("modelProvider"), plan.get("model"))))


def _configured(payload: Payload) -> str:
    return _joined(
        _named("revision", payload.get("revision")), _named("from", payload.get("source"))
    )


def _claimed(payload: Payload) -> str:
    """The count was taken before this run. A run taken over from a lost holder counts nobody."""
    if not payload.get("laneWidth"):
        return _joined(_named("attempt", payload.get("attempt")), "taken over")
    running, width = int(payload["laneRunning"]) + 1, int(payload["laneWidth"])
    return _joined(_named("attempt", payload.get("attempt")), f"lane {running}/{width}")


def _started(payload: Payload) -> str:
    return _joined(
        _named("runtime", payload.get("runtime")),
        _named("system prompt", _bytes(payload.get("systemPrompt"))),
        _named("message", _bytes(payload.get("message"))),
    )


def _ended(payload: Payload) -> str:
    usage = payload.get("usage") or {}
    tokens = usage.get("totalTokens")
    return _joined(
        payload.get("outcome"),
        payload.get("reason") if payload.get("reason") != payload.get("outcome") else "",
        _named("exit", payload.get("exitCode")),
        _named("signal", payload.get("signal")),
        duration(payload.get("runtimeMs")),
        f"{tokens} tokens" if tokens else "",
        _named("stopped by", payload.get("stoppedBy")),
        _named("waits for descendants:", payload.get("pendingDescendants") or None),
    )


def _announced(payload: Payload) -> str:
    return _joined(payload.get("disposition"), payload.get("status"), payload.get("reason"))


def _refused(payload: Payload) -> str:
    inputs = payload.get("inputs") or {}
    compared = [f"{name} {value}" for name, value in inputs.items() if value is not None]
    return _joined(
        _named("rule", payload.get("rule")), _named("at", payload.get("step")), *compared
    )


def _step_begun(payload: Payload) -> str:
    return _joined(payload.get("step"), _named("in", payload.get("root")), payload.get("relative"))


def _step_taken(payload: Payload) -> str:
    return _joined(
        f"{payload.get('step')} {payload.get('outcome')}",
        _files(payload.get("fileCount")),
        _size(payload.get("totalBytes")),
    )


def _failed(payload: Payload) -> str:
    again = duration(1000 * int(payload["retryAfterSeconds"]))
    what = payload.get("step") or payload.get("hook")
    return _joined(what, f"attempt {payload.get('attempt')}", f"again in {again}")


def _observed(payload: Payload) -> str:
    return _joined(
        payload.get("sessionKey"), _named("depth", payload.get("depth")), payload.get("role")
    )


def _admitted(payload: Payload) -> str:
    """The count was taken before this child."""
    active = int(payload["activeChildren"]) + 1
    return _joined(f"run {payload.get('runId')}", f"children {active}/{payload['maxChildren']}")


def _child(payload: Payload) -> str:
    return f"run {payload.get('runId')}"


def _plain(payload: Payload) -> str:
    values = ((name, value) for name, value in payload.items() if not _is_compound(value))
    return _joined(*(f"{name} {value}" for name, value in values if value not in (None, "")))


def _is_compound(value: object) -> bool:
    return isinstance(value, Mapping | list)


def _bytes(reference: object) -> str:
    """The size of a text that an event refers to."""
    return _size(reference.get("bytes")) if isinstance(reference, Mapping) else ""


def _size(size: object) -> str:
    return f"{size} B" if isinstance(size, int) else ""


def _files(count: object) -> str:
    return f"{count} file(s)" if isinstance(count, int) else ""


_FACTS: Mapping[str, Callable[[Payload], str]] = {
    "SpawnRequested": _requested,
    "ScriptsResolved": _scripts,
    "AgentOverridden": _overridden,
    "PreparationStarted": lambda payload: str(payload["childSessionKey"]),
    "StepBegun": _step_begun,
    "StepTaken": _step_taken,
    "StepUndone": lambda payload: f"{payload['step']} {payload['how']}",
    "StepUndoFailed": _failed,
    "HookTold": lambda payload: f"{payload['hook']}, attempt {payload['attempt']}",
    "HookFailed": _failed,
    "HookParked": lambda payload: f"{payload['hook']}, {payload['attempts']} attempt(s)",
    "TranscriptProvided": lambda payload: f"{payload['entries']} entries",
    "SessionCreated": _created,
    "MessageReceived": _message,
    "ContinuationPlanned": _created,
    "RunContinued": lambda payload: f"by run {payload['runId']}",
    "ArchiveScheduled": lambda payload: str(payload["reason"]),
    "SessionContinued": lambda payload: _joined(_child(payload), payload.get("role")),
    "SessionClosed": lambda payload: str(payload["reason"]),
    "RunQueued": lambda payload: f"lane {payload['lane']}",
    "RunClaimed": _claimed,
    "RunStarted": _started,
    "RunEnded": _ended,
    "StopRequested": lambda payload: _named("by", payload.get("by")),
    "ConfigurationActivated": _configured,
    "RunAnnounced": _announced,
    "SpawnRefused": _refused,
    "SessionObserved": _observed,
    "ChildAdmitted": _admitted,
    "ChildReleased": _child,
    "ChildSettled": _child,
    "RunArchived": lambda payload: str(payload["reason"]),
    "RunWaits": lambda payload: f"for {', '.join(payload['runIds'])}",
    "DependencyMet": lambda payload: _joined(_child(payload), payload["outcome"]),
    "SharedContextChanged": shared,
    "SharedContextInherited": inherited,
}
