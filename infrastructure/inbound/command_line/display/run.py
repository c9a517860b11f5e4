"""Parts of a run in a terminal that the description of its fields does not cover."""

from infrastructure.inbound.command_line.display.failures import in_words_of_commands
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    print_block,
    print_fields,
)
from infrastructure.inbound.command_line.display.tables import Item
from infrastructure.inbound.command_line.display.times import format_instant

_STATES = {
    "removing": "being removed from",
    "removed": "removed from",
    "left_in_place": "left in place in",
}


def print_run_texts(run: JsonObject) -> None:
    """Print the lists and texts of a run, in the order of its life."""
    for respawned in run.get("respawns") or ():
        print_fields({"respawned as": respawned})
    for warning in run.get("warnings") or ():
        print_fields({"warning": warning})
    for dependency in run.get("dependsOn") or ():
        print_fields({"depends on": _format_dependency(dependency)})
    for step in run.get("undoing") or ():
        print_fields({"to undo": _format_undo(step)})
    # A run always has a task: it is null only if its text is not kept.
    if any(name in run and run[name] is None for name in ("task", "taskPreview")):
        print_fields({"texts": "erased, or not in this copy of the log"})
    error = run.get("error")
    if error and run.get("stage") == "refused":
        error = in_words_of_commands(str(error))
    for heading, text in (
        ("task", run.get("task") or run.get("taskPreview")),
        ("result", run.get("resultText")),
        ("error", error),
    ):
        if text:
            print(f"\n{heading}:")
            print_block(str(text))


def attachments_summary(receipt: object) -> str | None:
    """Return a sentence about the attachments, or None if there are none."""
    if not isinstance(receipt, dict):
        return None
    count, size = receipt.get("count"), receipt.get("totalBytes")
    where = f"{receipt.get('relDir')} of the workspace"
    state = _STATES.get(str(receipt.get("state")), "in")
    return f"{count} file(s), {size} bytes, {state} {where}"


def _format_undo(step: Item) -> str:
    where = " of ".join(str(step[key]) for key in ("relative", "root") if step.get(key))
    failures = f"failed {step['failures']} time(s)" if step.get("failures") else None
    again = f"next attempt {format_instant(step.get('nextAttemptAt'))}"
    description = ", ".join(filter(None, (str(step.get("step")), where, failures, again)))
    return f"{description}: {step['error']}" if step.get("error") else description


def _format_dependency(dependency: Item) -> str:
    name, run_id = dependency.get("name"), dependency.get("runId")
    named = f"run {run_id}" if name == run_id else f"{name} (run {run_id or 'unknown'})"
    any_end = "with any outcome" if dependency.get("require") == "ended" else None
    return ", ".join(filter(None, (named, any_end, dependency.get("state"))))


def run_status(run: Item) -> str:
    """Return the status, and the stage if it differs."""
    status, stage = str(run.get("status")), str(run.get("stage"))
    return status if status == stage else f"{status} ({stage})"


def run_agent(run: Item) -> str:
    """Return the agent, and the requested one if it differs."""
    agent, requested = run.get("agentId"), run.get("requestedAgentId")
    return f"{agent}" if requested in (None, agent) else f"{agent} (requested: {requested})"


def run_depth(run: Item) -> str:
    depth, role = run.get("depth"), run.get("role")
    return f"{depth} ({role})" if role else str(depth if depth is not None else "")


def run_model(run: Item) -> str:
    return "/".join(filter(None, (run.get("modelProvider"), run.get("model"))))


def run_cost(run: Item) -> str | None:
    """Return the estimated cost, and the models whose tokens it does not include."""
    cost = run.get("estimatedCostUsd")
    if not cost:
        return None
    models = (run.get("usage") or {}).get("models") or ()
    names = [str(model.get("model")) for model in models if model.get("costUsd") is None]
    if not names:
        return f"${cost}"
    verb = "has" if len(names) == 1 else "have"
    return f"${cost} ({len(names)} of {len(models)} models {verb} no price: {', '.join(names)})"


def used_tokens(usage: object) -> str | None:
    """Return the number of tokens used: in total, input and output."""
    if not isinstance(usage, dict):
        return None
    return (
        f"{usage.get('totalTokens')} ({usage.get('inputTokens')} in, "
        f"{usage.get('outputTokens')} out)"
    )
