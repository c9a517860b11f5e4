"""The table of operations: every `@operation` of these modules, in their order."""

from collections.abc import Iterable, Iterator
from types import ModuleType

from application.commands import (
    announcements,
    external_runs,
    health,
    messages,
    page_access,
    preamble,
    respawn,
    shared_context,
    spawn,
    stop,
    transcript,
    verify,
    yielding,
)
from application.queries import (
    agents,
    caller,
    events,
    explain,
    inbox,
    lanes,
    revisions,
    runs,
    sessions,
    what_if,
)
from application.queries.changes import compare, diff, history
from application.queries.operation import Operation
from application.queries.search import find
from application.queries.timeline import bars, histogram, moments, tree

MODULES: tuple[ModuleType, ...] = (
    spawn,
    respawn,
    runs,
    explain,
    history,
    compare,
    diff,
    stop,
    messages,
    preamble,
    yielding,
    external_runs,
    sessions,
    tree,
    inbox,
    announcements,
    transcript,
    shared_context,
    events,
    what_if,
    histogram,
    bars,
    moments,
    find,
    revisions,
    agents,
    lanes,
    caller,
    page_access,
    health,
    verify,
)


def operations_of(modules: Iterable[ModuleType]) -> Iterator[Operation]:
    """Yield the operations that these modules define."""
    for module in modules:
        for value in vars(module).values():
            row = getattr(value, "operation", None)
            if isinstance(row, Operation) and value.__module__ == module.__name__:
                yield row


OPERATIONS: tuple[Operation, ...] = tuple(operations_of(MODULES))
