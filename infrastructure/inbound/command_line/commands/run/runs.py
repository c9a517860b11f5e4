"""`spawnlog run list` and `spawnlog run get`."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from domain.values.moments import MOMENT_FORMS
from infrastructure.inbound.command_line.client.find_run import find_run
from infrastructure.inbound.command_line.client.options import (
    ApiOptions,
    AsOfOption,
    LimitOption,
    RunName,
    TreeOption,
)
from infrastructure.inbound.command_line.commands.spawn_arguments import attachments_summary
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Output,
    print_block,
    print_fields,
    print_listing,
    print_object,
)
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_duration, format_instant
from spawnlog.core.request import path_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient

SHORT_ID_CHARACTERS = 8
ME = "me"
SESSION_VARIABLE = "SPAWNLOG_SESSION_KEY"
_PLACE = "place"
_CONTINUES = TableColumn("CONTINUES", lambda run: short_id(run.get("continues")))
_RESPAWNED = TableColumn("RESPAWNED FROM", lambda run: short_id(run.get("respawnedFrom")))
_COLUMNS = (
    TableColumn("RUN", lambda run: short_id(run.get("runId"))),
    TableColumn("STATUS", value_of("status"), coloured=True),
    TableColumn("AGENT", value_of("agentId")),
    TableColumn("LABEL", value_of("label"), elastic=True),
    TableColumn(
        "CREATED",
        lambda run: format_instant(run.get("createdAt"))[:19],
        narrow=lambda run: format_instant(run.get("createdAt"))[5:16],
    ),
    TableColumn(
        "TOOK", lambda run: format_duration(run.get("runtimeMs")), right=True, optional=True
    ),
    TableColumn("REQUESTER", value_of("requesterSessionKey"), elastic=True, optional=True),
    TableColumn(
        "TASK",
        lambda run: run.get("taskPreview") or run.get("task"),
        elastic=True,
        cells_min=20,
    ),
)
_RULE = TableColumn("RULE", value_of("rule"))
_STAGES = (
    "requested, scripts-resolved, overridden, session-created, queued, started, ended, announced, "
    "archived or refused"
)
_STATUSES = (
    "preparing, waiting, queued, running, done, failed, timeout, stopped, unknown or refused"
)


@dataclass(frozen=True, slots=True)
class RunFilterOptions:
    """Which runs are listed."""

    requester: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Only what this session asked for; me: that of SPAWNLOG_SESSION_KEY, else main.",
        ),
    ] = None
    tree: TreeOption = None
    agent: Annotated[str | None, typer.Option(metavar="ID", help="Only this agent.")] = None
    label: Annotated[str | None, typer.Option(help="Only runs with this label.")] = None
    stage: Annotated[str | None, typer.Option(help=f"Only this stage: {_STAGES}.")] = None
    status: Annotated[str | None, typer.Option(help=f"Only this status: {_STATUSES}.")] = None
    outcome: Annotated[
        str | None,
        typer.Option(help="Only this outcome: success, error, timeout, stopped or unknown."),
    ] = None
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help=f"Made then or later: {MOMENT_FORMS}.")
    ] = None
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Made before then.")] = None
    rule: Annotated[
        str | None, typer.Option(metavar="RULE", help="Only what this rule refused.")
    ] = None
    depth: Annotated[
        int | None,
        typer.Option(min=0, max=64, help="Only so deep; with --requester, --tree or --rule."),
    ] = None
    label_prefix: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Only labels that begin like this; with --requester, --tree or --rule.",
        ),
    ] = None
    respawned_from: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only what was made anew from this run.")
    ] = None

    def query(self, client: "CommandClient") -> dict[str, str | int | None]:
        """The same as parameters; a name of a run is looked up."""
        earlier = self.respawned_from
        return {
            "requester": session_named(self.requester),
            "tree": self.tree,
            "agentId": self.agent,
            "label": self.label,
            "stage": self.stage,
            "status": self.status,
            "outcome": self.outcome,
            "since": self.since,
            "until": self.until,
            "rule": self.rule,
            "depth": self.depth,
            "labelPrefix": self.label_prefix,
            "respawnedFrom": find_run(client, earlier).run_id if earlier is not None else None,
        }


WordsOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Only with each of these words in label or task."),
]


def list_runs(
    filters: RunFilterOptions,
    words: WordsOption = None,
    at: AsOfOption = None,
    limit: LimitOption = 50,
    *,
    api: ApiOptions,
) -> None:
    """Show the runs, the newest first; what is refused is a run too."""
    with api.client() as client:
        query = {**filters.query(client), "q": words, "at": at}
        listing = client.items("/v1/runs", query, limit=limit)
    # A place in a list of some runs, or of the past, would name another run of today's.
    has_places = api.output is Output.TABLE and not any(query.values())
    print_listing(listing, _columns_of(listing.items, has_places=has_places), api.output)


def session_named(requester: str | None) -> str | None:
    """The session that is meant; `me` is the one which a child finds in its environment."""
    return os.environ.get(SESSION_VARIABLE, "main") if requester == ME else requester


def _columns_of(runs: list[JsonObject], *, has_places: bool) -> tuple[TableColumn, ...]:
    """Those that a list of these runs needs; with `has_places` each is given its place."""
    columns: tuple[TableColumn, ...] = _COLUMNS
    if has_places:
        for place, run in enumerate(runs, 1):
            run[_PLACE] = f"#{place}"
        columns = (TableColumn("", value_of(_PLACE), right=True), *columns)
    if any(run.get("rule") for run in runs):
        columns = (*columns[:-2], _RULE, *columns[-2:])
    if any(run.get("continues") for run in runs):
        columns = (*columns[:-2], _CONTINUES, *columns[-2:])
    if any(run.get("respawnedFrom") for run in runs):
        columns = (*columns[:-2], _RESPAWNED, *columns[-2:])
    return columns


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


def short_id(run_id: object) -> str:
    """The beginning of a run id, enough to name the run."""
    return str(run_id or "")[:SHORT_ID_CHARACTERS]


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
