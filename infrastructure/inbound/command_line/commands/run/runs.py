"""`spawnlog run list` and `spawnlog run get`."""

from typing import TYPE_CHECKING

from infrastructure.inbound.command_line.client.arguments import attachments_summary
from infrastructure.inbound.command_line.client.find_run import find_run
from infrastructure.inbound.command_line.client.options import (
    ApiOptions,
    AsOfOption,
    RunName,
)
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    print_block,
    print_fields,
    print_object,
)
from infrastructure.inbound.command_line.display.tables import Item
from infrastructure.inbound.command_line.display.times import format_duration, format_instant
from spawnlog.core.request import path_of

if TYPE_CHECKING:
    pass


def get_run(name: RunName, at: AsOfOption = None, *, api: ApiOptions) -> None:
    """Show one run, as it is or as it was."""
    with api.client() as client:
        found = find_run(client, name)
        run = client.get(path_of("runs", found.run_id), {"at": at}).value
    if not print_object(run, api.output):
        print_run(run)


def print_run(run: JsonObject) -> None:
    """Everything about a run that a person may want, in the order of its life."""
    print_fields(
        {
            "run": run.get("runId"),
            "status": _status(run),
            "rule": run.get("rule"),
            "label": run.get("label"),
            "agent": _agent(run),
            "requester": run.get("requesterSessionKey"),
            "child": run.get("childSessionKey"),
            "session": run.get("sessionId"),
            "continues": run.get("continues"),
            "respawned from": run.get("respawnedFrom"),
            "depth": _depth(run),
            "model": "/".join(filter(None, (run.get("modelProvider"), run.get("model")))),
            "thinking": run.get("thinking"),
            "timeout": f"{run['runTimeoutSeconds']}s" if run.get("runTimeoutSeconds") else None,
            "mode": run.get("mode"),
            "cleanup": run.get("cleanup"),
            "workspace": run.get("workspaceDir"),
            "attached": attachments_summary(run.get("attachments")),
            "created": format_instant(run.get("createdAt")),
            "started": format_instant(run.get("startedAt")),
            "ended": format_instant(run.get("endedAt")),
            "announced": format_instant(run.get("announcedAt")),
            "announcement": _announcement(run),
            "archived": format_instant(run.get("archivedAt")),
            "took": format_duration(run.get("runtimeMs")),
            "tokens": _tokens(run),
            "cost": f"${run['estimatedCostUsd']}" if run.get("estimatedCostUsd") else None,
            "transcript": run.get("transcriptPath"),
            "configuration": run.get("configRevision"),
        }
    )
    for respawned in run.get("respawns") or ():
        print_fields({"respawned as": respawned})
    for warning in run.get("warnings") or ():
        print_fields({"warning": warning})
    for one in run.get("dependsOn") or ():
        print_fields({"depends on": _format_dependency(one)})
    for step in run.get("undoing") or ():
        print_fields({"to undo": _format_undo(step)})
    for heading, text in (
        ("task", run.get("task") or run.get("taskPreview")),
        ("result", run.get("resultText")),
        ("error", run.get("error")),
    ):
        if text:
            print(f"\n{heading}:")
            print_block(str(text))


def _format_undo(step: Item) -> str:
    where = " of ".join(str(step[key]) for key in ("relative", "root") if step.get(key))
    failures = f"failed {step['failures']} time(s)" if step.get("failures") else None
    again = f"next attempt {format_instant(step.get('nextAttemptAt'))}"
    description = ", ".join(filter(None, (str(step.get("step")), where, failures, again)))
    return f"{description}: {step['error']}" if step.get("error") else description


def _format_dependency(one: Item) -> str:
    name, run_id = one.get("name"), one.get("runId")
    named = f"run {run_id}" if name == run_id else f"{name} (run {run_id or 'unknown'})"
    any_end = "however it ends" if one.get("require") == "ended" else None
    return ", ".join(filter(None, (named, any_end, one.get("state"))))


def _status(run: Item) -> str:
    status, stage = str(run.get("status")), str(run.get("stage"))
    return status if status == stage else f"{status} ({stage})"


def _agent(run: Item) -> str:
    agent, requested = run.get("agentId"), run.get("requestedAgentId")
    return f"{agent}" if requested in (None, agent) else f"{agent} (asked for: {requested})"


def _announcement(run: Item) -> str | None:
    announcement = run.get("announcement")
    return str(announcement.get("state")) if isinstance(announcement, dict) else None


def _depth(run: Item) -> str:
    depth, role = run.get("depth"), run.get("role")
    return f"{depth} ({role})" if role else str(depth if depth is not None else "")


def _tokens(run: Item) -> str | None:
    usage = run.get("usage")
    if not isinstance(usage, dict):
        return None
    return (
        f"{usage.get('totalTokens')} ({usage.get('inputTokens')} in, "
        f"{usage.get('outputTokens')} out)"
    )
