"""Groups of commands, with options before the command and suggestions for unknown words."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from infrastructure.inbound.command_line.client.coercion import read_plainly
from infrastructure.inbound.command_line.client.deferred import DeferredCommand, DeferredCommands

# The base of BadParameter is the usage error of the library that Typer uses.
UsageError: Any = typer.BadParameter.__base__
GLOBAL_OPTIONS = ("--url", "--data-dir", "--output", "-o")
_SUGGESTIONS_MAX = 3
_COMMAND_SYNONYMS = {
    "ls": "list",
    "ps": "list",
    "logs": "log",
    "tail": "log",
    "kill": "stop",
    "cancel": "stop",
    "describe": "get",
    "show": "get",
    "info": "status",
}
_OPTION_SYNONYMS: Mapping[str, Sequence[str]] = {
    "--json": ("--output json",),
    "--jsonl": ("--output jsonl",),
    "--yaml": ("--output yaml",),
    "--format": ("--output",),
    "-f": ("--follow", "--file", "--config"),
    "-w": ("--follow", "--wait"),
    "--watch": ("--follow", "--wait"),
    "-n": ("--limit",),
    "--tail": ("--limit",),
    "-l": ("--label",),
}


class CommandGroup(TyperGroup):
    """A group that suggests commands for an unknown word.

    A command is imported when it is called; listing the commands imports none.
    """

    def __init__(self, *, deferred: Mapping[str, DeferredCommand], **settings: Any) -> None:
        super().__init__(**settings)
        self._deferred = deferred
        vars(self)["commands"] = DeferredCommands(deferred)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        read_plainly(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def list_commands(self, _: Any) -> list[str]:
        """Return the names of the commands in their order."""
        return list(self._deferred)

    def format_commands(self, _: Any, formatter: Any) -> None:
        """Write the list of commands, each with the first sentence of its help."""
        cells = formatter.width - 6 - max(map(len, self._deferred))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, TyperCommand(name, help=deferred.help).get_short_help_str(cells))
                    for name, deferred in self._deferred.items()
                ]
            )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command of the first word, or raise UsageError with suggestions."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            meant = " or ".join(f"'{words}'" for words in _meant_commands(self, args[0]))
            hint = f" Did you mean {meant}?" if meant else ""
            raise UsageError(f"No such command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


class RootGroup(CommandGroup):
    """The root group: options of every command are also accepted before the command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move options from before the command to after it; the command accepts or refuses them."""
        try:
            return super().parse_args(ctx, _moved_behind_command(self, ctx, args))
        except UsageError as error:
            _suggest_options(error)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command. An unknown option is refused with suggestions."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            _suggest_options(error)
            raise


def _moved_behind_command(group: Any, ctx: Any, args: Sequence[str]) -> list[str]:
    moved, rest = _leading_options(args)
    place, command = 0, group
    while place < len(rest) and (inner := getattr(command, "commands", {}).get(rest[place])):
        place, command = place + 1, inner
    if not moved or getattr(command, "commands", None):
        return list(args)
    known = {name for parameter in command.params for name in parameter.opts}
    for name in _names_of(moved):
        if name not in known:
            words = " ".join(rest[:place])
            raise UsageError(f"'{ctx.info_name} {words}' does not take {name}: leave it out", ctx)
    return [*rest[:place], *moved, *rest[place:]]


def _leading_options(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split off the leading global options, each with its value."""
    place = 0
    while place < len(args):
        word = args[place]
        if word in GLOBAL_OPTIONS and place + 1 < len(args):
            place += 2
        elif word.startswith(tuple(f"{option}=" for option in GLOBAL_OPTIONS)) or (
            word.startswith("-o") and len(word) > 2
        ):
            place += 1
        else:
            break
    return list(args[:place]), list(args[place:])


def _names_of(options: Sequence[str]) -> Iterator[str]:
    """Yield the names of the options that `_leading_options` splits off."""
    words = iter(options)
    for word in words:
        if word in GLOBAL_OPTIONS:
            next(words)
            yield word
        else:
            yield word.partition("=")[0] if word.startswith("--") else word[:2]


def _suggest_options(error: Any) -> None:
    """Set the suggestions in the error of an unknown option."""
    if hasattr(error, "possibilities") and error.ctx is not None:
        error.possibilities = _meant_options(error.ctx.command, error.option_name)


def _meant_commands(group: Any, word: str) -> list[str]:
    words = [word, *filter(None, [_COMMAND_SYNONYMS.get(word)])]
    own = [candidate for candidate in words if candidate in group.commands]
    below = [
        f"{name} {candidate}"
        for candidate in words
        for name, inner in group.commands.items()
        if candidate in getattr(inner, "commands", {})
    ]
    return (own + below or get_close_matches(word, list(group.commands)))[:_SUGGESTIONS_MAX]


def _meant_options(command: Any, name: str) -> list[str]:
    known = list(_options_of(command))
    meant = [option for option in _OPTION_SYNONYMS.get(name, ()) if option.split()[0] in known]
    return meant[:1] or get_close_matches(name, known, cutoff=0.7)[:_SUGGESTIONS_MAX]


def _options_of(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (option for option in parameter.opts if option.startswith("--"))
