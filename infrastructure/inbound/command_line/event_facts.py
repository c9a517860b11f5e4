"""The short facts of an event, for one line: what a person looks for first.

Events come from a server that may be newer than this program: what is missing is left out, and a
type that is not known here shows its plain values.
"""

from collections.abc import Callable, Mapping
from typing import Any

from infrastructure.inbound.command_line.event_reasons import reasons
from infrastructure.inbound.command_line.event_words import (
    bytes_of,
    files_of,
    joined,
    named,
    size_of,
)
from infrastructure.inbound.command_line.plain_text import one_line
from infrastructure.inbound.command_line.shared_event_facts import inherited, shared
from infrastructure.inbound.command_line.times import duration
from infrastructure.inbound.command_line.waiting_event_facts import asked_with, depends_on

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
    return one_line(text + reasons(event.get("texts")), FACTS_CHARACTERS_MAX)


def _requested(payload: Payload) -> str:
    requester = payload.get("requester") or {}
    return joined(
        named("agent", payload.get("requestedAgentId")),
        named("label", payload.get("label")),
        named("for", requester.get("sessionKey")),
        files_of((payload.get("attachments") or {}).get("count")),
        asked_with(payload),
        depends_on(payload),
    )


def _scripts(payload: Payload) -> str:
    receipts = payload.get("receipts") or []
    if not receipts:
        return "no context script"
    return joined(
        *(
            " ".join(
                part
                for part in (
                    f"{receipt.get('id')} {receipt.get('outcome')}",
                    named("HTTP", receipt.get("statusCode")),
                    bytes_of(receipt.get("injected")),
                    f"in {duration(receipt.get('durationMs'))}",
                    named("proposes", receipt.get("candidate")),
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
    return joined(
        named("agent", payload.get("agentId")),
        named("depth", payload.get("depth")),
        payload.get("role"),
        named("model", _model(plan)),
        f"timeout {timeout}s" if timeout else "",
        "brings its result to its thread" if payload.get("directDelivery") else "",
    )


def _message(payload: Payload) -> str:
    requester = payload.get("requester") or {}
    return joined(
        named("continues run", payload.get("continues")),
        named("agent", payload.get("agentId")),
        named("label", payload.get("label")),
        named("message", bytes_of(payload.get("message"))),
        named("by", payload.get("by")),
        named("for", requester.get("sessionKey")),
    )


def _model(plan: Payload) -> str:
    return "/".join(filter(None, (plan.get("modelProvider"), plan.get("model"))))


def _configured(payload: Payload) -> str:
    return joined(named("revision", payload.get("revision")), named("from", payload.get("source")))


def _claimed(payload: Payload) -> str:
    """The count was taken before this run. A run taken over from a lost holder counts nobody."""
    if not payload.get("laneWidth"):
        return joined(named("attempt", payload.get("attempt")), "taken over")
    running, width = int(payload["laneRunning"]) + 1, int(payload["laneWidth"])
    return joined(named("attempt", payload.get("attempt")), f"lane {running}/{width}")


def _started(payload: Payload) -> str:
    return joined(
        named("runtime", payload.get("runtime")),
        named("system prompt", bytes_of(payload.get("systemPrompt"))),
        named("message", bytes_of(payload.get("message"))),
    )


def _ended(payload: Payload) -> str:
    usage = payload.get("usage") or {}
    tokens = usage.get("totalTokens")
    return joined(
        payload.get("outcome"),
        payload.get("reason") if payload.get("reason") != payload.get("outcome") else "",
        named("exit", payload.get("exitCode")),
        named("signal", payload.get("signal")),
        duration(payload.get("runtimeMs")),
        f"{tokens} tokens" if tokens else "",
        named("stopped by", payload.get("stoppedBy")),
        named("waits for descendants:", payload.get("pendingDescendants") or None),
    )


def _announced(payload: Payload) -> str:
    return joined(payload.get("disposition"), payload.get("status"), payload.get("reason"))


def _refused(payload: Payload) -> str:
    inputs = payload.get("inputs") or {}
    compared = [f"{name} {value}" for name, value in inputs.items() if value is not None]
    return joined(named("rule", payload.get("rule")), named("at", payload.get("step")), *compared)


def _step_begun(payload: Payload) -> str:
    return joined(payload.get("step"), named("in", payload.get("root")), payload.get("relative"))


def _step_taken(payload: Payload) -> str:
    return joined(
        f"{payload.get('step')} {payload.get('outcome')}",
        files_of(payload.get("fileCount")),
        size_of(payload.get("totalBytes")),
    )


def _failed(payload: Payload) -> str:
    again = duration(1000 * int(payload["retryAfterSeconds"]))
    what = payload.get("step") or payload.get("hook")
    return joined(what, f"attempt {payload.get('attempt')}", f"again in {again}")


def _observed(payload: Payload) -> str:
    return joined(
        payload.get("sessionKey"), named("depth", payload.get("depth")), payload.get("role")
    )


def _admitted(payload: Payload) -> str:
    """The count was taken before this child."""
    active = int(payload["activeChildren"]) + 1
    return joined(f"run {payload.get('runId')}", f"children {active}/{payload['maxChildren']}")


def _child(payload: Payload) -> str:
    return f"run {payload.get('runId')}"


def _plain(payload: Payload) -> str:
    values = ((name, value) for name, value in payload.items() if not _is_compound(value))
    return joined(*(f"{name} {value}" for name, value in values if value not in (None, "")))


def _is_compound(value: object) -> bool:
    return isinstance(value, Mapping | list)


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
    "SessionContinued": lambda payload: joined(_child(payload), payload.get("role")),
    "SessionClosed": lambda payload: str(payload["reason"]),
    "RunQueued": lambda payload: f"lane {payload['lane']}",
    "RunClaimed": _claimed,
    "RunStarted": _started,
    "RunEnded": _ended,
    "StopRequested": lambda payload: named("by", payload.get("by")),
    "ConfigurationActivated": _configured,
    "RunAnnounced": _announced,
    "SpawnRefused": _refused,
    "SessionObserved": _observed,
    "ChildAdmitted": _admitted,
    "ChildReleased": _child,
    "ChildSettled": _child,
    "RunArchived": lambda payload: str(payload["reason"]),
    "RunWaits": lambda payload: f"for {', '.join(payload['runIds'])}",
    "DependencyMet": lambda payload: joined(_child(payload), payload["outcome"]),
    "SharedContextChanged": shared,
    "SharedContextInherited": inherited,
}
