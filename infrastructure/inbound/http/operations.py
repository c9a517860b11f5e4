"""The table of operations: every `@operation` of these modules, in the order of the document."""

from collections.abc import Iterator
from types import ModuleType

from application.commands import announcements
from application.queries import agents, inbox, lanes, revisions, runs, sessions
from application.queries.operation import Operation
from application.queries.timeline import bars, tree
from infrastructure.inbound.http.routes import (
    access,
    changes,
    control,
    event_search,
    events,
    external_runs,
    health,
    respawns,
    run_records,
    shared_context,
    spawns,
    timeline,
    transcripts,
    what_if,
)

ROUTERS = (
    spawns.router,
    respawns.router,
    run_records.router,
    changes.router,
    control.router,
    external_runs.router,
    transcripts.router,
    shared_context.router,
    events.router,
    what_if.router,
    timeline.router,
    event_search.router,
    access.router,
    health.router,
)

MODULES: tuple[ModuleType, ...] = (
    runs,
    sessions,
    tree,
    inbox,
    announcements,
    bars,
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
