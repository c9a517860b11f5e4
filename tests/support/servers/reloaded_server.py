"""A server whose file changes."""

import json
import signal
from collections.abc import Mapping
from typing import Any

from tests.support.servers.running_server import RunningServer, wait_for


class ReloadedServer(RunningServer):
    """It works by its file as it is now once `reload` is over."""

    def reload(self, values: Mapping[str, Any]) -> str:
        """Change the file and send SIGHUP; gives what is logged until it is active."""
        assert self.config is not None
        assert self.process is not None
        self.config.write_text(json.dumps(values), "utf-8")
        before = len(self.log())
        self.process.send_signal(signal.SIGHUP)
        wait_for("the reload", lambda: "is active" in self.log()[before:])
        return self.log()[before:]
