"""Operations as plain data for the command line, written by `make docs` from their rows.

Help is printed from it without a model, a server or a client.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from infrastructure.inbound.command_line.client.arguments import (
    duration_seconds,
    parse_json,
    parse_shared_context,
    read_attachments,
    read_text_argument,
    session_named,
)
from infrastructure.inbound.command_line.client.recorded import OPERATIONS, recorded
from infrastructure.inbound.command_line.client.wall_clock import sent_moment
from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.forms import Column
from infrastructure.inbound.command_line.display.output import JsonObject
from spawnlog.core.pointers import python_name
from spawnlog.core.request import path_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient

_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "duration": duration_seconds,
    "requester": session_named,
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation, or a member of its body such as `requester.channel`.

    Without a flag it is an argument. The attributes are as in `application.queries.command.Option`.
    """

    name: str
    place: Literal["path", "query", "body"]
    kind: Literal["text", "texts", "integer", "number", "flag", "json"]
    help: str
    flag: str | None = None
    metavar: str | None = None
    default: Any = None
    required: bool = False
    means: str | None = None
    variable: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: Sequence[str] = ()
    sends: Any = None

    @property
    def identifier(self) -> str:
        """Return the Python name of the parameter."""
        return identifier_of(self.name)

    def declared(self) -> inspect.Parameter:
        """Return the function parameter from which Typer makes the option or argument."""
        return inspect.Parameter(
            self.identifier,
            inspect.Parameter.KEYWORD_ONLY,
            default=self._default(),
            annotation=Annotated[self._type(), self.option()],
        )

    def _default(self) -> Any:
        if self.kind == "flag":
            return False
        is_required = self.required or self.place == "path"
        return inspect.Parameter.empty if is_required else self.default

    def _type(self) -> Any:
        if self.kind == "flag":
            return bool
        if self.means == "files":
            return list[Path] | None
        if self.kind == "texts" or self.means == "objects":
            return list[_choice(self.choices) if self.choices else str] | None  # type: ignore[misc]
        kind: Any = str
        if self.kind in ("integer", "number") or self.means == "duration":
            kind = float if self.kind == "number" and self.means is None else int
        elif self.choices:
            # Equal words must be one object: msgspec compares a default by identity.
            kind = Literal[tuple(map(sys.intern, self.choices))]
        return kind if self._default() is inspect.Parameter.empty else kind | None

    def option(self) -> Any:
        """Return Typer's option or argument."""
        names = () if self.flag is None else (self.flag,)
        make: Callable[..., Any] = typer.Option if names else typer.Argument
        variable = f" [env: {self.variable}]" if self.variable else ""
        return make(
            *names,
            metavar=self.metavar,
            help=f"{self.help}{variable}",
            envvar=self.variable,
            show_envvar=False,
            min=self.minimum,
            max=self.maximum,
            parser=_PARSERS.get(self.means or ""),
            show_default=self.default is not None,
        )

    def sent(self, value: Any, client: "CommandClient") -> Any:
        """Return the value to send, or None to send nothing.

        Raises:
            CommandError: The value cannot be read, or names no run.
        """
        if value is None or value == [] or value is False:
            return None
        if self.kind == "flag":
            return self.sends
        match self.means:
            case "run":
                # Imported late: only a request needs it.
                from infrastructure.inbound.command_line.client.find_run import find_run

                return find_run(client, value).run_id
            case "moment":
                return sent_moment(value)
            case "stdin":
                return read_text_argument(value, (self.flag or self.name).removeprefix("--"))
            case "files":
                return read_attachments(value)
            case "objects":
                return parse_shared_context(value)
            case "runs":
                return [_json(name, self.flag) if name.startswith("{") else name for name in value]
            case "events":
                if any("," in name for name in value):
                    raise CommandError(f"give one type with each {self.flag}")
                return ",".join(value)
        return _json(value, self.flag) if self.kind == "json" else value


def identifier_of(name: str) -> str:
    """Return the Python name of a parameter: `requester_channel` for `requester.channel`."""
    words = python_name(name).replace(".", "_")
    return f"given_{words.rstrip('_')}" if words.endswith("_") else words


def _choice(names: Sequence[str]) -> Any:
    """Return a type of these values. Typer cannot read a list of a `Literal`."""
    return StrEnum("Choice", [(name, name) for name in names])


