"""`spawnlog run explain`: how a spawn, or a message to a session, was decided."""

from infrastructure.inbound.command_line.client.find_run import find_run
from infrastructure.inbound.command_line.client.options import (
    AsOfOption,
    DataDir,
    Output,
    OutputOption,
    RunName,
    Url,
    open_client,
)
from infrastructure.inbound.command_line.display.output import (
    print_block,
    print_note,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of
from infrastructure.inbound.command_line.paths import path_of

_COLUMNS = (
    TableColumn("RULE", value_of("rule")),
    TableColumn("RESULT", lambda one: str(one.get("result")).replace("_", " "), coloured=True),
    TableColumn("WHAT", value_of("text"), elastic=True),
)


def explain_run(
    name: RunName,
    at: AsOfOption = None,
    output: OutputOption = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show how a spawn, or a message, was decided: each rule, and what it compared; for a refusal
    the rule that refused."""
    with open_client(url, data_dir) as client:
        found = find_run(client, name)
        told = client.get(path_of("runs", found.run_id, "explain"), {"at": at}).body
    if print_object(told, output):
        return
    stage, revision = printable_line(told.get("stage")), printable_line(told.get("configRevision"))
    print_note(f"run {found.run_id}, {stage}, under configuration revision {revision}")
    print_table(told.get("decisions") or [], _COLUMNS)
    refused = told.get("refused")
    if isinstance(refused, dict):
        rule, status = printable_line(refused.get("rule")), printable_line(refused.get("status"))
        print(f"\nrefused by rule {rule} ({status}):")
        print_block(str(refused.get("text") or ""))
