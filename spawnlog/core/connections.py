"""Kept connections to a server of this machine, on which whole answers are read.

Between two programs of one machine there is no proxy and no certificate, and what else a library of
HTTP does for a request takes longer than the way: here is what remains, a request that is written,
and an answer that the parser of the server itself takes apart.
"""

import asyncio
import contextlib
import socket
import threading
import time
from urllib.parse import urlsplit

import httptools
import httpx2

from spawnlog.core.answer import AnswerContent, Reply
from spawnlog.core.errors import ForeignAnswer
from spawnlog.core.wire import CONNECT_SECONDS, CONNECTIONS_IDLE_MAX, CONNECTIONS_MAX

IDLE_SECONDS_MAX = 5.0
"""A server that lets go of a connection does so later: a request is not sent into one that ends."""

HEAD_BYTES_MAX = 128 * 1024
READ_BYTES = 256 * 1024


class Connections:
    """The connections of one client that blocks, shared by threads. Failures are those of
    httpx2."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._room = threading.BoundedSemaphore(CONNECTIONS_MAX)
        self._lock = threading.Lock()
        self._open: set[_BlockingConnection] = set()
        self._idle: list[_BlockingConnection] = []
        self._is_closed = False

    def reply(self, message: bytes, seconds: float) -> Reply:
        """The reply to a request as it stands on the wire, in which the server is silent for so
        many seconds at most."""
        with self._room:
            connection = self._kept() or self._connected(seconds)
            try:
                reply = connection.ask(message, seconds)
            except BaseException:
                # What comes on it now is the answer to a request that nobody waits for.
                self._cut(connection)
                raise
            with self._lock:
                has_room = len(self._idle) < CONNECTIONS_IDLE_MAX and not self._is_closed
                is_kept = connection.can_be_kept and has_room
                if is_kept:
                    self._idle.append(connection)
            if not is_kept:
                self._cut(connection)
            return reply

    def close(self) -> None:
        """Cut all connections, also those that another thread waits on."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
            waiting = self._open.difference(idle)
        for connection in idle:
            self._cut(connection)
        for connection in waiting:
            connection.interrupt()

    def _kept(self) -> "_BlockingConnection | None":
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.is_usable():
                return connection
            self._cut(connection)

    def _cut(self, connection: "_BlockingConnection") -> None:
        with self._lock:
            self._open.discard(connection)
        connection.cut()

    def _connected(self, seconds: float) -> "_BlockingConnection":
        try:
            opened = socket.create_connection(
                (self._host, self._port), min(CONNECT_SECONDS, seconds)
            )
        except TimeoutError:
            raise httpx2.ConnectTimeout("nobody took the connection") from None
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from None
        connection = _BlockingConnection(opened)
        with self._lock:
            self._open.add(connection)
        return connection


class _BlockingConnection:
    """One connection, on which one answer after the other is waited for."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answer = _ParsedAnswer()
        self._heard_at = time.monotonic()

    @property
    def can_be_kept(self) -> bool:
        """Whether another request can be sent on it."""
        return self._answer.keeps

    def is_usable(self) -> bool:
        """Whether nothing was said on it since its last answer, and it has not ended."""
        if time.monotonic() - self._heard_at >= IDLE_SECONDS_MAX:
            return False
        self._socket.setblocking(False)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def ask(self, message: bytes, seconds: float) -> Reply:
        """The reply to a request."""
        answer = self._answer = _ParsedAnswer()
        self._socket.settimeout(seconds)
        try:
            self._socket.sendall(message)
            while not answer.is_whole:
                data = self._socket.recv(READ_BYTES)
                if data:
                    answer.feed(data)
                elif answer.ends_with_connection:
                    answer.keeps = False
                    break
                else:
                    raise httpx2.ReadError("it ended before the answer was whole")
        except TimeoutError:
            raise httpx2.ReadTimeout("nothing was heard") from None
        except OSError as error:
            raise httpx2.ReadError(str(error)) from None
        finally:
            answer.end()
        self._heard_at = time.monotonic()
        return answer.reply()

    def interrupt(self) -> None:
        """End it from another thread: who waits on it is told at once."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Let go of it."""
        self._socket.close()


