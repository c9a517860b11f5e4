"""Reading an application's log on a connection that is at hand."""

from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

import psycopg
from eventsourcing.persistence import DataError, Notification, StoredEvent
from psycopg.rows import DictRow, tuple_row

# Between the ids and topics of the library and the columns of the log.
#
# A stream is text. With `ORIGINATOR_ID_TYPE=uuid` (the default) an originator id is a UUID, its
# stream the canonical text of it (`6f1c…`, 36 characters), and it is read back as a UUID; an id
# given as text must be one. With `text` the id is the stream as it is, and is read back as text; a
# UUID given is stored as its canonical text. So a log written under `uuid` may later be read under
# `text`.
#
# An event's topic is its type, and the type's version is 0: what a topic means, and which class of
# which version it names, is the application's affair.


STREAM_BYTES_MAX = 1_000
TOPIC_BYTES_MAX = 1_000
VERSION_MIN = -(2**31)
VERSION_MAX = 2**31 - 1
TYPE_VERSION = 0
IdType = Literal["uuid", "text"]
EVENT = "stream, version, type, state"
NOTIFICATION = "stream, version, type, state, position"


class Streams:
    """The mapping for one kind of ids."""

    def __init__(self, id_type: str) -> None:
        self._are_uuids = id_type == "uuid"

    def stream_of(self, originator_id: UUID | str) -> str:
        """The stream of an id. `DataError` when it cannot be one."""
        if self._are_uuids and not isinstance(originator_id, UUID):
            try:
                return str(UUID(originator_id))
            except ValueError:
                raise DataError(
                    "an originator id is not a UUID; set ORIGINATOR_ID_TYPE=text for other ids"
                ) from None
        stream = str(originator_id)
        _must_fit("an originator id", stream, STREAM_BYTES_MAX)
        return stream

    def id_of(self, stream: str) -> UUID | str:
        """The id of a stream, as the application knows it."""
        if not self._are_uuids:
            return stream
        try:
            return UUID(stream)
        except ValueError:
            raise DataError(
                "the log has originator ids that are not UUIDs; set ORIGINATOR_ID_TYPE=text"
            ) from None

    def event(self, row: Sequence[Any]) -> StoredEvent:
        """A row of the columns `EVENT`."""
        return StoredEvent(self.id_of(row[0]), row[1], row[2], bytes(row[3]))

    def notification(self, row: Sequence[Any]) -> Notification:
        """A row of the columns `NOTIFICATION`."""
        return Notification(self.id_of(row[0]), row[1], row[2], bytes(row[3]), row[4])


def must_be_storable(event: StoredEvent) -> None:
    """`DataError` for a version or topic that the columns do not hold."""
    if not VERSION_MIN <= event.originator_version <= VERSION_MAX:
        raise DataError(f"version {event.originator_version} is beyond {VERSION_MAX}")
    _must_fit("a topic", event.topic, TOPIC_BYTES_MAX)


def _must_fit(what: str, given: str, bytes_max: int) -> None:
    try:
        size = len(given.encode())
    except UnicodeEncodeError:
        raise DataError(f"{what} is not valid text") from None
    if size > bytes_max:
        raise DataError(f"{what} has {size} bytes, at most {bytes_max} can be stored")
    if "\0" in given:
        raise DataError(f"{what} has a NUL character, which PostgreSQL does not store")


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
