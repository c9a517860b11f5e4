"""By which names a server is known: to the log as a holder, to callers as a host."""

import os
import socket
from uuid import uuid4

from domain.configuration.settings import Settings

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})


def holder_name() -> str:
    """A name that no other process has, nor this one again."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


def hosts_of(settings: Settings) -> frozenset[str]:
    """The names by which the server may be addressed."""
    names = {settings.host, *settings.allowed_hosts}
    if settings.is_loopback or settings.host in ("0.0.0.0", "::"):  # noqa: S104
        names |= LOOPBACK_NAMES
    return frozenset(names)
