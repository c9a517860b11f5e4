"""Servers whose log is whole afterwards, and whose tables are what the events say."""

from collections.abc import Callable, Iterator

from tests.support.servers.running_server import RunningServer

Serve = Callable[..., RunningServer]
"""Starts a server with these agents, and these defaults of subagents."""


def faults_of_log(server: RunningServer) -> Iterator[str]:
    """Verify and rebuild the log of a server that has stopped, and print how much it was. Yields
    what a command found."""
    for order in ("verify", "rebuild"):
        done = server.log_command(order)
        if done.returncode != 0:
            yield f"log {order}: {done.stdout}{done.stderr}"
        else:
            print(f"log {order}: {done.stdout.strip()}")


def must_be_whole(server: RunningServer) -> None:
    """Goes through all that a server recorded, once it has stopped."""
    assert list(faults_of_log(server)) == []
    assert " ERROR " not in server.log(), server.log()
