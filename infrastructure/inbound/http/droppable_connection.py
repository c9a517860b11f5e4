"""A connection that an application may drop.

To close a connection is to wait until its reader has taken what was written, and a reader that
does not read never does. So applications find in `scope["extensions"]` how to drop it as it is.
"""

from collections.abc import Callable, MutableMapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

EXTENSION = "spawnlog.drop"


class DroppableConnection(HttpToolsProtocol):
    """For `uvicorn.Config(http=...)`."""

    def on_headers_complete(self) -> None:
        """Tell the application how, before it is called."""
        self.scope["extensions"] = {EXTENSION: {"drop": self.transport.abort}}
        super().on_headers_complete()


def drop_of(scope: MutableMapping[str, Any]) -> Callable[[], None] | None:
    """What drops the connection of a request; None when its server offers nothing like it."""
    drop: Callable[[], None] | None = scope.get("extensions", {}).get(EXTENSION, {}).get("drop")
    return drop
