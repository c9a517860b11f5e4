"""One-line summaries of events: the facts that a person looks for first.

The server may be newer than this program. Missing members are left out, and an event of an unknown
type shows its plain values.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.times import format_duration


def failure_reasons(texts: object) -> str:
    """Return the failure reasons that follow the facts: one, or one per script. Empty if none."""
    if not isinstance(texts, Mapping):
        return ""
    error, errors = texts.get("error"), texts.get("errors")
    reasons = f": {error}" if error else ""
    if isinstance(errors, Mapping):
        reasons += "".join(f"; {name}: {why}" for name, why in errors.items() if why)
    return reasons


def join_facts(*parts: object) -> str:
    """Join the non-empty parts with commas."""
    return ", ".join(str(part) for part in parts if part not in (None, "", ()))


def format_named(name: str, value: object) -> str:
    """Return a name and its value, or nothing if the value is empty."""
    return "" if value in (None, "") else f"{name} {value}"


def format_text_bytes(reference: object) -> str:
    """Return the size of a text that an event refers to."""
    return format_size(reference.get("bytes")) if isinstance(reference, Mapping) else ""


def format_author_and_reason(payload: Mapping[str, Any]) -> str:
    """Return the actor of a request and its reason: the text, or its size if it is not readable."""
    reason = payload.get("reason")
    text = reason if isinstance(reason, str) else format_text_bytes(reason)
    return join_facts(format_named("by", payload.get("by")), format_named("reason", text))


def format_size(size: object) -> str:
    return f"{size} B" if isinstance(size, int) else ""


def format_file_count(count: object) -> str:
    return f"{count} file(s)" if isinstance(count, int) else ""


def format_shared(payload: Mapping[str, Any]) -> str:
    """Return the keys that were written, and their author."""
    run_id, by = payload.get("runId"), payload.get("by")
    author = f"by run {run_id}" if run_id else f"by {by}" if by else ""
    return ", ".join(filter(None, (_format_keys(payload["changes"]), author)))


def format_inherited(payload: Mapping[str, Any]) -> str:
    """Return the keys that a run starts with, and the session they come from."""
    return ", ".join(filter(None, (_format_keys(payload["keys"]), f"of {payload['fromSession']}")))


def _format_keys(keys: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(
        str(change["key"]) if change.get("value") else f"{change['key']} removed" for change in keys
    )


def format_batch_place(payload: Mapping[str, Any]) -> str:
    """Return the place of a run in its batch."""
    batch = payload.get("batch")
    if not isinstance(batch, Mapping):
        return ""
    return f"task {int(batch['index']) + 1}/{len(batch['runIds'])} of batch {batch['batchId']}"


def format_dependencies(payload: Mapping[str, Any]) -> str:
    """Return the runs that it waits for, by the names in its request."""
    names = [str(dependency["name"]) for dependency in payload.get("dependencies") or ()]
    return f"after {' and '.join(names)}" if names else ""


def format_respawn(payload: Mapping[str, Any]) -> str:
    """Return the run that it was made from, and the members that were changed."""
    respawn = payload.get("respawn")
    if not isinstance(respawn, Mapping):
        return ""
    replaced = " and ".join(map(str, respawn.get("replaced") or ()))
    return f"from run {respawn['runId']}" + (f" with another {replaced}" if replaced else "")


Payload = Mapping[str, Any]
FACTS_CHARACTERS_MAX = 400


def event_facts(event: Mapping[str, Any]) -> str:
    """Return one line about an event of `/v1/events`."""
    payload = event.get("payload")
    if not isinstance(payload, Mapping):
        return ""
    try:
        facts_of = _FACTS.get(str(event.get("type")), _format_plain)
        text = facts_of(_with_reason(payload, event.get("texts")))
    except (AttributeError, LookupError, TypeError, ValueError):
        text = _format_plain(payload)
    return printable_line(text + failure_reasons(event.get("texts")), FACTS_CHARACTERS_MAX)


def _with_reason(payload: Payload, texts: object) -> Payload:
    """Replace the reference to the reason by its text, if the answer has it."""
    reason = texts.get("reason") if isinstance(texts, Mapping) else None
    return {**payload, "reason": reason} if isinstance(reason, str) else payload


def _format_requested(payload: Payload) -> str:
    requester = payload.get("requester") or {}
    return join_facts(
        format_named("agent", payload.get("requestedAgentId")),
        format_named("label", payload.get("label")),
        format_named("for", requester.get("sessionKey")),
        format_file_count((payload.get("attachments") or {}).get("count")),
        format_batch_place(payload),
        format_dependencies(payload),
        format_respawn(payload),
    )


def _format_scripts(payload: Payload) -> str:
    receipts = payload.get("receipts") or []
    if not receipts:
        return "no context script"
    return join_facts(
        *(
            " ".join(
                part
                for part in (
                    f"{receipt.get('id')} {receipt.get('outcome')}",
                    format_named("HTTP", receipt.get("statusCode")),
                    format_text_bytes(receipt.get("injected")),
                    f"in {format_duration(receipt.get('durationMs'))}",
                    format_named("proposes", receipt.get("candidate")),
                    format_named("as for run", receipt.get("reusedFrom")),
                )
                if part
            )
            for receipt in receipts
        )
    )


def _format_overridden(payload: Payload) -> str:
    return f"{payload.get('fromAgentId')} → {payload.get('toAgentId')}"


def _format_created(payload: Payload) -> str:
    plan = payload.get("plan") or {}
    timeout = plan.get("runTimeoutSeconds")
    return join_facts(
        format_named("agent", payload.get("agentId")),
        format_named("depth", payload.get("depth")),
        payload.get("role"),
        format_named("model", _format_model(plan)),
        f"timeout {timeout}s" if timeout else "",
        "delivers its result to its thread" if payload.get("directDelivery") else "",
    )


def _format_message(payload: Payload) -> str:
    requester = payload.get("requester") or {}
    return join_facts(
        format_named("continues run", payload.get("continues")),
        format_named("agent", payload.get("agentId")),
        format_named("label", payload.get("label")),
        format_named("message", format_text_bytes(payload.get("message"))),
        format_named("by", payload.get("by")),
        format_named("for", requester.get("sessionKey")),
    )


def _format_model(plan: Payload) -> str:
    return "/".join(filter(None, (plan.get("modelProvider"), plan.get("model"))))


def _format_configured(payload: Payload) -> str:
    return join_facts(
        format_named("revision", payload.get("revision")),
        format_named("from", payload.get("source")),
    )


def _format_claimed(payload: Payload) -> str:
    """Format a claim. The recorded count excludes this run; a takeover has no count."""
    if not payload.get("laneWidth"):
        return join_facts(format_named("attempt", payload.get("attempt")), "taken over")
    running, width = int(payload["laneRunning"]) + 1, int(payload["laneWidth"])
    return join_facts(format_named("attempt", payload.get("attempt")), f"lane {running}/{width}")


def _format_started(payload: Payload) -> str:
    return join_facts(
        format_named("runtime", payload.get("runtime")),
        format_named("system prompt", format_text_bytes(payload.get("systemPrompt"))),
        format_named("message", format_text_bytes(payload.get("message"))),
    )


def _format_ended(payload: Payload) -> str:
    usage = payload.get("usage") or {}
    tokens = usage.get("totalTokens")
    return join_facts(
        payload.get("outcome"),
        payload.get("reason") if payload.get("reason") != payload.get("outcome") else "",
        format_named("exit", payload.get("exitCode")),
        format_named("signal", payload.get("signal")),
        format_duration(payload.get("runtimeMs")),
        f"{tokens} tokens" if tokens else "",
        format_named("stopped by", payload.get("stoppedBy")),
        format_named("waits for descendants:", payload.get("pendingDescendants") or None),
    )


def _format_announced(payload: Payload) -> str:
    return join_facts(payload.get("disposition"), payload.get("status"), payload.get("reason"))


def _format_refused(payload: Payload) -> str:
    inputs = payload.get("inputs") or {}
    compared = [f"{name} {value}" for name, value in inputs.items() if value is not None]
    return join_facts(
        format_named("rule", payload.get("rule")),
        format_named("at", payload.get("step")),
        *compared,
    )


def _format_step_start(payload: Payload) -> str:
    return join_facts(
        payload.get("step"), format_named("in", payload.get("root")), payload.get("relative")
    )


def _format_step_taken(payload: Payload) -> str:
    return join_facts(
        f"{payload.get('step')} {payload.get('outcome')}",
        format_file_count(payload.get("fileCount")),
        format_size(payload.get("totalBytes")),
    )


def _format_attempted(payload: Payload) -> str:
    pause = payload.get("retryAfterSeconds")
    has_failed = pause is not None or payload.get("error") is not None
    return join_facts(
        f"{payload['kind']} {payload['name']}",
        f"attempt {payload['attempt']}",
        format_named("HTTP", payload.get("statusCode")),
        payload.get("outcome") or ("failed" if has_failed else "done"),
        f"again in {format_duration(1000 * int(pause))}" if pause is not None else None,
    )


def _format_observed(payload: Payload) -> str:
    return join_facts(
        payload.get("sessionKey"), format_named("depth", payload.get("depth")), payload.get("role")
    )


def _format_admitted(payload: Payload) -> str:
    """Format an admission. The recorded count excludes this child."""
    active = int(payload["activeChildren"]) + 1
    return join_facts(f"run {payload.get('runId')}", f"children {active}/{payload['maxChildren']}")


def _format_child(payload: Payload) -> str:
    return f"run {payload.get('runId')}"


def _format_plain(payload: Payload) -> str:
    values = ((name, value) for name, value in payload.items() if not _is_compound(value))
    return join_facts(*(f"{name} {value}" for name, value in values if value not in (None, "")))


def _is_compound(value: object) -> bool:
    return isinstance(value, Mapping | list)


_FACTS: Mapping[str, Callable[[Payload], str]] = {
    "SpawnRequested": _format_requested,
    "ScriptsResolved": _format_scripts,
    "AgentOverridden": _format_overridden,
    "PreparationStarted": lambda payload: str(payload["childSessionKey"]),
    "StepBegun": _format_step_start,
    "StepTaken": _format_step_taken,
    "EffectAttempted": _format_attempted,
    "EffectParked": lambda payload: join_facts(
        f"{payload['kind']} {payload['name']}, {payload['attempts']} attempt(s)", payload["reason"]
    ),
    "EffectRedriven": lambda payload: join_facts(
        f"{payload['kind']} {payload['name']}",
        format_author_and_reason(payload),
    ),
    "TranscriptProvided": lambda payload: f"{payload['entries']} entries",
    "SessionCreated": _format_created,
    "MessageReceived": _format_message,
    "ContinuationPlanned": _format_created,
    "ChildrenReported": lambda payload: f"{len(payload['runIds'])} of its sub-agents",
    "ContinuationFailed": lambda payload: f"run {payload['runId']} was refused",
    "MessageQueued": lambda payload: join_facts(
        "steers" if payload["cause"] == "steer" else "waits",
        f"for run {payload['runId']}",
        format_named("message", format_text_bytes(payload.get("message"))),
        format_named("by", payload.get("by")),
    ),
    "MessagesDropped": lambda payload: f"{len(payload['runIds'])} messages",
    "PreambleChanged": lambda payload: join_facts(
        format_text_bytes(payload.get("preamble")) or "removed",
        format_named("by", payload.get("by")),
    ),
    "ToolRefused": lambda payload: join_facts(
        payload["tool"],
        format_named("about", payload.get("about")),
        format_named("by", payload.get("by")),
    ),
    "RunContinued": lambda payload: f"by run {payload['runId']}",
    "ArchiveScheduled": lambda payload: str(payload["reason"]),
    "SessionContinued": lambda payload: join_facts(_format_child(payload), payload.get("role")),
    "SessionClosed": lambda payload: str(payload["reason"]),
    "RunQueued": lambda payload: f"lane {payload['lane']}",
    "RunClaimed": _format_claimed,
    "RunStarted": _format_started,
    "RunEnded": _format_ended,
    "StopRequested": format_author_and_reason,
    "ConfigurationActivated": _format_configured,
    "RunAnnounced": _format_announced,
    "SpawnRefused": _format_refused,
    "SessionObserved": _format_observed,
    "ChildAdmitted": _format_admitted,
    "ChildReleased": _format_child,
    "ChildSettled": _format_child,
    "RunArchived": lambda payload: str(payload["reason"]),
    "RunWaits": lambda payload: f"for {', '.join(payload['runIds'])}",
    "DependencyMet": lambda payload: join_facts(_format_child(payload), payload["outcome"]),
    "SharedContextChanged": format_shared,
    "SharedContextInherited": format_inherited,
}
