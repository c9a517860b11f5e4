"""`spawnlog config check`."""

from pathlib import Path
from typing import Annotated

import typer

from infrastructure.inbound.command_line.failures import CommandFailed
from infrastructure.inbound.command_line.options import As, Output
from infrastructure.inbound.command_line.plain_text import block, one_line
from infrastructure.inbound.command_line.rendering import print_object


def check_configuration(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            envvar="SPAWNLOG_CONFIG",
            help="Configuration file, JSON5.",
            show_default=False,
        ),
    ],
    output: As = Output.TABLE,
) -> None:
    """Check a configuration file: its problems, its agents, and the values kept as secrets."""
    from infrastructure.composition import check_configuration as check

    report = check(file)
    lists = {
        "problems": list(report.problems),
        "agents": list(report.agents),
        "secretPointers": list(report.secret_pointers),
    }
    if not print_object(lists, output) and not report.problems:
        print(f"{one_line(file)} is right")
        print(f"agents: {one_line(', '.join(report.agents), 2000) or 'none'}")
        for pointer in report.secret_pointers:
            print(f"kept as a secret: {one_line(pointer)}")
    if report.problems:
        lines = [f"{file} cannot be used:", *report.problems]
        raise CommandFailed("\n  ".join(block(line) for line in lines))
