"""Options that may also be given before the command."""

from pathlib import Path
from typing import Annotated

import typer

from infrastructure.inbound.command_line.display.output_form import Output

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Address of the server. [env: SPAWNLOG_URL]",
        show_default=False,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        help="Data directory of the server, from which its address and token are read. "
        "[env: SPAWNLOG_DATA_DIR]",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Output,
    typer.Option("--output", "-o", help="Table, one JSON or YAML document, or JSON lines."),
]
