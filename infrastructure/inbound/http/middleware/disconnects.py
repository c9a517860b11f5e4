"""Connections that an application can drop and query for the caller's presence.

Closing a connection waits until its reader has taken the written data, and a reader that does not
read never does. Learning by ASGI that the caller left takes a task for each request. So
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
"""A body of at most this size is written together with its head."""


T = TypeVar("T")


class _WholeAnswer:
    """Transport of one answer that writes its head together with a body of known length.

    Each write is a system call and wakes the caller.
    """

    def __init__(self, cycle: RequestResponseCycle, transport: Transport) -> None:
        self._cycle: RequestResponseCycle | None = cycle
        self._transport = transport
        self._head = b""
        self.close = transport.close
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Write a part of the answer, or hold back its head for the next part."""
        cycle = self._cycle
        if cycle is None:
            if self._head:
                data, self._head = self._head + data, b""
        elif cycle.response_started:
            # Data before the response starts is `100 Continue`.
            self._cycle = None
            has_body = cycle.scope["method"] != "HEAD"
            if has_body and 0 < cycle.expected_content_length <= JOINED_BYTES_MAX:
                self._head = data
                return
        self._transport.write(data)


class DroppableConnection(HttpToolsProtocol):
    """HTTP protocol for `uvicorn.Config(http=...)`, whose connection can be dropped.

    Attributes:
        is_reserved: True if it uses one of the files that are kept free.
        on_lost: Callback for the loss of the connection, or None.
    """

    is_reserved = False
    on_lost: Callable[[], None] | None = None

    def on_header(self, name: bytes, value: bytes) -> None:
        """Strip blanks after a value. The parser leaves them; RFC 9110, 5.5 excludes them."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Make the connection available to the application, before it is called."""
        self.scope["extensions"] = {EXTENSION: self}  # type: ignore[dict-item]
        super().on_headers_complete()
        self.cycle.transport = cast("Transport", _WholeAnswer(self.cycle, self.transport))

    def connection_lost(self, exc: Exception | None) -> None:
        """Call `on_lost`, if it is set."""
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()

    def drop(self) -> None:
        """Close the connection without flushing."""
        self.transport.abort()

    def watch(self) -> Callable[[], bool]:
        """Return a function that returns False once the caller has left.

        Call this after the body was read.
        """
        # Reading pauses after a large body, and a paused connection does not notice its end.
        self.flow.resume_reading()
        return lambda: not self.transport.is_closing()


def _connection_of(scope: MutableMapping[str, Any]) -> DroppableConnection | None:
    connection: DroppableConnection | None = scope.get("extensions", {}).get(EXTENSION)
    return connection


def connection_dropper(scope: MutableMapping[str, Any]) -> Callable[[], None] | None:
    """Return a function that drops a request's connection, or None if the server has none."""
    connection = _connection_of(scope)
    return connection.drop if connection is not None else None


def uses_reserved_file(scope: MutableMapping[str, Any]) -> bool:
    """Return True if the request's connection uses one of the files that are kept free."""
    connection = _connection_of(scope)
    return connection is not None and connection.is_reserved


def presence_check(scope: MutableMapping[str, Any]) -> Callable[[], bool]:
    """Return a function that returns False once the caller of a request has left.

    Call this after the body was read. If the server does not support it, the caller is assumed to
    be there.
    """
    connection = _connection_of(scope)
    return connection.watch() if connection is not None else lambda: True


async def while_present(scope: MutableMapping[str, Any], answer: Coroutine[Any, Any, T]) -> T:
    """Await an answer. Cancel it if the caller leaves first, since a wait takes up to a minute.

    Call this after the body was read.

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
        # Any other cancellation is from a server that stops.
        if has_left and task.uncancel() == 0:
            raise ClientDisconnect from None
        raise
    finally:
        connection.on_lost = None
