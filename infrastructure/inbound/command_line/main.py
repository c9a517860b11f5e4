"""The `spawnlog` command."""

import os
import sys
from typing import Annotated, Any

import typer

from infrastructure.contract.errors import UserError
from infrastructure.inbound.command_line.client.command_groups import RootGroup
from infrastructure.inbound.command_line.client.command_table import root_commands
from infrastructure.inbound.command_line.client.deferred import load
from infrastructure.inbound.command_line.client.global_options import DataDir, OutputOption, Url
from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_block
from spawnlog.core.errors import SpawnlogError

EPILOG = (
    "Exit status: 0 success, 1 difference found or run failed, 2 usage or error, 3 refused, "
    "4 not found, 5 unreachable."
)


class _Commands(RootGroup):
    """Root group that prints a failure on stderr and exits with its status."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(deferred=root_commands(), **settings)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CommandError as failure:
            _print_error(f"{failure.word}: {failure.message}")
            raise typer.Exit(failure.exit_code) from None
        except (UserError, SpawnlogError) as failure:
            _print_error(f"error: {failure}")
            raise typer.Exit(CommandError.exit_code) from None


def main() -> None:
    """Run the command line, and end the process."""
    # Errors about the input of a user do not link to the documentation of a library. Set before
    # the first error: pydantic reads it once.
    os.environ["PYDANTIC_ERRORS_INCLUDE_URL"] = "0"
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets an escape instead of a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="spawnlog")


def _print_error(text: str) -> None:
    sys.stdout.flush()
    print(printable_block(text), file=sys.stderr)


def _print_version(value: bool) -> None:
    if value:
        load("commands.status:show_version")()
        raise typer.Exit()


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    url: Url = None,
    data_dir: DataDir = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Control plane and black-box recorder for AI sub-agent runs."""


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    epilog=EPILOG,
    pretty_exceptions_enable=False,
    # Plain help is fast, and text in brackets is not read as markup.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(_root)

if __name__ == "__main__":
    main()
