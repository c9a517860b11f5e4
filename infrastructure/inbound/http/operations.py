"""The table of operations: every `@operation` of these modules, in the order of the document."""

from collections.abc import Iterator, Mapping
from types import ModuleType

from starlette.routing import Match
from starlette.types import Scope

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
from infrastructure.inbound.http.requests.endpoint import OperationRoute, StreamFunction
from infrastructure.inbound.http.routes import (
    metrics,
    streams,
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

STREAMS: Mapping[str, StreamFunction] = {
    "getRunTranscript": streams.stream_transcript,
    "listEvents": streams.stream_events,
}
"""What answers the operations that stream, if a live stream is asked for."""


def operation_routes() -> list[OperationRoute]:
    """Return a route for each operation."""
    return [OperationRoute(row, STREAMS[row.name] if row.streams else None) for row in OPERATIONS]


_ESSENTIAL = tuple(OperationRoute(row) for row in OPERATIONS if row.essential)


def is_essential(scope: Scope) -> bool:
    """Return True if a request is answered past the limit of open files too."""
    return any(route.matches(scope)[0] is Match.FULL for route in _ESSENTIAL)