def _json(text: str, flag: str | None) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise CommandError(f"{flag} takes JSON: {error}") from None


@dataclass(frozen=True, slots=True)
class DescribedOperation:
    """An operation with its command: see `application.queries.command.Command`."""

    name: str
    method: str
    path: str
    parameters: tuple[Parameter, ...]
    takes_key: bool = False
    words: str | None = None
    help: str = ""
    by_hand: bool = False
    paged: bool = False
    items: str | None = None
    limit: int = 0
    columns: tuple[Column, ...] = ()
    fields: tuple[Column, ...] = ()
    done: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    differs: str | None = None
    numbered: bool = False


@cache
def described_operations() -> Mapping[str, DescribedOperation]:
    """Return all operations that the command line knows, by name."""
    return {name: _operation(name, members) for name, members in recorded(OPERATIONS).items()}


def option_of(operation: str, parameter: str) -> Any:
    """Return the option or argument of one parameter of an operation."""
    parameters = described_operations()[operation].parameters
    return OperationOptions(parameters, {}).parameter(parameter).option()


def is_typed(context: typer.Context, name: str) -> bool:
    """Return True if the caller typed the parameter on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def columns_of(operation: str) -> tuple[Column, ...]:
    """Return the columns of an operation's table."""
    return described_operations()[operation].columns


def _operation(name: str, members: JsonObject) -> DescribedOperation:
    rest = {python_name(key): value for key, value in members.items()}
    rest["parameters"] = tuple(
        Parameter(**{"place" if key == "in" else key: value for key, value in parameter.items()})
        for parameter in rest.get("parameters", ())
    )
    for which in ("columns", "fields"):
        rest[which] = tuple(_column(column) for column in rest.get(which, ()))
    return DescribedOperation(name=name, **rest)


def _column(members: JsonObject) -> Column:
    own = Column.__dataclass_fields__
    traits = {name: value for name, value in members.items() if name not in own}
    return Column(**{name: members[name] for name in members if name in own}, traits=traits)


@dataclass(frozen=True, slots=True)
class OptionsOf:
    """The options of an operation that a command accepts, as metadata of an `OperationOptions`
    parameter.

    `only` and `without` select parameters by name. The name of a member selects all its members.
    """

    operation: str
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters in the order of their options."""
        return tuple(self._chosen(described_operations()[self.operation].parameters))

    def _chosen(self, known: Sequence[Parameter]) -> Iterator[Parameter]:
        for parameter in known:
            names = {parameter.name, parameter.name.partition(".")[0]}
            if not names & set(self.without) and (not self.only or names & set(self.only)):
                yield parameter


@dataclass(frozen=True, slots=True)
class OperationOptions:
    """The values that a caller gave for the options of an operation, by the names of the API."""

    parameters: tuple[Parameter, ...]
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by its name."""
        return next(parameter for parameter in self.parameters if parameter.name == name)

    def typed(self, place: str) -> JsonObject:
        """Return the given values of the path, query or body parameters, as they were typed."""
        names = [parameter.name for parameter in self.parameters if parameter.place == place]
        return {name: self.values[name] for name in names}

    def query(self, client: "CommandClient", *, without: Sequence[str] = ()) -> JsonObject:
        """Return the query parameters to send. The name of a run is resolved to its id."""
        sent = self._sent("query", client, without)
        return {name: "true" if value is True else value for name, value in sent}

    def body(self, client: "CommandClient", *, without: Sequence[str] = ()) -> JsonObject:
        """Return the members of the body that were given."""
        body: JsonObject = {}
        for name, value in self._sent("body", client, without):
            if value is None:
                continue
            *outer, inner = name.split(".")
            within = body
            for name_part in outer:
                within = within.setdefault(name_part, {})
            within[inner] = value
        return body

    def path(self, client: "CommandClient", template: str) -> str:
        """Return the path of a request, with its parameters filled in."""
        values = dict(self._sent("path", client, ()))
        parts = template.removeprefix("/v1/").split("/")
        return path_of(*(str(values[part[1:-1]]) if part[0] == "{" else part for part in parts))

    def _sent(
        self, place: str, client: "CommandClient", without: Sequence[str]
    ) -> Iterator[tuple[str, Any]]:
        for parameter in self.parameters:
            if parameter.place == place and parameter.name not in without:
                yield parameter.name, parameter.sent(self.values[parameter.name], client)
