"""Servers for benchmarks: processes on a temporary data directory."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60
COMMAND = ("-m", "infrastructure.inbound.command_line.main")
SERVE = (*COMMAND, "serve", "--port", "0")
CONFIGURATION = {
    "agents": {
        "defaults": {"subagents": {"maxConcurrent": 64}},
        "list": [{"id": "main", "runtime": {"type": "scripted", "result": "done"}}],
    },
    "spawnlog": {"drainSeconds": 1},
}

PATIENT = {
    "agents": {
        "defaults": {"subagents": {"maxConcurrent": 1}},
        "list": [{"id": "main", "runtime": {"type": "command", "command": ["sleep", "600"]}}],
    },
    "spawnlog": {"drainSeconds": 0},
}
"""Configuration with one slot, whose run takes longer than any measurement."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server: its address, token, process, and the home of its embedded database."""

    url: str
    token: str
    database_home: Path
    pid: int

    def memory_mib(self) -> tuple[float, float] | None:
        """Return the current and the maximum resident memory of the process in MiB. None if the
        system does not report it.
        """
        try:
            lines = Path(f"/proc/{self.pid}/status").read_text("ascii", "replace").splitlines()
        except OSError:
            return None
        kib = {name: value for name, _, value in (line.partition(":") for line in lines)}
        now, most = (int(kib[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
        return now, most


def own_environment() -> dict[str, str]:
    """Return the environment without variables for the user's own server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SPAWNLOG_")}


@contextmanager
def running_server(
    folder: Path, name: str = "first", configuration: Mapping[str, Any] = CONFIGURATION
) -> Iterator[Server]:
    """Run a server during the block. All servers of one folder share a data directory.

    Raises:
        RuntimeError: It does not start; has its last lines.
    """
    data, config = folder / "data", folder / "spawnlog.json5"
    log = folder / f"server-{name}.log"
    config.write_text(json.dumps(configuration), "utf-8")
    with log.open("w", encoding="utf-8") as words:
        process = subprocess.Popen(
            [sys.executable, *SERVE, "--data-dir", str(data), "--config", str(config)],
            env=own_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
        )
    try:
        url = _url(process, log)
        token = (data / "admin-token").read_text("utf-8").strip()
        yield Server(url, token, data / "postgres", process.pid)
    finally:
        _end(process)


def _url(process: "subprocess.Popen[str]", log: Path) -> str:
    lines: list[str] = []
    stdout = process.stdout
    assert stdout is not None
    reader = threading.Thread(target=lambda: lines.append(stdout.readline()), daemon=True)
    reader.start()
    reader.join(START_SECONDS_MAX)
    if not lines or not lines[0].startswith("spawnlog ready on "):
        last_words = log.read_text("utf-8", "replace")[-2000:].strip()
        raise RuntimeError(f"the server did not start: {last_words or 'it said nothing'}")
    return lines[0].removeprefix("spawnlog ready on ").strip()


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
