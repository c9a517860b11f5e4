"""`spawnlog run step` in a terminal: keys, its size, and its state afterwards."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.api_runs import FIRST
from tests.support.servers.recorded_api import RecordedApi, Reply

pytestmark = pytest.mark.server

COMMAND = (sys.executable, "-m", "infrastructure.inbound.command_line.main")
STAGES = ("requested", "queued", "started", "ended")
SECONDS_MAX = 30.0
ROOT = Path(__file__).parents[5]


def _entry(version: int, stage: str) -> dict[str, Any]:
    return {
        "position": 10 * version,
        "version": version,
        "type": f"Event{version}",
        "recordedAt": "2026-03-01T09:30:00.125Z",
        "actor": {"kind": "system", "token": None, "session": None},
        "changes": [{"op": "add", "path": "/stage", "value": stage}],
    }


@dataclass
class Terminal:
    """A terminal with the command in it."""

    keys: int
    screen: int
    process: subprocess.Popen[bytes]
    shown: str = ""

    def press(self, keys: str) -> None:
        os.write(self.keys, keys.encode())

    def wait_for(self, text: str) -> None:
        """Wait until this text is shown."""
        deadline = time.monotonic() + SECONDS_MAX
        while text not in self.shown:
            assert time.monotonic() < deadline, repr(self.shown[-2000:])
            if select.select([self.keys], [], [], 0.2)[0]:
                self.shown += os.read(self.keys, 65_536).decode("utf-8", "replace")
        self.shown = self.shown.split(text, 1)[1]

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@pytest.fixture
def terminal(api: RecordedApi, tmp_path: Path) -> Iterator[Terminal]:
    items = [_entry(version, stage) for version, stage in enumerate(STAGES, 1)]
    body = {"runId": FIRST, "version": 4, "items": items, "setBy": {}, "nextAfter": None}
    api.on("GET", f"/v1/runs/{FIRST}/history", Reply(body))
    keys, screen = pty.openpty()
    before = termios.tcgetattr(screen)
    settings = {
        "SPAWNLOG_URL": api.url,
        "SPAWNLOG_TOKEN": "a-token",
        "SPAWNLOG_DATA_DIR": str(tmp_path),
        "TERM": "xterm",
    }
    outside = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with subprocess.Popen(
        [*COMMAND, "run", "step", FIRST],
        stdin=screen,
        stdout=screen,
        stderr=screen,
        cwd=ROOT,
        env=outside | settings,
        start_new_session=True,
    ) as process:
        shown = Terminal(keys, screen, process)
        shown.resize(80, 24)
        try:
            yield shown
            process.wait(SECONDS_MAX)
            assert termios.tcgetattr(screen) == before
        finally:
            process.kill()
    # The program leaves the alternate screen.
    shown.wait_for("\x1b[?25h\x1b[?1049l")
    os.close(screen)
    os.close(keys)


def test_keys_step_through_states(terminal: Terminal) -> None:
    terminal.wait_for("event 1 of 4")
    terminal.press("n")
    terminal.wait_for("event 2 of 4")
    terminal.press("\x1b[C")
    terminal.wait_for("event 3 of 4")
    terminal.press("\x1b[D")
    terminal.wait_for("event 2 of 4")
    terminal.press("gx\x7fended\r")
    terminal.wait_for("event 4 of 4")
    terminal.press("1\r")
    terminal.wait_for("event 1 of 4")
    terminal.press("\r\r")
    terminal.wait_for("event 3 of 4")
    terminal.press("q")
    assert terminal.process.wait(SECONDS_MAX) == 0


def test_ctrl_c_ends_step(terminal: Terminal) -> None:
    terminal.wait_for("event 1 of 4")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.process.wait(SECONDS_MAX) == 130


def test_signal_restores_the_terminal(terminal: Terminal) -> None:
    terminal.wait_for("event 1 of 4")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.process.wait(SECONDS_MAX) == 128 + signal.SIGTERM


def test_new_size_redraws_the_screen(terminal: Terminal) -> None:
    terminal.wait_for("event 1 of 4")
    terminal.wait_for("difference")
    terminal.resize(140, 30)
    terminal.wait_for("event 1 of 4")
    terminal.wait_for("state")
    first_line = terminal.shown
    terminal.wait_for("difference")
    assert "\n" not in first_line.split("difference")[0]
    terminal.press("q")
    assert terminal.process.wait(SECONDS_MAX) == 0
