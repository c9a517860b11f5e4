"""The operations of HTTP in the order of the document, and their routes."""

from collections.abc import Mapping

from starlette.routing import Match
from starlette.types import Scope

from application.operations import MODULES, operations_of
from infrastructure.inbound.http.requests.endpoint import OperationRoute, StreamFunction
from infrastructure.inbound.http.routes import (
    metrics,
    streams,
)

OPERATIONS = operations_of((*MODULES, metrics))

STREAMS: Mapping[str, StreamFunction] = {
    "getRunTranscript": streams.stream_transcript,
    "listEvents": streams.stream_events,
}
"""Functions that answer an operation as a live stream, if the request prefers one."""


def operation_routes() -> list[OperationRoute]:
    return [OperationRoute(row, STREAMS[row.name] if row.streams else None) for row in OPERATIONS]


_ESSENTIAL = tuple(OperationRoute(row) for row in OPERATIONS if row.essential)


def is_essential(scope: Scope) -> bool:
    """Return True if a request is answered even past the limit of open files."""
    return any(route.matches(scope)[0] is Match.FULL for route in _ESSENTIAL)
