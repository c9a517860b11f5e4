"""`spawnlog session get`."""

from infrastructure.inbound.command_line.client.options import (
    AsOfOption,
    DataDir,
    Output,
    OutputOption,
    SessionName,
    Url,
    open_client,
)
from infrastructure.inbound.command_line.commands.runs import short_id
from infrastructure.inbound.command_line.display.output import (
    print_fields,
    print_note,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant
from infrastructure.inbound.command_line.paths import path_of

_RUNS_SHOWN_MAX = 20
_OWN_COLUMNS = (
    TableColumn("RUN", lambda run: short_id(run.get("runId"))),
    TableColumn("STAGE", value_of("stage")),
    TableColumn("CONTINUES", lambda run: short_id(run.get("continues"))),
)
_RUN_COLUMNS = (
    TableColumn("RUN", lambda run: short_id(run.get("runId"))),
    TableColumn("STAGE", value_of("stage")),
    TableColumn("AGENT", value_of("agentId")),
    TableColumn("LABEL", value_of("label"), elastic=True),
)


def get_session(
    session: SessionName,
    at: AsOfOption = None,
    output: OutputOption = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show a session: its depth and role, its own runs, and its children."""
    with open_client(url, data_dir) as client:
        found = client.get(path_of("sessions", session), {"at": at}).body
    if print_object(found, output):
        return
    active, most = found.get("activeChildren"), found.get("maxChildren")
    print_fields(
        {
            "session": found.get("sessionKey") or found.get("key") or session,
            "id": found.get("sessionId"),
            "agent": found.get("agentId"),
            "stage": found.get("stage"),
            "depth": found.get("depth"),
            "role": found.get("role"),
            "control": found.get("controlScope"),
            "spawned by": found.get("spawnedBy"),
            "children": None if active is None else f"{active} active, at most {most}",
            "pending": found.get("pendingDescendants"),
            "created": format_instant(found.get("createdAt")),
        }
    )
    _print_runs("own runs", found.get("ownRuns"), _OWN_COLUMNS, "`spawnlog run list`")
    _print_runs("spawned", found.get("runs"), _RUN_COLUMNS, "`spawnlog run list --requester`")


def _print_runs(heading: str, runs: object, columns: tuple[TableColumn, ...], further: str) -> None:
    if not isinstance(runs, list) or not runs:
        return
    print(f"\n{heading}:")
    shown = [run if isinstance(run, dict) else {"runId": run} for run in runs]
    print_table(shown[:_RUNS_SHOWN_MAX], columns)
    if len(runs) > _RUNS_SHOWN_MAX:
        print_note(f"there are more: see {further}")
