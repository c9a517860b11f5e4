"""The class of every command: errors speak of its options, and none is given twice."""

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
from infrastructure.inbound.command_line.display.failures import NotFound, names_of_values
from infrastructure.inbound.command_line.display.plain_text import printable_line
from spawnlog.core.pointers import pointer_parts

NAME_PARTS_MAX = 4
INDEX_DIGITS_MAX = 9
CHANGES = "changes"
"""The member of a respawn that holds a request."""
_OF_WHOLE_REQUESTS = ("file", "fields")
"""Options that give members of a request for which another option was not used."""
_REPEATED = {"task": "tasks"}
"""Options that give further values of an argument."""


class PlainCommand(TyperCommand):
    """Command whose errors are in the words of its caller."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. UsageError if an option that takes one value is given twice."""
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
        for one, count in Counter(given).items():
            is_single = one.param_type_name == "option" and not (one.multiple or one.is_flag)
            if is_single and count > 1:
                times = "twice" if count == 2 else f"{count} times"
                raise UsageError(f"{option_name(one)} is given {times}: give it once", ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage, a required argument without braces."""
        return [one.strip("{}") for one in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help of arguments and options. An argument has its name, and no type."""
        for one in self.get_params(ctx):
            if one.param_type_name == "argument":
                vars(one)["display_type_rich"] = _no_type
        super().format_options(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a problem that the server answers names the options of this command."""
        try:
            with names_of_values(partial(_name_of, ctx)):
                return super().invoke(ctx)
        except NotFound as failure:
            moment = ctx.params.get("at")
            if moment is None or failure.problem is None:
                raise
            then = f"{failure.message} as of {printable_line(moment, 80)}"
            raise NotFound(then, failure.problem) from None


def _no_type(ctx: Any) -> None:
    """Return the type of an argument as help has it."""


def option_name(parameter: Any) -> str:
    """Return the long name of an option, or the name of an argument as help has it."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name.upper())


def _say_plainly(error: Any) -> None:
    """Give the error of a value the words that errors of a request have."""
    cause = error.__cause__
    if hasattr(cause, "errors"):
        error.message = render_error(cause.errors(include_url=False)[0])[0]


def _name_of(ctx: Any, pointer: str) -> str:
    """Return how the caller gave the value at a JSON pointer of the request."""
    parts = pointer_parts(pointer)
    is_of_body = len(parts) == pointer.count("/")
    if parts[0] == CHANGES and len(parts) > 1:
        parts = parts[1:]
    parameters = {one.name: one for one in ctx.command.params}
    one, rest = _parameter_of(parameters, parts)
    if one is not None and ctx.params.get(_REPEATED.get(one.name)):
        one = parameters[_REPEATED[one.name]]
    if is_of_body and (one is None or ctx.params.get(one.name) in (None, False, (), [])):
        given = [name for name in _OF_WHOLE_REQUESTS if ctx.params.get(name)]
        if given:
            one, rest = parameters[given[0]], parts
    if one is None:
        return pointer or "the request"
    return " ".join([option_name(one), *_shown(_inner(ctx, one, rest))])


def _inner(ctx: Any, parameter: Any, rest: tuple[str, ...]) -> tuple[str, ...]:
    """Return the way to a value within what was given for a parameter."""
    if parameter.name in _OF_WHOLE_REQUESTS:
        return rest
    if not getattr(parameter, "multiple", False):
        # One value is that of the option, wherever the request holds it.
        return ()
    is_only_one = len(ctx.params.get(parameter.name) or ()) == 1
    return rest[1:] if is_only_one and rest[:1] == ("0",) else rest


def _parameter_of(
    parameters: Mapping[str, Any], parts: tuple[str, ...]
) -> tuple[Any, tuple[str, ...]]:
    """Return the parameter for a member of a request, and the rest of the way to the value."""
    for count in range(min(len(parts), NAME_PARTS_MAX), 0, -1):
        one = parameters.get(identifier_of(".".join(parts[:count])))
        if one is not None:
            return one, parts[count:]
    return None, parts


def _shown(parts: tuple[str, ...]) -> Iterator[str]:
    for part in parts:
        is_index = part.isdecimal() and len(part) <= INDEX_DIGITS_MAX
        yield f"(number {int(part) + 1})" if is_index else printable_line(part, 80) or '""'
