"""The table of operations: every `@operation` of the listed modules, grouped by tag."""

from collections.abc import Iterable
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
    summary,
)
from application.queries.changes import compare, diff, history
from application.queries.operation import Operation
from application.queries.search import find
from application.queries.timeline import bars, histogram, moments, tree, usage
from application.queries.what_if import ask

MODULES: tuple[ModuleType, ...] = (
    spawn,
    respawn,
    runs,
    summary,
    explain,
    history,
    compare,
    stop,
    messages,
    preamble,
    yielding,
    sessions,
    tree,
    usage,
    transcript,
    inbox,
    announcements,
    shared_context,
    external_runs,
    events,
    histogram,
    find,
    bars,
    moments,
    diff,
    ask,
    verify,
    revisions,
    agents,
    lanes,
    caller,
    page_access,
    health,
)


def operations_of(modules: Iterable[ModuleType]) -> tuple[Operation, ...]:
    """Return the operations that these modules define, grouped by tag in order of first
    appearance."""
    rows = [
        row
        for module in modules
        for value in vars(module).values()
        if isinstance(row := getattr(value, "operation", None), Operation)
        and value.__module__ == module.__name__
    ]
    tags = [row.tag for row in rows]
    return tuple(sorted(rows, key=lambda row: tags.index(row.tag)))


OPERATIONS = operations_of(MODULES)
