"""The `spawnlog` command, built once per process and run inside it.

Typer builds every command and option again for each run, which takes 25 ms, many hundred times.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from infrastructure.inbound.command_line.main import app

Command = Callable[..., Result]
"""Called with the arguments of the command; `given` is its standard input, `settings` are more
environment variables."""


@cache
def program() -> Any:
    """Return the whole command. Running it does not change it."""
    return typer.main.get_command(app)


def run_program(
    arguments: Sequence[str], environment: Mapping[str, str | None], given: str | None = None
) -> Result:
    """Run the command with these arguments, and `given` as its standard input."""
    runner = CliRunner(env=environment)
    with runner.isolation(input=given) as streams:
        with pytest.raises(SystemExit) as ended:
            program().main(list(arguments), prog_name="spawnlog")
        sys.stdout.flush()
        sys.stderr.flush()
        output, errors, both = (stream.getvalue() for stream in streams)
    status = int(ended.value.code or 0)
    return Result(runner, output, errors, both, None, status, None)
