"""A server of the benchmark's own: one process, on a data directory that is gone afterwards."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60
SERVE = ("-m", "infrastructure.inbound.command_line.main", "serve", "--port", "0")
CONFIGURATION = {
    "agents": {
        "defaults": {"subagents": {"maxConcurrent": 64}},
        "list": [{"id": "main", "runtime": {"type": "scripted", "result": "done"}}],
    },
    "spawnlog": {"drainSeconds": 1},
}


@dataclass(frozen=True, slots=True)
class Server:
    """Where it listens, with which token, and where its embedded database lives."""

    url: str
    token: str
    database_home: Path


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """A server for the time of the block. RuntimeError, with its last words, when none starts."""
    data, config, log = folder / "data", folder / "spawnlog.json5", folder / "server.log"
    config.write_text(json.dumps(CONFIGURATION), "utf-8")
    # What is set for a server of the person's own is not meant for this one.
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith("SPAWNLOG_")
    }
    with log.open("w", encoding="utf-8") as words:
        process = subprocess.Popen(
            [sys.executable, *SERVE, "--data-dir", str(data), "--config", str(config)],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
        )
    try:
        url = _url(process, log)
        token = (data / "admin-token").read_text("utf-8").strip()
        yield Server(url, token, data / "postgres")
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
