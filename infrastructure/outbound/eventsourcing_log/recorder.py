"""The recorders of an application: its events are the log of its schema."""

from collections.abc import Callable, Sequence
from time import sleep
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from eventsourcing.persistence import (
    ApplicationRecorder,
    DataError,
    InterfaceError,
    Notification,
    OperationalError,
    ProcessRecorder,
    ProgrammingError,
    StoredEvent,
    Subscription,
    Tracking,
)
from eventsourcing.postgres import PostgresRecorder, PostgresTrackingRecorder
from psycopg.rows import DictRow

from infrastructure.outbound.eventsourcing_log.append import Addition, append
from infrastructure.outbound.eventsourcing_log.read import (
    Streams,
    head_of,
    must_be_storable,
    read_events,
    read_notifications,
)
from infrastructure.outbound.eventsourcing_log.settings import LogDatastore
from infrastructure.outbound.eventsourcing_log.subscription import LogSubscription
from infrastructure.outbound.identity.identifiers import RandomIdentities

ATTEMPTS_MAX = 10
ATTEMPT_PAUSE_SECONDS = 0.2
APPEND_EVENTS_MAX = 50_000

RecorderConnection = psycopg.Connection[DictRow]
T = TypeVar("T")


class LogApplicationRecorder(PostgresRecorder, ApplicationRecorder):
    """Implements the library's `ApplicationRecorder` over a log.

    Notification ids are positions: 1, 2, 3 … without gaps, in the order of the commits. Errors are
    the library's own (`eventsourcing.persistence`). What a lost connection has interrupted is tried
    again on another one; an append that was committed before is then found, not repeated.
    """

    def __init__(self, datastore: LogDatastore, **kwargs: Any) -> None:
        super().__init__(datastore, **kwargs)
        self._store = datastore
        self._streams = Streams(datastore.originator_id_type)

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Append all events or none; gives their positions, None when there are no events.

        `IntegrityError` when a version is not the next one of its stream; `OperationalError` when
        the database stays away or others hold the log for longer than POSTGRES_LOCK_TIMEOUT.
        """
        if not stored_events:
            return self._with_retries(lambda _: self._insert_alone(**kwargs))
        addition = self._addition(stored_events)
        return self._with_retries(lambda attempt: self._insert(addition, attempt, **kwargs))

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Events of one originator with versions above `gt` and up to `lte`."""
        return self._read(
            lambda connection: read_events(
                connection, self._streams, originator_id, gt=gt, lte=lte, desc=desc, limit=limit
            )
        )

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Events from position `start` (or behind it) up to `stop`, of these topics if any."""
        return self._read(
            lambda connection: read_notifications(
                connection,
                self._streams,
                start=start,
                stop=stop,
                limit=limit,
                topics=topics,
                inclusive_of_start=inclusive_of_start,
            )
        )

    def max_notification_id(self) -> int | None:
        """The last position; None for an empty log."""
        return self._read(head_of) or None

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Every event behind `gt`, and then those to come."""
        return LogSubscription(self, self._store, gt=gt, topics=topics)

    def insert_beside(self, connection: RecorderConnection, **kwargs: Any) -> None:  # noqa: ARG002
        """Write what came with the events (`app.save(…, name=value)`), in their transaction.

        A subclass named by APPLICATION_RECORDER_TOPIC may know more; this one knows nothing.
        """
        unknown = [name for name, given in kwargs.items() if given is not None]
        if unknown:
            raise ProgrammingError(f"this recorder does not know {', '.join(sorted(unknown))}")

    def _insert(self, addition: Addition, attempt: int, **kwargs: Any) -> Sequence[int]:
        with self._store.get_connection() as connection:
            return append(
                connection,
                addition,
                channel=self._store.channel,
                lock_timeout_seconds=self._store.lock_timeout,
                is_repeat=attempt > 0,
                beside=lambda given: self.insert_beside(given, **kwargs),
            )

    def _insert_alone(self, **kwargs: Any) -> None:
        with self._store.get_connection() as connection, connection.transaction():
            self.insert_beside(connection, **kwargs)

    def _addition(self, stored_events: Sequence[StoredEvent]) -> Addition:
        if len(stored_events) > APPEND_EVENTS_MAX:
            raise DataError(
                f"{len(stored_events)} events are too many for one append, which takes"
                f" {APPEND_EVENTS_MAX}; save in between"
            )
        for event in stored_events:
            must_be_storable(event)
        streams = [self._streams.stream_of(event.originator_id) for event in stored_events]
        return Addition(streams, stored_events, RandomIdentities().event_id())

    def _read(self, ask: Callable[[RecorderConnection], T]) -> T:
        def attempted(_: int) -> T:
            with self._store.get_connection() as connection:
                return ask(connection)

        return self._with_retries(attempted)

    def _with_retries(self, attempted: Callable[[int], T]) -> T:
        attempt = 0
        while True:
            try:
                return attempted(attempt)
            except (InterfaceError, OperationalError) as error:
                attempt += 1
                is_locked = isinstance(error.__cause__, psycopg.errors.LockNotAvailable)
                if is_locked or self._store.is_closed or attempt >= ATTEMPTS_MAX:
                    raise
            sleep(ATTEMPT_PAUSE_SECONDS)


class LogProcessRecorder(PostgresTrackingRecorder, LogApplicationRecorder, ProcessRecorder):
    """Events in the log, and in the same transaction how far another application was followed.

    Tracking is in a table of the library's own making beside the log.
    """

    def insert_beside(self, connection: RecorderConnection, **kwargs: Any) -> None:
        """Note `tracking`, if it is given. `IntegrityError` when it was noted before."""
        tracking: Tracking | None = kwargs.pop("tracking", None)
        if tracking is not None:
            with connection.cursor() as cursor:
                self._insert_tracking(cursor, tracking)
        super().insert_beside(connection, **kwargs)