class AsyncConnections:
    """The connections of one client. Failures are those of httpx2."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._room = asyncio.Semaphore(CONNECTIONS_MAX)
        self._open: set[_OpenConnection] = set()
        self._idle: list[_OpenConnection] = []

    async def reply(self, message: bytes, seconds: float) -> Reply:
        """The reply to a request as it stands on the wire, in which the server is silent for so
        many seconds at most."""
        async with self._room:
            connection = self._kept() or await self._connected(seconds)
            try:
                reply = await connection.ask(message, seconds)
            except BaseException:
                # What comes on it now is the answer to a request that nobody waits for.
                connection.cut()
                raise
            if connection.can_be_kept and len(self._idle) < CONNECTIONS_IDLE_MAX:
                self._idle.append(connection)
            else:
                connection.cut()
            return reply

    async def close(self) -> None:
        """Cut all connections, also those that are waited on."""
        loop = asyncio.get_running_loop()
        left = [one for one in self._open if one.loop is loop]
        for connection in left:
            connection.cut()
        self._idle.clear()
        await asyncio.gather(*(one.lost for one in left))

    def _kept(self) -> "_OpenConnection | None":
        loop = asyncio.get_running_loop()
        while self._idle:
            connection = self._idle.pop()
            if connection.loop is not loop:
                continue
            if connection.can_be_kept and loop.time() - connection.heard_at < IDLE_SECONDS_MAX:
                return connection
            connection.cut()
        return None

    async def _connected(self, seconds: float) -> "_OpenConnection":
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(min(CONNECT_SECONDS, seconds)):
                _, connection = await loop.create_connection(
                    lambda: _OpenConnection(self._open), self._host, self._port
                )
        except TimeoutError:
            raise httpx2.ConnectTimeout("nobody took the connection") from None
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from None
        return connection


class _OpenConnection(asyncio.Protocol):
    """One connection, on which one answer after the other is read."""

    def __init__(self, among: "set[_OpenConnection]") -> None:
        self._among = among
        self.loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = self.loop.create_future()
        self.heard_at = self.loop.time()
        self._answer = _ParsedAnswer()
        self._whole: asyncio.Future[None] | None = None

    @property
    def can_be_kept(self) -> bool:
        """Whether another request can be sent on it, when none is under way."""
        return self._answer.keeps and not self.lost.done() and not self._transport.is_closing()

    def cut(self) -> None:
        """Let go of it at once."""
        self._transport.abort()

    async def ask(self, message: bytes, seconds: float) -> Reply:
        """The reply to a request."""
        answer = self._answer = _ParsedAnswer()
        self._whole = self.loop.create_future()
        self.heard_at = self.loop.time()
        watch = self.loop.call_later(seconds, self._look, self._whole, seconds)
        self._transport.write(message)
        try:
            await self._whole
        finally:
            watch.cancel()
            self._whole = None
            answer.end()
        return answer.reply()

    def _look(self, whole: "asyncio.Future[None]", seconds: float) -> None:
        left = self.heard_at + seconds - self.loop.time()
        if whole.done():
            return
        if left <= 0:
            self._fail(httpx2.ReadTimeout("nothing was heard"))
        else:
            self.loop.call_later(left, self._look, whole, seconds)

    def _fail(self, error: Exception) -> None:
        if self._whole is not None and not self._whole.done():
            self._whole.set_exception(error)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio says so."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._among.add(self)

    def data_received(self, data: bytes) -> None:
        """asyncio says so."""
        if self._whole is None:
            # Nobody asked.
            self._answer.keeps = False
            return
        self.heard_at = self.loop.time()
        try:
            self._answer.feed(data)
        except (httpx2.HTTPError, ForeignAnswer) as error:
            self._fail(error)
            return
        if self._answer.is_whole and not self._whole.done():
            self._whole.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio says so."""
        self._among.discard(self)
        self.lost.set_result(None)
        if self._whole is None or self._whole.done():
            return
        if exc is None and self._answer.ends_with_connection:
            self._whole.set_result(None)
        else:
            reason = str(exc) if exc is not None else "it ended before the answer was whole"
            self._fail(httpx2.ReadError(reason))


class _ParsedAnswer:
    """One answer, as its parser tells of it."""

    def __init__(self) -> None:
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._head_bytes = 0
        self._status = 0
        self._headers: dict[str, str] = {}
        self._content = AnswerContent()
        self._has_head = False
        self.is_whole = False
        self.keeps = False

    def feed(self, data: bytes) -> None:
        """What came next. An error of httpx2 or ForeignAnswer when that is no answer."""
        assert self._parser is not None
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.keeps = False
            if not self.is_whole:
                raise _reason(error) from None
        if not self._has_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                raise httpx2.RemoteProtocolError("the head of the answer is too long")

    def end(self) -> None:
        """Nothing more is read: parser and answer let go of each other."""
        self._parser = None

    def reply(self) -> Reply:
        """All of it, when it is whole."""
        return Reply(self._status, self._headers, self._content.whole())

    @property
    def ends_with_connection(self) -> bool:
        """Whether nothing but the end of the connection says that it is whole."""
        told = "content-length" in self._headers or "transfer-encoding" in self._headers
        return self._has_head and not told

    def on_message_begin(self) -> None:
        """More than one answer to one request: what follows belongs to none."""
        if self.is_whole:
            self.keeps = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        if not self.is_whole:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is whole."""
        if self._parser is not None and not self.is_whole:
            self._status = self._parser.get_status_code()
            self.keeps = self._parser.should_keep_alive()
            self._has_head = True

    def on_body(self, body: bytes) -> None:
        """Some of the body. ForeignAnswer when it is too much."""
        if not self.is_whole:
            self._content.add(body)

    def on_message_complete(self) -> None:
        """The answer is whole, unless it says that another one comes."""
        if 100 <= self._status < 200:
            self._headers.clear()
            self._has_head = False
        else:
            self.is_whole = True


def _reason(error: Exception) -> Exception:
    if isinstance(error.__context__, ForeignAnswer):
        return error.__context__
    return httpx2.RemoteProtocolError("that is no answer of HTTP")
