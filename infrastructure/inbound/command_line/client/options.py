"""Options that many commands share."""

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
        help="Data directory of the server. [env: SPAWNLOG_DATA_DIR]",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class ApiPlace:
    """Options that locate the server."""

    url: Url = None
    data_dir: DataDir = None

    def client(self) -> "CommandClient":
        """Return a client of the server that these options and the environment name."""
        # Imported late: `--help` needs no HTTP library.
        from infrastructure.inbound.command_line.client.client import CommandClient

        return CommandClient(self.address())

    def address(self) -> "ServerAddress":
        """Return the address of that server."""
        from spawnlog.core.location import locate_server

        server = locate_server(self.url, self.data_dir, os.environ)
        return replace(server, settings=SETTINGS_OF_ADDRESS)


@dataclass(frozen=True, slots=True)
class ApiOptions(ApiPlace):
    """Options that locate the server, and the form of the output."""

    output: OutputOption = Output.TABLE


@dataclass(frozen=True, slots=True)
class HomeOptions:
    """Options of commands without a server: configuration, database and data directory."""

    config: ConfigFile = None
    database_url: DatabaseUrl = field(default=None, repr=False)
    data_dir: HomeDir = None

    def serve_options(self) -> ServeOptions:
        """Return the options as a server accepts them."""
        return ServeOptions(
            config=self.config, database_url=self.database_url, data_dir=self.data_dir
        )
