"""Typer commands, each built when it is called."""

from collections.abc import Callable
from typing import Any

import typer

from infrastructure.inbound.command_line.client.deferred import load
from infrastructure.inbound.command_line.client.described import described_operations
from infrastructure.inbound.command_line.client.moments import CommandOfMoments
from infrastructure.inbound.command_line.client.option_groups import flat_command
from infrastructure.inbound.command_line.client.plain_command import PlainCommand
from infrastructure.inbound.command_line.commands.derived import derived_function

_OF_MOMENTS = ("commands.run.changes:diff",)


def function_command(name: str, place: str) -> Any:
    """Import a function and return the command that runs it."""
    return _command(name, load(place), CommandOfMoments if place in _OF_MOMENTS else PlainCommand)


def derived_command(name: str, operation: str) -> Any:
    """Return the command derived from an operation."""
    return _command(name, derived_function(described_operations()[operation]), PlainCommand)


def _command(name: str, function: Callable[..., None], kind: type[PlainCommand]) -> Any:
    made = typer.Typer(add_completion=False, rich_markup_mode=None)
    made.command(name, cls=kind)(flat_command(function))
    return typer.main.get_command(made)
