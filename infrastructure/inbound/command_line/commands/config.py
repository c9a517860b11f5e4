"""`spawnlog config check` and `spawnlog config show`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infrastructure.inbound.command_line.client.options import OutputOption
from infrastructure.inbound.command_line.display.failures import CommandFailed, NotFound
from infrastructure.inbound.command_line.display.output import (
    Output,
    print_json,
    print_json_line,
    print_note,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.display.plain_text import printable_block, printable_line
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of

if TYPE_CHECKING:
    from infrastructure.server.operations import ConfigurationShown


VALUE_CHARACTERS_MAX = 200
File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        envvar="SPAWNLOG_CONFIG",
        help="Configuration file, JSON5.",
        show_default=False,
    ),
]


def check_configuration(file: File, output: OutputOption = Output.TABLE) -> None:
    """Check a configuration file: its problems, its warnings, its agents, and the
    values kept as secrets."""
    from infrastructure.server.operations import check_configuration as check

    report = check(file)
    lists = {
        "problems": list(report.problems),
        "warnings": list(report.warnings),
        "agents": list(report.agents),
        "secretPointers": list(report.secret_pointers),
    }
    if not print_object(lists, output) and not report.problems:
        print(f"{printable_line(file)} is right")
        print(f"agents: {printable_line(', '.join(report.agents), 2000) or 'none'}")
        for pointer in report.secret_pointers:
            print(f"kept as a secret: {printable_line(pointer)}")
        for warning in report.warnings:
            print_note(f"warning: {printable_line(warning, 1000)}")
    if report.problems:
        lines = [f"{file} cannot be used:", *report.problems]
        raise CommandFailed("\n  ".join(printable_block(line) for line in lines))


def show_configuration(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            envvar="SPAWNLOG_CONFIG",
            help="Configuration file, JSON5. Without one: what is built in.",
            show_default=False,
        ),
    ] = None,
    effective: Annotated[
        bool, typer.Option("--effective", help="With every default written out.")
    ] = False,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="ID",
            help="What a spawn of this agent gets that says nothing itself, and which place of "
            "the file says so.",
            show_default=False,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what a configuration says, as JSON, with references in the place of secrets.

    It is what the file says; flags and variables of `spawnlog serve` are not counted.
    """
    from infrastructure.server.operations import show_configuration as show

    shown = show(file)
    if agent is not None:
        _show_agent(shown, agent, output)
        return
    values = shown.effective if effective else shown.stored
    if output is Output.JSONL:
        print_json_line(values)
    else:
        print_json(values)


def _show_agent(shown: "ConfigurationShown", agent_id: str, output: Output) -> None:
    from domain.configuration.problems import nearest_word

    values = shown.agent(agent_id)
    if values is None:
        meant = nearest_word(agent_id, shown.agents)
        hint = f'; did you mean "{meant}"?' if meant else "."
        listed = printable_line(", ".join(shown.agents), 2000)
        raise NotFound(f'there is no agent "{printable_line(agent_id)}"{hint} There are: {listed}')
    rows: list[dict[str, Any]] = [
        {"key": value.key, "value": value.value, "from": value.source} for value in values
    ]
    if output is Output.JSON:
        print_json(rows)
    elif output is Output.JSONL:
        for row in rows:
            print_json_line(row)
    else:
        columns = (
            TableColumn("KEY", value_of("key")),
            TableColumn("VALUE", lambda row: _describe_value(row["value"]), elastic=True),
            TableColumn("FROM", value_of("from"), elastic=True),
        )
        print_table(rows, columns)


def _describe_value(value: object) -> str:
    """A value as a person reads it: names beside each other, everything else as JSON."""
    if isinstance(value, list):
        return ", ".join(_describe_value(item) for item in value) or "none"
    if isinstance(value, dict):
        return " ".join(f"{key}={_describe_value(item)}" for key, item in value.items())
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value)
    return printable_line(text, VALUE_CHARACTERS_MAX)
