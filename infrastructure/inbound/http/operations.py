"""The table of operations: every `@operation` of these modules, in the order of the document."""

from collections.abc import Iterator
from types import ModuleType

from application.commands import announcements
from application.queries import agents, explain, inbox, lanes, revisions, runs, sessions
from application.queries.changes import compare, diff, history
from application.queries.operation import Operation
from application.queries.search import find
from application.queries.timeline import bars, histogram, moments, tree
from infrastructure.inbound.http.routes import (
    access,
    control,
    events,
    external_runs,
    health,
    respawns,
    run_records,
    shared_context,
    spawns,
    transcripts,
    what_if,
)

ROUTERS = (
    spawns.router,
    respawns.router,
    run_records.router,
    control.router,
    external_runs.router,
    transcripts.router,
    shared_context.router,
    events.router,
    what_if.router,
    access.router,
    health.router,
)

MODULES: tuple[ModuleType, ...] = (
    runs,
    explain,
    history,
    compare,
    diff,
    sessions,
    tree,
    inbox,
    announcements,
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
