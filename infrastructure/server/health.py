"""Readiness of a server, its host names, and its name as a holder of leases."""

import os
import socket
from collections.abc import Callable
from uuid import uuid4

from application.commands.services import Readiness
from application.concurrency.tasks import with_timeout
from application.log.event_log import LogUnavailableError
from domain.configuration.settings import Settings
from infrastructure.outbound.log.postgres_log import PostgresLog
from infrastructure.outbound.log.schema.format import UnknownFormatError

ANSWER_SECONDS_MAX = 2.0
LAG_EVENTS_MAX = 10_000


class ReadinessCheck:
    """Readiness of a server, checked at each call: database, tail, and writes.

    `closing` returns True while the service is stopping.
    """

    def __init__(self, log: PostgresLog, closing: Callable[[], bool]) -> None:
        self._log = log
        self._closing = closing

    async def __call__(self) -> Readiness:
        """Return whether the server is ready, with the reasons if it is not."""
        if self._closing():
            return Readiness(False, ("the service is stopping",))
        if self._log.tail.failure is not None:
            return Readiness(False, ("the log cannot be followed; see the server's log",))
        try:
            head = await with_timeout(self._log.known_head(), ANSWER_SECONDS_MAX)
        except (TimeoutError, LogUnavailableError):
            return Readiness(False, ("the database does not respond",))
        except UnknownFormatError as newer:
            return Readiness(False, (str(newer),))
        try:
            await with_timeout(self._log.require_answering_writer(), ANSWER_SECONDS_MAX)
            await with_timeout(self._log.require_writable(), ANSWER_SECONDS_MAX)
        except TimeoutError:
            return Readiness(False, ("nothing can be recorded: the database does not respond",))
        except LogUnavailableError as why:
            return Readiness(False, (f"nothing can be recorded: {why}",))
        lag = head - self._log.tail.position
        if lag > LAG_EVENTS_MAX:
            return Readiness(False, (f"the tail is {lag} events behind the log",))
        return Readiness(True, ())


async def answers(log: PostgresLog) -> bool:
    """Return True if the database answers a read soon."""
    try:
        await with_timeout(log.head(), ANSWER_SECONDS_MAX)
    except (TimeoutError, LogUnavailableError):
        return False
    return True


LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})


def holder_name() -> str:
    """Return a name that is unique for this process and this call."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


def hosts_of(settings: Settings) -> frozenset[str]:
    """Return the host names by which the server may be addressed."""
    names = {settings.host, *settings.allowed_hosts}
    if settings.is_loopback or settings.host in ("0.0.0.0", "::"):  # noqa: S104
        names |= LOOPBACK_NAMES
    return frozenset(names)
