"""The log as a read-only upstream for programs written with the library eventsourcing.

    runner = ProjectionRunner(application_class=Spawnlog, projection_class=..., view_class=...)

`docs/eventsourcing.md` has the settings and an example.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from uuid import UUID

import psycopg
from eventsourcing.application import Application
from eventsourcing.persistence import (
    ApplicationRecorder,
    InfrastructureFactory,
    JSONTranscoder,
    Mapper,
    Notification,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    StoredEvent,
    Subscription,
    TrackingRecorder,
)
from eventsourcing.utils import Environment

from domain.event_types import EVENT_TYPES
from domain.values.record import Event, FactType
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.schema.connections import (
    LIMITS,
    PLANNING,
    SyncLogConnection,
    open_sync_connection,
)
from infrastructure.outbound.log.schema.followers import channel_of, listen_statement
from infrastructure.outbound.log.schema.format import require_known_format
from infrastructure.server.database import open_database

DATABASE_URL = "SPAWNLOG_DATABASE_URL"
EVENTS_MAX = 10_000
"""Maximum number of events that one call returns."""
PAGE_EVENTS = 500
SCAN_POSITIONS_MAX = 50_000
"""Maximum number of positions that a subscription searches for its topics in one query."""
POLL_SECONDS = 1.0
STOP_SECONDS_MAX = 0.1
RECONNECT_SECONDS_MAX = 60.0
RECONNECT_PAUSE_SECONDS = 0.25
SESSION = f"{LIMITS}; {PLANNING}; SET default_transaction_read_only = on"

_TYPE_NAMES = frozenset(name for name, _ in EVENT_TYPES)
_COLUMNS = "stream, version, type || ':' || type_version, state, position, recorded_at"
_POSITION_MAX = 2**63 - 1
T = TypeVar("T")
_ADDED = {"originator_id": str, "originator_version": int, "timestamp": datetime}


class LoggedEvent(Event):
    """An event with the attributes that the library's events have.

    `originator_id` is its stream, such as `run:<uuid>` or `session:<key>`, `originator_version` its
    number there, and `timestamp` when the log recorded it. Each event that this module returns is
    also an instance of its class in `domain`.
    """

    if TYPE_CHECKING:
        originator_id: str
        originator_version: int
        timestamp: datetime


@dataclass(frozen=True)
class LogNotification(Notification):
    """A stored event with its position as `id`."""

    timestamp: datetime


class LogMapper(Mapper[str]):
    """Decodes stored events by the closed registry of event types."""

    def __init__(self) -> None:
        super().__init__(JSONTranscoder())
        self._mapper = EventMapper(event_types=_logged_types())

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        """Return the event as a `LoggedEvent`.

        Raises:
            CorruptHistoryError: A newer release recorded it, or it is damaged.
        """
        assert isinstance(stored_event, LogNotification)
        added = {name: getattr(stored_event, name) for name in _ADDED}
        return self._mapper.load(stored_event).changed(added)

    def to_stored_event(self, domain_event: object) -> NoReturn:  # noqa: ARG002
        """Refuse: the log is read-only."""
        raise _read_only_error()


class LogReader:
    """Connection to the log that is opened on first use, and again after it was lost.

    It is thread-safe: one read at a time.
    """

    def __init__(self, url: str, *, listens: bool = False) -> None:
        self._url = url
        self._listens = listens
        self._connection: SyncLogConnection | None = None
        self._lock = threading.Lock()
        self.is_closing = threading.Event()

    def read(self, ask: Callable[[SyncLogConnection], T]) -> T:
        """Return an answer of the database. If it is away, wait up to `RECONNECT_SECONDS_MAX`.

        Raises:
            OperationalError: The database is away, or took too long.
            ProgrammingError: The database refused the query.
        """
        until = time.monotonic() + RECONNECT_SECONDS_MAX
        with self._lock:
            while True:
                try:
                    return ask(self._open())
                except psycopg.Error as error:
                    is_away = isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
                    is_lost = is_away and (self._connection is None or self._connection.closed)
                    if not is_lost or self.is_closing.is_set() or time.monotonic() > until:
                        kind = OperationalError if is_away else ProgrammingError
                        raise kind(f"the log cannot be read: {_reason(error)}") from error
                self.is_closing.wait(RECONNECT_PAUSE_SECONDS)

    def close(self) -> None:
        """Close the connection, after a read in progress."""
        self.is_closing.set()
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def _open(self) -> SyncLogConnection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        if self.is_closing.is_set():
            raise psycopg.InterfaceError("it was closed; make a new application")
        self._connection = None
        connection = open_sync_connection(self._url, application="eventsourcing", settings=SESSION)
        try:
            row = connection.execute(
                "SELECT coalesce(max(format), 0), current_schema() FROM log_head"
            ).fetchone()
            assert row is not None
            require_known_format(row[0])
            if self._listens:
                connection.execute(listen_statement(channel_of(row[1])), prepare=False)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection


class LogRecorder(ApplicationRecorder):
    """Read-only recorder. Notification ids are positions: 1, 2, 3 … in the order of the commits."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._reader = LogReader(url)

    def insert_events(
        self,
        stored_events: Sequence[StoredEvent],  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> NoReturn:
        """Refuse: the log is read-only."""
        raise _read_only_error()

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return events of one stream. Without `limit` all of them, up to `EVENTS_MAX`."""
        query = (
            f"SELECT {_COLUMNS} FROM events WHERE stream = %s AND version > %s AND version <= %s"
            f" ORDER BY version {'DESC' if desc else 'ASC'} LIMIT %s"
        )
        last = _POSITION_MAX if lte is None else lte
        values = [str(originator_id), gt or 0, last, EVENTS_MAX + 1 if limit is None else limit]
        events = self._reader.read(lambda connection: _notifications(connection, query, values))
        _require_page(len(events), f"the stream has more than {EVENTS_MAX} events; give a limit")
        return events

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return up to `limit` events from position `start` to `stop`; with topics only these."""
        _require_types(topics)
        _require_page(limit, f"limit must be {EVENTS_MAX} or less")
        after = (start or 1) - 1 if inclusive_of_start else start or 0
        until = _POSITION_MAX if stop is None else stop
        return self._reader.read(
            lambda connection: _events_between(connection, after, until, topics, limit)
        )

    def max_notification_id(self) -> int | None:
        """Return the last position, or None for an empty log."""
        return self._reader.read(_head) or None

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> "LogSubscription":
        """Return an iterator over the events after `gt` that continues with new ones."""
        _require_types(topics)
        return LogSubscription(self, self._url, gt, topics)

    def close(self) -> None:
        self._reader.close()


class LogSubscription(Subscription[ApplicationRecorder]):
    """Iterator over events in order of position, and then new ones, with its own connection.

    One thread iterates; any thread may stop it.
    """

    def __init__(
        self, recorder: ApplicationRecorder, url: str, gt: int | None, topics: Sequence[str]
    ) -> None:
        super().__init__(recorder, gt, topics)
        self._reader = LogReader(url, listens=True)
        self._position = gt or 0
        self._page = deque[LogNotification]()

    def __next__(self) -> Notification:
        while not self._has_been_stopped:
            if self._page:
                return self._page.popleft()
            try:
                self._reader.read(self._read_page)
            except OperationalError:
                if not self._has_been_stopped:
                    raise
        self._reader.close()
        raise StopIteration

    def __exit__(self, *args: object, **kwargs: Any) -> None:
        super().__exit__(*args, **kwargs)
        self._reader.close()

    def stop(self) -> None:
        """End the iteration within `STOP_SECONDS_MAX`."""
        super().stop()
        self._reader.is_closing.set()

    def _read_page(self, connection: SyncLogConnection) -> None:
        # Everything up to the head was committed before the head was read.
        head = _head(connection)
        if head < self._position:
            raise ProgrammingError(
                f"the log ends at position {head}, and events up to {self._position} were already"
                " processed: it is another log or was put back; empty the projection's tables"
            )
        if head == self._position:
            self._await_growth(connection)
            return
        until = min(head, self._position + SCAN_POSITIONS_MAX)
        page = _events_between(connection, self._position, until, self._topics, PAGE_EVENTS)
        self._page.extend(page)
        self._position = page[-1].id if len(page) == PAGE_EVENTS else until

    def _await_growth(self, connection: SyncLogConnection) -> None:
        until = time.monotonic() + POLL_SECONDS
        while not self._has_been_stopped and time.monotonic() < until:
            for _ in connection.notifies(timeout=STOP_SECONDS_MAX, stop_after=1):
                return


class SpawnlogFactory(InfrastructureFactory[TrackingRecorder]):
    """Factory for `PERSISTENCE_MODULE=infrastructure.eventsourcing`."""

    _recorder: LogRecorder | None = None

    def application_recorder(self) -> LogRecorder:
        """Return a read-only recorder.

        Raises:
            OSError: The environment names no database.
            UserError: The database cannot be reached, or has no log of this release.
        """
        url = self.env.get(DATABASE_URL)
        if not url:
            raise OSError(f"set {DATABASE_URL} to the URL of the log's database: postgresql://…")
        if self._recorder is None:
            open_database(url, Path())
            self._recorder = LogRecorder(url)
        return self._recorder

    def mapper(self, *args: object, **kwargs: object) -> Any:  # noqa: ARG002
        """Return a mapper that decodes, for any mapper that the library requests."""
        return LogMapper()

    def aggregate_recorder(self, purpose: str = "events") -> NoReturn:  # noqa: ARG002
        """Refuse: the log is read-only."""
        raise _read_only_error()

    def tracking_recorder(self, tracking_recorder_class: object = None) -> NoReturn:  # noqa: ARG002
        """Refuse: a view needs tables of its own."""
        raise _read_only_error()

    def process_recorder(self) -> NoReturn:
        """Refuse: the log is read-only."""
        raise _read_only_error()

    def is_snapshotting_enabled(self) -> bool:
        """Return False: nothing can be stored here."""
        return False

    def close(self) -> None:
        """Close all connections except those of subscriptions."""
        if self._recorder is not None:
            self._recorder.close()


class Spawnlog(Application[str]):
    """spawnlog's log as an application to follow: `ProjectionRunner(application_class=Spawnlog)`.

    `name` is stored in tracking tables. For a second log, make a subclass with another name and set
    `<NAME>_SPAWNLOG_DATABASE_URL`.
    """

    name = "Spawnlog"

    def construct_factory(self, env: Environment) -> SpawnlogFactory:
        """Return the factory of the log, whichever persistence module the projection uses."""
        return SpawnlogFactory(env)


@cache
def _logged_types() -> dict[tuple[str, int], type[Event]]:
    return {
        key: FactType(
            kind.__name__,
            (kind, LoggedEvent),
            {"__module__": __name__, "__annotations__": _ADDED, **dict.fromkeys(_ADDED)},
        )
        for key, kind in EVENT_TYPES.items()
    }


def _head(connection: SyncLogConnection) -> int:
    row = connection.execute("SELECT coalesce(max(position), 0) FROM log_head").fetchone()
    assert row is not None
    return int(row[0])


def _events_between(
    connection: SyncLogConnection, after: int, until: int, types: Sequence[str], limit: int
) -> list[LogNotification]:
    condition = " AND type = ANY(%s::text[])" if types else ""
    query = (
        f"SELECT {_COLUMNS} FROM events WHERE position > %s AND position <= %s{condition}"
        " ORDER BY position LIMIT %s"
    )
    return _notifications(
        connection, query, [after, until, *([list(types)] if types else []), limit]
    )


def _notifications(
    connection: SyncLogConnection, query: str, values: Sequence[Any]
) -> list[LogNotification]:
    rows = connection.execute(query, values, binary=True).fetchall()
    return [LogNotification(row[0], row[1], row[2], bytes(row[3]), row[4], row[5]) for row in rows]


def _require_types(topics: Sequence[str]) -> None:
    unknown = sorted(set(topics) - _TYPE_NAMES)
    if unknown:
        raise ProgrammingError(
            f"'{unknown[0]}' is no type of event; topics are names such as 'SpawnRequested'"
        )


def _require_page(events: int, advice: str) -> None:
    if events > EVENTS_MAX:
        raise ProgrammingError(advice)


def _read_only_error() -> NotSupportedError:
    return NotSupportedError(
        "spawnlog's log is read-only for the library: give projections and applications that store"
        " something a PERSISTENCE_MODULE and a database of their own, and record runs by spawnlog"
    )


def _reason(error: psycopg.Error) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
