"""`spawnlog session get`."""

from infrastructure.inbound.command_line.options import (
    As,
    DataDir,
    Output,
    SessionName,
    Url,
    connected,
)
from infrastructure.inbound.command_line.paths import path_of
from infrastructure.inbound.command_line.rendering import print_fields, print_object
from infrastructure.inbound.command_line.times import clock

_RUNS_SHOWN_MAX = 20


def get_session(
    session: SessionName, output: As = Output.TABLE, url: Url = None, data_dir: DataDir = None
) -> None:
    """Show a session: its depth and role, and how many children it has of how many it may have."""
    with connected(url, data_dir) as client:
        found = client.get(path_of("sessions", session)).body
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
    runs = found.get("runs")
    if isinstance(runs, list):
        for run in runs[:_RUNS_SHOWN_MAX]:
            print_fields({"run": run.get("runId") if isinstance(run, dict) else run})
        if len(runs) > _RUNS_SHOWN_MAX:
            print_fields({"runs": f"{len(runs)} in all; see `spawnlog run list --requester`"})
