"""Servers whose log is whole afterwards, and whose tables are what the events say."""

from collections.abc import Callable

from tests.support.servers.running_server import RunningServer

Serve = Callable[..., RunningServer]
"""Starts a server with these agents, and these defaults of subagents."""


def must_be_whole(server: RunningServer) -> None:
    """Goes through all that a server recorded, once it has stopped."""
    for order in ("verify", "rebuild"):
        done = server.log_command(order)
        assert done.returncode == 0, done.stdout + done.stderr
    assert " ERROR " not in server.log(), server.log()
