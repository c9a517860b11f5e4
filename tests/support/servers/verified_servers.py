"""Servers whose log is whole afterwards, and whose tables are what the events say."""

import subprocess
import sys
from collections.abc import Callable

from tests.support.servers.running_server import RunningServer

MAIN = "infrastructure.inbound.command_line.main"
Serve = Callable[..., RunningServer]


"""Starts a server with these agents, and these defaults of subagents."""


def must_be_whole(server: RunningServer) -> None:
    """Goes through all that a server recorded, once it has stopped."""
    for order in ("verify", "rebuild"):
        done = subprocess.run(
            [sys.executable, "-m", MAIN, "log", order, "--data-dir", str(server.data_dir)],
            capture_output=True,
            text=True,
            check=False,
            cwd=server.root,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert " ERROR " not in server.log(), server.log()
