"""The gateway of the demo: the example of one in a process of its own, and a configuration that
sends it results."""

import base64
import contextlib
import json
import os
import queue
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.output import JsonObject

READY = "gateway ready on "
READY_SECONDS_MAX = 30.0
POST_SECONDS_MAX = 30.0
CHANNEL = "harbour"
_SWITCHED_OFF = "    // announce: {"


@dataclass(frozen=True, slots=True)
class DemoGateway:
    """Where it is, what the server has to know of it (`environment`), and what it posts."""

    url: str
    environment: Mapping[str, str]
    _lines: "queue.SimpleQueue[str]"

    def next_post(self) -> JsonObject:
        """What it posts next. CommandFailed when that does not come."""
        try:
            return dict(json.loads(self._lines.get(timeout=POST_SECONDS_MAX)))
        except queue.Empty:
            raise CommandFailed("nothing was posted in the chat") from None


@contextlib.contextmanager
def start_demo_gateway(examples: Path) -> Iterator[DemoGateway]:
    """A gateway for the time of the block, with a secret of its own."""
    secret = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
    process = subprocess.Popen(
        [sys.executable, str(examples / "gateway.py"), "--port", "0"],
        env={**os.environ, "CHAT_SECRET": secret},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    reader = threading.Thread(target=_drain_output, args=(process, lines), daemon=True)
    reader.start()
    try:
        try:
            ready = lines.get(timeout=READY_SECONDS_MAX)
        except queue.Empty:
            raise CommandFailed("the gateway of the demo did not get ready") from None
        url = ready.removeprefix(READY)
        yield DemoGateway(url, {"CHAT_URL": url, "CHAT_SECRET": secret}, lines)
    finally:
        process.kill()
        process.wait()
        reader.join(timeout=5)
        if process.stdout is not None and not reader.is_alive():
            process.stdout.close()


def copy_examples(examples: Path, folder: Path) -> Path:
    """The examples beside the data of the demo, with the webhook of the configuration switched on;
    gives the configuration."""
    copy = folder / "examples"
    shutil.copytree(examples, copy, ignore=shutil.ignore_patterns("__pycache__"))
    config = copy / "spawnlog.json5"
    text = config.read_text("utf-8")
    if _SWITCHED_OFF not in text:
        raise CommandFailed(f"{config} has no webhook that could be switched on")
    config.write_text(text.replace(_SWITCHED_OFF, _SWITCHED_OFF.replace("// ", "")), "utf-8")
    return config


def _drain_output(process: subprocess.Popen[str], lines: "queue.SimpleQueue[str]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line.strip())
