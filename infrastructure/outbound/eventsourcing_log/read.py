"""Reading an application's log on a connection that is at hand."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
from eventsourcing.persistence import Notification, StoredEvent
from psycopg.rows import DictRow, tuple_row

from infrastructure.outbound.eventsourcing_log.streams import EVENT, NOTIFICATION, Streams

ReaderConnection = psycopg.Connection[DictRow]


def read_events(
    connection: ReaderConnection,
    streams: Streams,
    originator_id: UUID | str,
    *,
    gt: int | None,
    lte: int | None,
    desc: bool,
    limit: int | None,
) -> list[StoredEvent]:
    """Events of one stream with versions above `gt` and up to `lte`, in order or backwards."""
    query = f"SELECT {EVENT} FROM events WHERE stream = %s"
    values: list[Any] = [streams.stream_of(originator_id)]
    if gt is not None:
        query += " AND version > %s"
        values.append(gt)
    if lte is not None:
        query += " AND version <= %s"
        values.append(lte)
    query += " ORDER BY version DESC" if desc else " ORDER BY version"
    if limit is not None:
        query += " LIMIT %s"
        values.append(limit)
    return [streams.event(row) for row in _rows(connection, query, values)]


def read_notifications(
    connection: ReaderConnection,
    streams: Streams,
    *,
    start: int | None,
    stop: int | None,
    limit: int,
    topics: Sequence[str],
    inclusive_of_start: bool,
) -> list[Notification]:
    """Events from position `start` (or behind it) up to `stop`, in order, at most `limit`."""
    query = f"SELECT {NOTIFICATION} FROM events WHERE true"
    values: list[Any] = []
    if start is not None:
        query += " AND position >= %s" if inclusive_of_start else " AND position > %s"
        values.append(start)
    if stop is not None:
        query += " AND position <= %s"
        values.append(stop)
    if topics:
        query += " AND type = ANY(%s::text[])"
        values.append(list(topics))
    query += " ORDER BY position LIMIT %s"
    values.append(limit)
    return [streams.notification(row) for row in _rows(connection, query, values)]


def head_of(connection: ReaderConnection) -> int:
    """The last position; 0 for an empty log."""
    return int(_rows(connection, "SELECT position FROM log_head", [])[0][0])


def _rows(connection: ReaderConnection, query: str, values: Sequence[Any]) -> list[Any]:
    cursor = connection.cursor(row_factory=tuple_row)
    return cursor.execute(query, values, binary=True).fetchall()
