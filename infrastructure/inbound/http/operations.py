"""The table of operations: every `@operation` of these modules, in the order of the document."""

from collections.abc import Iterator
from types import ModuleType

from application.queries import runs
from application.queries.operation import Operation
from application.queries.timeline import bars
from infrastructure.inbound.http.routes import (
    access,
    changes,
    configuration,
    control,
    event_search,
    events,
    external_runs,
    health,
    respawns,
    run_records,
    sessions,
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
    sessions.router,
    transcripts.router,
    shared_context.router,
    events.router,
    what_if.router,
    timeline.router,
    event_search.router,
    configuration.router,
    access.router,
    health.router,
)

MODULES: tuple[ModuleType, ...] = (runs, bars)


def _operations() -> Iterator[Operation]:
    for module in MODULES:
        for value in vars(module).values():
            row = getattr(value, "operation", None)
            if isinstance(row, Operation) and value.__module__ == module.__name__:
                yield row


OPERATIONS: tuple[Operation, ...] = tuple(_operations())
