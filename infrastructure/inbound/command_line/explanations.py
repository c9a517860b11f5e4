"""`spawnlog run explain`: how a spawn, or a message to a session, was decided."""

from infrastructure.inbound.command_line.finding import find_run
from infrastructure.inbound.command_line.options import (
    As,
    At,
    DataDir,
    Output,
    RunName,
    Url,
    connected,
)
from infrastructure.inbound.command_line.paths import path_of
from infrastructure.inbound.command_line.plain_text import one_line
from infrastructure.inbound.command_line.rendering import (
    note,
    print_block,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.tables import Column, field

_COLUMNS = (
    Column("RULE", field("rule")),
    Column("RESULT", lambda one: str(one.get("result")).replace("_", " "), coloured=True),
    Column("WHAT", field("text"), elastic=True),
)


def explain_run(
    name: RunName,
    at: At = None,
    output: As = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show how a spawn, or a message, was decided: each rule, and what it compared; for a refusal
    the rule that refused."""
    with connected(url, data_dir) as client:
        found = find_run(client, name)
        told = client.get(path_of("runs", found.run_id, "explain"), {"at": at}).body
    if print_object(told, output):
        return
    stage, revision = one_line(told.get("stage")), one_line(told.get("configRevision"))
    note(f"run {found.run_id}, {stage}, under configuration revision {revision}")
    print_table(told.get("decisions") or [], _COLUMNS)
    refused = told.get("refused")
    if isinstance(refused, dict):
        rule, status = one_line(refused.get("rule")), one_line(refused.get("status"))
        print(f"\nrefused by rule {rule} ({status}):")
        print_block(str(refused.get("text") or ""))
