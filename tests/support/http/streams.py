"""Reader of server-sent events that can be polled and closed."""

import contextlib
import json
import queue
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import parse_headers
from types import TracebackType
from typing import Any, Self

from tests.support.http.wire import Authority, head

SECONDS_MAX = 20.0


@dataclass(frozen=True)
class Frame:
    """One event as it came; a comment has only its text."""

    id: str | None = None
    event: str | None = None
    data: Any = None
    comment: str | None = None


class StreamReader:
    """Reader of a stream in a thread, from entry on; leaving closes the connection."""

    def __init__(
        self, url: str, target: str, token: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self._authority = Authority.of(url)
        self._request = head(
            "GET",
            target,
            {
                "Host": "127.0.0.1",
                "Authorization": f"Bearer {token}",
                "Accept": "text/event-stream",
                **(headers or {}),
            },
        )
        self._frames: queue.Queue[Frame | None] = queue.Queue()
        self.headers: dict[str, str] = {}
        self.status = 0

    def __enter__(self) -> Self:
        self._connection = self._authority.connect()
        self._connection.sendall(self._request)
        self._file = self._connection.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers = {
            name.lower(): str(value) for name, value in parse_headers(self._file).items()
        }
        self._connection.settimeout(None)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Close the connection; repeating it changes nothing."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._file.close()
        self._connection.close()

    def _read(self) -> None:
        try:
            rest = b""
            while size := int(self._file.readline() or b"0", 16):
                *whole, rest = (rest + self._file.read(size)).split(b"\n\n")
                self._file.read(2)
                for text in whole:
                    self._take(text.decode())
        except OSError:
            pass
        finally:
            self._frames.put(None)

    def _take(self, text: str) -> None:
        fields = dict(line.split(": ", 1) for line in text.split("\n"))
        data = json.loads(fields["data"]) if "data" in fields else None
        self._frames.put(Frame(fields.get("id"), fields.get("event"), data, fields.get("")))

    def frame(self, seconds: float = SECONDS_MAX) -> Frame | None:
        """Return the next frame of any kind, or None if the stream has ended."""
        try:
            return self._frames.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"nothing came for {seconds} s") from None

    def event(self) -> Frame:
        """Return the next frame that is not a comment."""
        while True:
            frame = self.frame()
            assert frame is not None, "the stream has ended"
            if frame.event is not None:
                return frame

    def until(self, wanted: Callable[[Frame], bool]) -> list[Frame]:
        """Return every event up to and including the first that is wanted."""
        frames = [self.event()]
        while not wanted(frames[-1]):
            frames.append(self.event())
        return frames

    def ends(self, seconds: float = SECONDS_MAX) -> None:
        """Wait until the server has ended the stream."""
        while self.frame(seconds) is not None:
            pass
