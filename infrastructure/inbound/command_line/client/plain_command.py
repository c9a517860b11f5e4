"""Base class of all commands: errors name their options, and no option is given twice."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import typer
from typer.core import TyperCommand

from domain.configuration.problems import render_error
from infrastructure.inbound.command_line.client.coercion import read_plainly
from infrastructure.inbound.command_line.client.command_groups import UsageError
from infrastructure.inbound.command_line.client.described import identifier_of
from infrastructure.inbound.command_line.display.failures import (
    ResourceNotFoundError,
    names_of_values,
)
from infrastructure.inbound.command_line.display.plain_text import printable_line
from spawnlog.core.pointers import pointer_parts

NAME_PARTS_MAX = 4
INDEX_DIGITS_MAX = 9
CHANGES = "changes"
"""The member of a respawn's body that holds a request."""
_OF_WHOLE_REQUESTS = ("file", "fields")
"""Options that hold members of a request which no other option gave."""
_REPEATED = {"task": "tasks"}
"""Options with further values of an argument."""


class PlainCommand(TyperCommand):
    """Command whose errors use the names of its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raise UsageError if an option for one value is given twice."""
        read_plainly(self.get_params(ctx))
        if not ctx.resilient_parsing:
            self._require_given_once(ctx, args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            _say_plainly(error)
            raise

    def _require_given_once(self, ctx: Any, args: list[str]) -> None:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        given: Sequence[Any] = order
        for parameter, count in Counter(given).items():
            is_option = parameter.param_type_name == "option"
            if is_option and count > 1 and not (parameter.multiple or parameter.is_flag):
                times = "twice" if count == 2 else f"{count} times"
                raise UsageError(f"{option_name(parameter)} is given {times}: give it once", ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line, with required arguments without braces."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help of arguments and options. An argument is shown without its type."""
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                vars(parameter)["display_type_rich"] = _no_type
        super().format_options(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. A problem that the server returns names the options of this command."""
        try:
            with names_of_values(partial(_name_of, ctx)):
                return super().invoke(ctx)
        except ResourceNotFoundError as failure:
            moment = ctx.params.get("at")
            if moment is None or failure.problem is None:
                raise
            then = f"{failure.message} as of {printable_line(moment, 80)}"
            raise ResourceNotFoundError(then, failure.problem) from None


def _no_type(ctx: Any) -> None:
    """Return no type for an argument in help."""


def option_name(parameter: Any) -> str:
    """Return the long name of an option, or the name of an argument as help shows it."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name.upper())


def _say_plainly(error: Any) -> None:
    """Reword the error of a value like the errors of a request."""
    cause = error.__cause__
    if hasattr(cause, "errors"):
        error.message = render_error(cause.errors(include_url=False)[0])[0]


def _name_of(ctx: Any, pointer: str) -> str:
    """Return the option or argument that gave the value at a JSON pointer of the request."""
    parts = pointer_parts(pointer)
    is_of_body = len(parts) == pointer.count("/")
    if parts[0] == CHANGES and len(parts) > 1:
        parts = parts[1:]
    parameters = {known.name: known for known in ctx.command.params}
    parameter, rest = _parameter_of(parameters, parts)
    if parameter is not None and ctx.params.get(_REPEATED.get(parameter.name)):
        parameter = parameters[_REPEATED[parameter.name]]
    if is_of_body and (
        parameter is None or ctx.params.get(parameter.name) in (None, False, (), [])
    ):
        given = [name for name in _OF_WHOLE_REQUESTS if ctx.params.get(name)]
        if given:
            parameter, rest = parameters[given[0]], parts
    if parameter is None:
        return pointer or "the request"
    return " ".join([option_name(parameter), *_shown(_inner(ctx, parameter, rest))])


def _inner(ctx: Any, parameter: Any, rest: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path to a value within the value of a parameter."""
    if parameter.name in _OF_WHOLE_REQUESTS:
        return rest
    if not getattr(parameter, "multiple", False):
        # A single value is the option's, wherever the request holds it.
        return ()
    is_only_one = len(ctx.params.get(parameter.name) or ()) == 1
    return rest[1:] if is_only_one and rest[:1] == ("0",) else rest


def _parameter_of(
    parameters: Mapping[str, Any], parts: tuple[str, ...]
) -> tuple[Any, tuple[str, ...]]:
    """Return the parameter for a member of a request, and the remaining path to the value."""
    for count in range(min(len(parts), NAME_PARTS_MAX), 0, -1):
        parameter = parameters.get(identifier_of(".".join(parts[:count])))
        if parameter is not None:
            return parameter, parts[count:]
    return None, parts


def _shown(parts: tuple[str, ...]) -> Iterator[str]:
    for part in parts:
        is_index = part.isdecimal() and len(part) <= INDEX_DIGITS_MAX
        yield f"(number {int(part) + 1})" if is_index else printable_line(part, 80) or '""'
