"""The table of operations: every `@operation` of these modules, in the order of the document."""

from collections.abc import Iterator
from types import ModuleType

from application.commands import (
    announcements,
    external_runs,
    messages,
    preamble,
    respawn,
    spawn,
    stop,
    transcript,
    yielding,
)
from application.queries import agents, explain, inbox, lanes, revisions, runs, sessions
from application.queries.changes import compare, diff, history
from application.queries.operation import Operation
from application.queries.search import find
from application.queries.timeline import bars, histogram, moments, tree
from infrastructure.inbound.http.routes import (
    access,
    events,
    health,
    run_records,
    shared_context,
    what_if,
)

ROUTERS = (
    run_records.router,
    shared_context.router,
    events.router,
    what_if.router,
    access.router,
    health.router,
)

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
    histogram,
    bars,
    moments,
    find,
    revisions,
    agents,
    lanes,
)


def _operations() -> Iterator[Operation]:
    for module in MODULES:
        for value in vars(module).values():
            row = getattr(value, "operation", None)
            if isinstance(row, Operation) and value.__module__ == module.__name__:
                yield row


OPERATIONS: tuple[Operation, ...] = tuple(_operations())
