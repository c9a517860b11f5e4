"""The options that many commands share, and what they open."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.contract.operations import ServeOptions
from infrastructure.inbound.command_line.client.described import option_of
from infrastructure.inbound.command_line.client.global_options import DataDir, OutputOption, Url
from infrastructure.inbound.command_line.display.output_form import Output

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient
    from spawnlog.core.location import ServerAddress

SETTINGS_OF_ADDRESS = "--url or SPAWNLOG_URL, --data-dir or SPAWNLOG_DATA_DIR"

RunName = Annotated[str, option_of("getRun", "runId")]
AsOfOption = Annotated[str | None, option_of("getRun", "at")]
SessionName = Annotated[str, option_of("getSession", "key")]
RequesterOption = Annotated[str, option_of("listAgents", "requester")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="SPAWNLOG_CONFIG",
        show_envvar=False,
        help="Configuration file, JSON5. [env: SPAWNLOG_CONFIG]",
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

        return CommandClient(self.address())

    def address(self) -> "ServerAddress":
        """Return where that server is."""
        from spawnlog.core.location import locate_server

        found = locate_server(self.url, self.data_dir, os.environ)
        return replace(found, settings=SETTINGS_OF_ADDRESS)


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
