"""How a test runs the command."""

from collections.abc import Callable

from typer.testing import Result

Command = Callable[..., Result]


"""Called with the arguments of the command, and `given` for its standard input."""
