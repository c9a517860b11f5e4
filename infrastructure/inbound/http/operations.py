"""The table of operations: every `@operation` of these modules, in the order of the document."""

from collections.abc import Iterator
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
from application.queries import agents, caller, explain, inbox, lanes, revisions, runs, sessions
from application.queries.changes import compare, diff, history
from application.queries.operation import Operation
from application.queries.search import find
from application.queries.timeline import bars, histogram, moments, tree
from infrastructure.inbound.http.routes import (
    events,
    metrics,
    run_records,
    what_if,
)

ROUTERS = (
    run_records.router,
    events.router,
    what_if.router,
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
    shared_context,
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
    metrics,
    verify,
)


def _operations() -> Iterator[Operation]:
    for module in MODULES:
        for value in vars(module).values():
            row = getattr(value, "operation", None)
            if isinstance(row, Operation) and value.__module__ == module.__name__:
                yield row


OPERATIONS: tuple[Operation, ...] = tuple(_operations())
