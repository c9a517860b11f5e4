"""`spawnlog config`: check, show and compare configurations."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infrastructure.inbound.command_line.client.described import is_typed
from infrastructure.inbound.command_line.client.global_options import OutputOption
from infrastructure.inbound.command_line.client.options import ApiOptions, ApiPlace, AsOfOption
from infrastructure.inbound.command_line.display.failures import CommandError, ResourceNotFoundError
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    print_document,
    print_json_line,
    print_note,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_block, printable_line
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient
    from infrastructure.server.operations import ConfigurationShown


VALUE_CHARACTERS_MAX = 200
File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        envvar="SPAWNLOG_CONFIG",
        show_envvar=False,
        help="Configuration file, JSON5. [env: SPAWNLOG_CONFIG]",
        show_default=False,
    ),
]


def check_configuration(file: File, output: OutputOption = Output.TABLE) -> None:
    """Check a configuration file.

    Prints its problems, its warnings, its agents, and the values that are kept as secrets. Exit
    status 2 if there are problems: no server starts with a file that `cannot be used`; one that
    `has mistakes` makes a server refuse some requests, such as those with a token whose file is
    missing.
    """
    from infrastructure.server.operations import check_configuration as check

    report = check(file)
    lists = {
        "problems": list(report.problems),
        "warnings": list(report.warnings),
        "agents": list(report.agents),
        "secretPointers": list(report.secret_pointers),
    }
    if not print_object(lists, output) and not report.problems:
        print(f"{printable_line(file)} is valid")
        print(f"agents: {printable_line(', '.join(report.agents), 2000) or 'none'}")
        for pointer in report.secret_pointers:
            print(f"kept as a secret: {printable_line(pointer)}")
        for warning in report.warnings:
            print_note(f"warning: {printable_line(warning, 1000)}")
    if report.problems:
        head = "has mistakes" if report.is_usable else "cannot be used"
        lines = [f"{file} {head}:", *report.problems]
        raise CommandError("\n  ".join(printable_block(line) for line in lines))


def show_configuration(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            envvar="SPAWNLOG_CONFIG",
            show_envvar=False,
            help="Configuration file, JSON5. Default: the built-in one. [env: SPAWNLOG_CONFIG]",
            show_default=False,
        ),
    ] = None,
    effective: Annotated[bool, typer.Option("--effective", help="Include every default.")] = False,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="ID",
            help="Show the values that spawns of this agent get by default, and where each is set.",
            show_default=False,
        ),
    ] = None,
    at: AsOfOption = None,
    *,
    api: ApiOptions,
) -> None:
    """Show a configuration without its secrets.

    A reference replaces each secret. Flags and variables of `spawnlog serve` are not included. With
    --at: the configuration that was active on the server at that moment.
    """
    # SPAWNLOG_CONFIG may be set for other commands: only a typed FILE conflicts with --at.
    if at is not None and is_typed(context, "file"):
        raise CommandError("--at reads the configuration of the server: leave FILE out")
    shown = _configuration_of(file, at, api)
    if file is None and at is None:
        print_note("the built-in configuration: name FILE, or use --at for that of the server")
    if at is None and file is not None and not is_typed(context, "file"):
        print_note(f"the configuration of {printable_line(file)}, named by SPAWNLOG_CONFIG")
    if agent is not None:
        _show_agent(shown, agent, api.output)
        return
    values = shown.effective if effective else shown.stored
    # A configuration has no table form.
    print_object(values, Output.JSON if api.output is Output.TABLE else api.output)


def _configuration_of(file: Path | None, at: str | None, api: ApiPlace) -> "ConfigurationShown":
    from infrastructure.server.operations import show_configuration as show
    from infrastructure.server.operations import show_stored_configuration as show_stored

    if at is None:
        return show(file)
    with api.client() as client:
        return show_stored(_content(client, _newest_revision(client, at)))


def _show_agent(shown: "ConfigurationShown", agent_id: str, output: Output) -> None:
    from domain.configuration.problems import nearest_word

    values = shown.agent(agent_id)
    if values is None:
        meant = nearest_word(agent_id, shown.agents)
        hint = f'; did you mean "{meant}"?' if meant else "."
        listed = printable_line(", ".join(shown.agents), 2000)
        raise ResourceNotFoundError(
            f'there is no agent "{printable_line(agent_id)}"{hint} Agents: {listed}'
        )
    rows: list[dict[str, Any]] = [
        {"key": value.key, "value": value.value, "from": value.source} for value in values
    ]
    if print_document(rows, output):
        return
    if output is Output.JSONL:
        for row in rows:
            print_json_line(row)
    else:
        columns = (
            TableColumn("KEY", value_of("key")),
            TableColumn("VALUE", lambda row: _describe_value(row["value"]), folds=True),
            TableColumn("FROM", value_of("from"), folds=True),
        )
        print_table(rows, columns)


def _describe_value(value: object) -> str:
    """Return a value for a person: the items of a list joined by commas, other values as JSON."""
    if isinstance(value, list):
        return ", ".join(_describe_value(item) for item in value) or "none"
    if isinstance(value, dict):
        return " ".join(f"{key}={_describe_value(member)}" for key, member in value.items())
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value)
    return printable_line(text, VALUE_CHARACTERS_MAX)


_CHANGE_COLUMNS = (
    TableColumn("WHERE", value_of("path"), folds=True),
    TableColumn("BEFORE", lambda change: _describe_side(change, "before"), folds=True),
    TableColumn("AFTER", lambda change: _describe_side(change, "after"), folds=True),
)
Revision = Annotated[
    int,
    typer.Argument(min=1, metavar="LEFT", help="Number of a revision.", show_default=False),
]


def compare_revisions(
    left: Revision,
    right: Annotated[
        int | None,
        typer.Argument(
            min=1,
            metavar="RIGHT",
            help="Number of another revision. Default: the active one.",
            show_default=False,
        ),
    ] = None,
    *,
    api: ApiOptions,
) -> None:
    """Show the differences between two configuration revisions.

    Exit status 1 if the two revisions differ. As JSON it is a patch (RFC 6902).
    """
    from application.queries.changes.json_patch import difference

    with api.client() as client:
        revision = right if right is not None else _newest_revision(client, None)
        before, after = _content(client, left), _content(client, revision)
    operations = difference(before, after)
    if api.output is Output.TABLE and operations:
        print_table(_changes(before, operations), _CHANGE_COLUMNS)
    elif api.output is Output.TABLE:
        print_note(f"revisions {left} and {revision} are identical")
    elif not print_document(operations, api.output):
        for operation in operations:
            print_json_line(operation)
    if operations:
        raise typer.Exit(1)


def _changes(value: Any, operations: list[JsonObject]) -> list[JsonObject]:
    """Return each operation with the value at its path just before it was applied."""
    from application.queries.changes.json_patch import apply_patch
    from domain.configuration.problems import parts_of

    changes: list[JsonObject] = []
    for operation in operations:
        change = {"path": operation["path"] or "/"}
        if operation["op"] != "add":
            before = value
            for part in parts_of(operation["path"]):
                before = before[int(part)] if isinstance(before, list) else before[part]
            change["before"] = before
        if "value" in operation:
            change["after"] = operation["value"]
        changes.append(change)
        value = apply_patch([operation], value)
    return changes


def _describe_side(change: Any, side: str) -> str:
    if side not in change:
        return "-"
    return printable_line(json.dumps(change[side], ensure_ascii=False), VALUE_CHARACTERS_MAX)


def _newest_revision(client: "CommandClient", at: str | None) -> int:
    items = client.items("/v1/config/revisions", {"at": at}, limit=1).items
    if not items:
        raise ResourceNotFoundError("no configuration was active at that moment: give a later one")
    return int(items[0]["revision"])


def _content(client: "CommandClient", revision: int) -> JsonObject:
    stored = client.get(f"/v1/config/revisions/{revision}").value
    content = stored.get("content")
    if not isinstance(content, dict):
        raise ResourceNotFoundError(f"the text of revision {revision} was erased")
    return content
