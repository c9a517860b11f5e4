"""The options that many commands share, and what they open."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.values.moments import MOMENT_FORMS
from infrastructure.contract.operations import ServeOptions
from infrastructure.inbound.command_line.display.output import Output

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient


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
        help="Data directory of the server: its token and address are read there. "
        "[env: SPAWNLOG_DATA_DIR]",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Output,
    typer.Option("--output", "-o", help="A table, one JSON or YAML document, or JSON lines."),
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many at most.")]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Full id, unique beginning of one (4 or more), label, LABEL@last (its newest run), "
        "'#2' (second of `run list`), last, or child key.",
        show_default=False,
    ),
]
RunOption = Annotated[
    str | None,
    typer.Option("--run", metavar="NAME", help="Only of this run.", show_default=False),
]
TreeOption = Annotated[
    str | None,
    typer.Option(
        "--tree", metavar="KEY", help="Only the tree of this root session.", show_default=False
    ),
]
AfterPosition = Annotated[
    int | None,
    typer.Option("--after", min=0, metavar="POSITION", help="Only after this position."),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help=f"As it was then: {MOMENT_FORMS}.",
        show_default=False,
    ),
]
SessionName = Annotated[
    str, typer.Argument(metavar="SESSION", help="Session key or session id.", show_default=False)
]
RequesterOption = Annotated[
    str,
    typer.Option(
        "--requester",
        metavar="KEY",
        envvar="SPAWNLOG_SESSION_KEY",
        help="Key of the session that asks; a child has its own in the variable.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="SPAWNLOG_CONFIG",
        help="Configuration file, JSON5.",
        show_default=False,
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help="PostgreSQL server to use instead of the embedded one. [env: SPAWNLOG_DATABASE_URL]",
        show_default=False,
    ),
]
HomeDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        help="Where the server keeps its data. [env: SPAWNLOG_DATA_DIR]",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class ApiPlace:
    """Where the server is that a command asks."""

    url: Url = None
    data_dir: DataDir = None

    def client(self) -> "CommandClient":
        """A client of the server that these flags and the environment name."""
        # Here and not above: `--help` needs no HTTP library.
        from infrastructure.inbound.command_line.client.client import CommandClient
        from spawnlog.core.location import locate_server

        return CommandClient(locate_server(self.url, self.data_dir, os.environ))


@dataclass(frozen=True, slots=True)
class ApiOptions(ApiPlace):
    """Where the server is, and how its answer is printed."""

    output: OutputOption = Output.TABLE


@dataclass(frozen=True, slots=True)
class HomeOptions:
    """Which configuration, database and data directory are meant, without a server."""

    config: ConfigFile = None
    database_url: DatabaseUrl = field(default=None, repr=False)
    data_dir: HomeDir = None

    def serve_options(self) -> ServeOptions:
        """The same, as a server takes it."""
        return ServeOptions(
            config=self.config, database_url=self.database_url, data_dir=self.data_dir
        )
