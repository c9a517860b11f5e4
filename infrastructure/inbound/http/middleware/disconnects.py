"""A connection that an application may drop, and of which it may ask whether the caller is there.

To close a connection is to wait until its reader has taken what was written, and a reader that
does not read never does. And to hear by ASGI that a caller left takes a task for each request. So
applications find in `scope["extensions"]` how to drop a connection as it is, and how to look.
"""

from collections.abc import Callable, MutableMapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

EXTENSION = "spawnlog.connection"


class DroppableConnection(HttpToolsProtocol):
    """For `uvicorn.Config(http=...)`."""

    def on_header(self, name: bytes, value: bytes) -> None:
        """The parser leaves the blanks behind a value, which are no part of it (RFC 9110, 5.5)."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Tell the application how, before it is called."""
        self.scope["extensions"] = {
            EXTENSION: {"drop": self.transport.abort, "watch": self._watched}
        }
        super().on_headers_complete()

    def _watched(self) -> Callable[[], bool]:
        # Reading pauses behind a large body, and who does not read hears of no end.
        self.flow.resume_reading()
        return lambda: not self.transport.is_closing()


def connection_dropper(scope: MutableMapping[str, Any]) -> Callable[[], None] | None:
    """What drops the connection of a request; None when its server offers nothing like it."""
    drop: Callable[[], None] | None = scope.get("extensions", {}).get(EXTENSION, {}).get("drop")
    return drop


def uses_reserved_file(scope: MutableMapping[str, Any]) -> bool:
    """Return True if the connection of a request uses one of the files that are kept free."""
    extension = scope.get("extensions", {}).get(EXTENSION, {})
    return bool(extension.get("is_reserved", False))


def presence_check(scope: MutableMapping[str, Any]) -> Callable[[], bool]:
    """What tells whether the caller of a request still listens; asked for when its body was read.
    Where the server offers nothing like it, the caller is believed to be there."""
    watch = scope.get("extensions", {}).get(EXTENSION, {}).get("watch")
    is_there: Callable[[], bool] = watch() if watch is not None else _assume_present
    return is_there


def _assume_present() -> bool:
    return True
