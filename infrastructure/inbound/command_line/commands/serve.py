"""`spawnlog serve` and `spawnlog migrate`: start a server, and migrate its database."""

import gc
from dataclasses import replace
from typing import Annotated

import typer

from infrastructure.inbound.command_line.client.options import HomeOptions


def serve(
    home: HomeOptions,
    host: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Address to listen on. [env: SPAWNLOG_HOST]"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65_535,
            help="Port to listen on. 0: any free port. [env: SPAWNLOG_PORT]",
        ),
    ] = None,
    no_auth: Annotated[
        bool,
        typer.Option(
            "--no-auth",
            help="Accept requests without a token; on a loopback address only."
            " [env: SPAWNLOG_NO_AUTH]",
        ),
    ] = False,
    no_page: Annotated[
        bool,
        typer.Option("--no-page", help="Do not serve the web page. [env: SPAWNLOG_NO_PAGE]"),
    ] = False,
) -> None:
    """Start the server; SIGTERM or Ctrl-C stops it.

    Without --config the active configuration of the log stays in force. SIGHUP reloads the
    configuration. When the server accepts requests it prints `spawnlog ready on http://HOST:PORT`.
    """
    # Repeated garbage collection of module objects takes a tenth of the start. The server enables
    # the collector after its imports.
    gc.disable()
    from infrastructure.server.operations import serve as serve_until_stopped

    options = home.serve_options()
    overridden = replace(
        options, host=host, port=port, no_auth=no_auth or None, no_page=no_page or None
    )
    raise typer.Exit(serve_until_stopped(overridden))


def migrate(home: HomeOptions) -> None:
    """Migrate the database schema to this release.

    The embedded server migrates its own when it starts.
    """
    from infrastructure.server.operations import migrate as migrated

    print(migrated(home.serve_options()))
