"""`spawnlog session get`."""

from infrastructure.inbound.command_line.options import (
    As,
    At,
    DataDir,
    Output,
    SessionName,
    Url,
    connected,
)
from infrastructure.inbound.command_line.paths import path_of
from infrastructure.inbound.command_line.rendering import (
    note,
    print_fields,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.runs import short
from infrastructure.inbound.command_line.tables import Column, field
from infrastructure.inbound.command_line.times import clock

_RUNS_SHOWN_MAX = 20
_OWN_COLUMNS = (
    Column("RUN", lambda run: short(run.get("runId"))),
    Column("STAGE", field("stage")),
    Column("CONTINUES", lambda run: short(run.get("continues"))),
)
_RUN_COLUMNS = (
    Column("RUN", lambda run: short(run.get("runId"))),
    Column("STAGE", field("stage")),
    Column("AGENT", field("agentId")),
    Column("LABEL", field("label"), elastic=True),
)


def get_session(
    session: SessionName,
    at: At = None,
    output: As = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show a session: its depth and role, its own runs, and its children."""
    with connected(url, data_dir) as client:
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
            "created": clock(found.get("createdAt")),
        }
    )
    _print_runs("own runs", found.get("ownRuns"), _OWN_COLUMNS, "`spawnlog run list`")
    _print_runs("spawned", found.get("runs"), _RUN_COLUMNS, "`spawnlog run list --requester`")


def _print_runs(heading: str, runs: object, columns: tuple[Column, ...], further: str) -> None:
    if not isinstance(runs, list) or not runs:
        return
    print(f"\n{heading}:")
    shown = [run if isinstance(run, dict) else {"runId": run} for run in runs]
    print_table(shown[:_RUNS_SHOWN_MAX], columns)
    if len(runs) > _RUNS_SHOWN_MAX:
        note(f"there are more: see {further}")
