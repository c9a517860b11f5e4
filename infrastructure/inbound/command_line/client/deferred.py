"""Commands that are imported only when they are called."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

PACKAGE = "infrastructure.inbound.command_line"


def load(place: str) -> Any:
    """Import and return an object of the command line, such as `commands.serve:serve`."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"{PACKAGE}.{module}"), name)


class DeferredCommand(NamedTuple):
    """A command that is not imported yet.

    Attributes:
        help: The help text. Its first sentence is shown in a list of commands.
        make: Imports the command and returns it as Typer's.
    """

    help: str
    make: Callable[[], Any]


class DeferredCommands(Mapping[str, Any]):
    """The commands of a group by name. Each is made when it is first looked up."""

    def __init__(self, deferred: Mapping[str, DeferredCommand]) -> None:
        self._deferred = deferred
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._deferred[name].make()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._deferred

    def __iter__(self) -> Iterator[str]:
        return iter(self._deferred)

    def __len__(self) -> int:
        return len(self._deferred)
