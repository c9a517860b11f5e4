"""Connections whose requests must arrive in time, and that keep files free for others.

The framework only limits how long a connection is idle between requests. A connection that sends
nothing, half a header, or a body byte by byte would stay open for ever. An endless target, header
or trailer would also fill memory.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from infrastructure.inbound.http.middleware.disconnects import DroppableConnection
from infrastructure.inbound.http.middleware.open_files import OpenFiles
from infrastructure.inbound.http.responses.problems import MEDIA_TYPE, HttpProblem

HEADERS_SECONDS_MAX = 10.0
"""From the start of a connection, or of a later request on it, to the end of the headers."""
REFUSED_HEADERS_SECONDS_MAX = 2.0
"""The same for a connection that uses a reserved file."""
BODY_SILENCE_SECONDS_MAX = 10.0
"""Maximum pause between two parts of a body while the server reads."""
BODY_SECONDS_MAX = 120.0
"""Maximum time of a whole body, without the time in which the server did not read."""
CHECK_SECONDS = 1.0
UNREAD_BYTES_MAX = 128 * 1024
"""Maximum bytes in a row without the end of the headers or a part of the body.

More than the target and headers may have when they are complete.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalLimits:
    """Limits on the arrival of a request: times, interval of checks, and bytes without progress."""

    headers_seconds: float = HEADERS_SECONDS_MAX
    refused_headers_seconds: float = REFUSED_HEADERS_SECONDS_MAX
    body_silence_seconds: float = BODY_SILENCE_SECONDS_MAX
    body_seconds: float = BODY_SECONDS_MAX
    check_seconds: float = CHECK_SECONDS
    unread_bytes: int = UNREAD_BYTES_MAX


class TimedConnection(DroppableConnection):
    """HTTP protocol for `uvicorn.Config(http=...)`. A request that arrives at once has no timer."""

    def __init__(
        self, *args: Any, files: OpenFiles, limits: ArrivalLimits | None = None, **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self._files = files
        self._limits = limits or ArrivalLimits()
        self._awaits: Literal["nothing", "headers", "body"] = "headers"
        self._began = self._heard = self.loop.time()
        self._check: asyncio.TimerHandle | None = None
        self._unread_bytes = 0
        self._is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, unless it would use the last files."""
        super().connection_made(transport)  # type: ignore[arg-type]
        number = transport.get_extra_info("socket").fileno()
        self.is_reserved = self._files.is_reserved(number)
        if self.is_reserved and self._files.is_last(number):
            self.transport.abort()
            return
        self._check_later()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._awaits = "nothing"
        if self._check is not None:
            self._check.cancel()

    def data_received(self, data: bytes) -> None:
        """Process a part of a request, and check that the rest arrives in time."""
        if self._is_refused:
            return
        self._heard = self.loop.time()
        if self._awaits == "nothing":
            self._awaits, self._began = "headers", self._heard
        self._unread_bytes += len(data)
        super().data_received(data)
        if self._unread_bytes > self._limits.unread_bytes and not self.transport.is_closing():
            self._refuse()
        if self._check is None and self._is_receiving:
            self._check_later()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._awaits, self._began = "headers", self._heard

    def on_headers_complete(self) -> None:
        self._awaits, self._began = "body", self._heard
        self._unread_bytes = 0
        super().on_headers_complete()
        if self.is_reserved:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._unread_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._awaits, self._unread_bytes = "nothing", 0
        super().on_message_complete()

    def _check_later(self) -> None:
        self._check = self.loop.call_later(self._limits.check_seconds, self._check_progress)

    def _check_progress(self) -> None:
        self._check = None
        if not self._is_receiving or self.transport.is_closing():
            return
        if self._is_held_up:
            # The time in which the server itself does not read, or still answers, does not count.
            self._began += self._limits.check_seconds
            self._heard = self.loop.time()
        elif self._is_too_slow:
            self._end()
            return
        self._check_later()

    @property
    def _is_receiving(self) -> bool:
        return self._awaits != "nothing"

    @property
    def _is_held_up(self) -> bool:
        cycle = self.cycle
        if self._is_refused:
            return False
        if self.flow.read_paused:
            return True
        if cycle is None or cycle.response_complete:
            return False
        return self._awaits == "headers" or cycle.response_started

    @property
    def _is_too_slow(self) -> bool:
        now, limits = self.loop.time(), self._limits
        if self._awaits == "headers":
            usual, refused = limits.headers_seconds, limits.refused_headers_seconds
            return now - self._began > (refused if self.is_reserved else usual)
        is_silent = now - self._heard > limits.body_silence_seconds
        return is_silent or now - self._began > limits.body_seconds

    def _end(self) -> None:
        """Answer a request whose headers arrived but which has no answer yet, then close."""
        if self._awaits == "headers" or self.cycle.response_complete:
            self.transport.abort()
            return
        limits = self._limits
        text = (
            f"the request body timed out: at most {limits.body_seconds:g} s in total and"
            f" {limits.body_silence_seconds:g} s between two parts; send it again"
        )
        self._send_problem(HttpProblem("too_slow", text))
        self.transport.close()

    def _refuse(self) -> None:
        """Refuse a request with too many bytes without progress.

        The connection is closed without an answer if the request was answered, or if it or the one
        before it is being answered. Otherwise later data is discarded, so that the caller reads the
        answer.
        """
        cycle = self.cycle
        if cycle is not None and (
            self._awaits == "body"
            if cycle.response_complete
            else self._awaits == "headers" or cycle.response_started
        ):
            self.transport.abort()
            return
        text = (
            "the URL and headers of a request, and data between body parts, may have at most"
            f" {self._limits.unread_bytes} bytes; send less"
        )
        self._send_problem(HttpProblem("headers_too_large", text))
        self.transport.write_eof()
        self._is_refused, self._awaits, self._began = True, "headers", self.loop.time()
        if cycle is not None:
            # As when the caller leaves: nothing more is written.
            cycle.disconnected = True
            cycle.message_event.set()

    def _send_problem(self, problem: HttpProblem) -> None:
        # Before the first request there is no scope, whatever its type says.
        scope = cast("Mapping[str, Any] | None", self.scope) or {}
        body = orjson.dumps(problem.body(scope.get("path", "/")))
        self.transport.write(
            STATUS_LINE[problem.status]
            + f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n".encode()
            + b"connection: close\r\n\r\n"
            + body
        )
