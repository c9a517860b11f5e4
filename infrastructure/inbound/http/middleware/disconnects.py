"""A connection that an application may drop, and of which it may ask whether the caller is there.

To close a connection is to wait until its reader has taken what was written, and a reader that
does not read never does. And to hear by ASGI that a caller left takes a task for each request. So
applications find the connection of a request in `scope["extensions"]`.
"""

import asyncio
from asyncio import Transport
from collections.abc import Callable, Coroutine, MutableMapping
from typing import Any, TypeVar, cast

from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

EXTENSION = "spawnlog.connection"
JOINED_BYTES_MAX = 64 * 1024
"""A body of no more than this is copied behind its head."""


T = TypeVar("T")


class _WholeAnswer:
    """Transport of one answer. It writes a head that tells the length of the body together with
    that: each write is a system call, and wakes the caller."""

    def __init__(self, cycle: RequestResponseCycle, transport: Transport) -> None:
        self._cycle: RequestResponseCycle | None = cycle
        self._transport = transport
        self._head = b""
        self.close = transport.close
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Write a part of the answer."""
        cycle = self._cycle
        if cycle is None:
            if self._head:
                data, self._head = self._head + data, b""
        elif cycle.response_started:
            # Before that comes the leave to send a body.
            self._cycle = None
            has_body = cycle.scope["method"] != "HEAD"
            if has_body and 0 < cycle.expected_content_length <= JOINED_BYTES_MAX:
                self._head = data
                return
        self._transport.write(data)


class DroppableConnection(HttpToolsProtocol):
    """For `uvicorn.Config(http=...)`.

    Attributes:
        is_reserved: True if it uses one of the files that are kept free.
        on_lost: Called when the connection is lost, if it is not None.
    """

    is_reserved = False
    on_lost: Callable[[], None] | None = None

    def on_header(self, name: bytes, value: bytes) -> None:
        """The parser leaves the blanks behind a value, which are no part of it (RFC 9110, 5.5)."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Show the connection to the application, before it is called."""
        self.scope["extensions"] = {EXTENSION: self}  # type: ignore[dict-item]
        super().on_headers_complete()
        self.cycle.transport = cast("Transport", _WholeAnswer(self.cycle, self.transport))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits for that."""
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()

    def drop(self) -> None:
        """Close the connection as it is."""
        self.transport.abort()

    def watch(self) -> Callable[[], bool]:
        """Return what tells whether the caller is there. Call this when the body was read."""
        # Reading pauses behind a large body, and who does not read hears of no end.
        self.flow.resume_reading()
        return lambda: not self.transport.is_closing()


def _connection_of(scope: MutableMapping[str, Any]) -> DroppableConnection | None:
    connection: DroppableConnection | None = scope.get("extensions", {}).get(EXTENSION)
    return connection


def connection_dropper(scope: MutableMapping[str, Any]) -> Callable[[], None] | None:
    """What drops the connection of a request; None when its server offers nothing like it."""
    connection = _connection_of(scope)
    return connection.drop if connection is not None else None


def uses_reserved_file(scope: MutableMapping[str, Any]) -> bool:
    """Return True if the connection of a request uses one of the files that are kept free."""
    connection = _connection_of(scope)
    return connection is not None and connection.is_reserved


def presence_check(scope: MutableMapping[str, Any]) -> Callable[[], bool]:
    """What tells whether the caller of a request still listens; asked for when its body was read.
    Where the server offers nothing like it, the caller is believed to be there."""
    connection = _connection_of(scope)
    return connection.watch() if connection is not None else lambda: True


async def while_present(scope: MutableMapping[str, Any], answer: Coroutine[Any, Any, T]) -> T:
    """Return what is awaited. If the caller of a request leaves first, cancel it: a wait takes up
    to a minute. Call this when the body was read.

    Raises:
        ClientDisconnect: The caller has left.
    """
    connection, task = _connection_of(scope), asyncio.current_task()
    if connection is None or task is None:
        return await answer
    has_left = False

    def leave() -> None:
        nonlocal has_left
        has_left = True
        task.cancel()

    if not connection.watch()():
        answer.close()
        raise ClientDisconnect
    connection.on_lost = leave
    try:
        return await answer
    except asyncio.CancelledError:
        # Any other cancellation is of a server that stops.
        if has_left and task.uncancel() == 0:
            raise ClientDisconnect from None
        raise
    finally:
        connection.on_lost = None
