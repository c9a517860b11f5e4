"""A subscription: every event of the log behind a position, in order, and then those to come.

One thread follows the log on a connection of its own. It listens before it looks for the first
time, looks by itself now and then, and knows by the positions how far it is, so that nothing is
lost between two connections either.
"""

import logging
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any, Self

import psycopg
from eventsourcing.persistence import (
    ApplicationRecorder,
    Notification,
    OperationalError,
    PersistenceError,
    Subscription,
)
from psycopg.rows import DictRow

from infrastructure.outbound.eventsourcing_log.read import Streams, head_of, read_notifications
from infrastructure.outbound.eventsourcing_log.settings import LogDatastore

PAGE_NOTIFICATIONS = 500
PAGES_MAX = 10
POLL_SECONDS = 1.0
STOP_WITHIN_SECONDS = 0.1
RECONNECT_PAUSE_SECONDS = 0.25

_log = logging.getLogger("spawnlog.eventsourcing")


class LogSubscription(Subscription[ApplicationRecorder]):
    """Iterates over notifications; waits for the next one after the last.

    Its thread begins with the first use and ends with `stop()` or the end of the `with` block. A
    database that is away is waited for; what waiting cannot mend is raised to whoever iterates.
    """

    def __init__(
        self,
        recorder: ApplicationRecorder,
        datastore: LogDatastore,
        gt: int | None = None,
        topics: Sequence[str] = (),
    ) -> None:
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        self._datastore = datastore
        self._streams = Streams(datastore.originator_id_type)
        self._position = gt or 0
        self._pages: deque[Iterator[Notification]] = deque()
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._is_away = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        entered = super().__enter__()
        self._begin()
        return entered

    def __exit__(self, *args: object, **kwargs: Any) -> None:
        super().__exit__(*args, **kwargs)
        if self._thread is not None:
            self._thread.join()

    def stop(self) -> None:
        """End the iteration, from whichever thread; what was not delivered is dropped."""
        super().stop()
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()

    def __next__(self) -> Notification:
        self._begin()
        while True:
            with self._changed:
                while not (self._pages or self._failure or self._stopped.is_set()):
                    self._changed.wait()
                if self._stopped.is_set():
                    raise StopIteration
                if not self._pages:
                    assert self._failure is not None
                    raise self._failure
                for notification in self._pages[0]:
                    return notification
                self._pages.popleft()
                self._changed.notify_all()

    def _begin(self) -> None:
        with self._changed:
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(
                    target=self._follow, name="log subscription", daemon=True
                )
                self._thread.start()

    def _follow(self) -> None:
        try:
            while not self._stopped.is_set():
                try:
                    self._follow_on_a_connection()
                except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                    self._wait_for_the_database(error)
        except psycopg.Error as error:
            self._fail(PersistenceError(f"the log cannot be followed: {error}"))
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._failure = error
            self._changed.notify_all()

    def _follow_on_a_connection(self) -> None:
        with self._datastore.connect() as listener:
            listener.execute(f'LISTEN "{self._datastore.channel}"')
            while not self._stopped.is_set():
                self._catch_up(listener)
                self._is_away = False
                self._await_more(listener)

    def _catch_up(self, connection: psycopg.Connection[DictRow]) -> None:
        head = head_of(connection)
        while self._position < head and not self._stopped.is_set():
            page = read_notifications(
                connection,
                self._streams,
                start=self._position,
                stop=head,
                limit=PAGE_NOTIFICATIONS,
                topics=self._topics,
                inclusive_of_start=False,
            )
            if page:
                self._hand_over(page)
            # Everything up to the head was committed before the head was read.
            self._position = page[-1].id if len(page) == PAGE_NOTIFICATIONS else head

    def _hand_over(self, page: Sequence[Notification]) -> None:
        with self._changed:
            while len(self._pages) >= PAGES_MAX and not self._stopped.is_set():
                self._changed.wait()
            self._pages.append(iter(page))
            self._changed.notify_all()

    def _await_more(self, listener: psycopg.Connection[DictRow]) -> None:
        """Until a notification, the time to look anyway, the stop, or the end of the datastore."""
        until = monotonic() + POLL_SECONDS
        while not self._stopped.is_set() and monotonic() < until:
            self._must_be_open()
            for _ in listener.notifies(timeout=STOP_WITHIN_SECONDS, stop_after=1):
                return

    def _wait_for_the_database(self, error: psycopg.Error) -> None:
        self._must_be_open()
        if not self._is_away:
            _log.warning("a subscription has lost the database and goes on when it is back")
            _log.debug("it was: %s", error)
            self._is_away = True
        self._stopped.wait(RECONNECT_PAUSE_SECONDS)

    def _must_be_open(self) -> None:
        if self._datastore.is_closed:
            raise OperationalError(
                "the application was closed while it was subscribed to; stop the subscription first"
            )
