"""The server of the demo: the real command in a process of its own."""

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO

from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.plain_text import printable_block

READY = "spawnlog ready on "
READY_SECONDS_MAX = 180.0
STOP_SECONDS_MAX = 60.0
REMOVE_SECONDS_MAX = 10.0
TAIL_BYTES = 4000
_MODULE = "infrastructure.inbound.command_line.main"


def examples_directory() -> Path:
    """The `examples` of the source checkout that this program runs from.

    Raises CommandFailed where there is none: they are not part of an installed package.
    """
    directory = Path(__file__).resolve().parents[4] / "examples"
    if not (directory / "spawnlog.json5").is_file():
        raise CommandFailed(
            f"the demo needs the examples of a source checkout, and there are none at {directory}: "
            "run it from a clone of the repository, with `make demo`"
        )
    return directory


@contextlib.contextmanager
def demo_data_directory(data_dir: Path | None) -> Iterator[Path]:
    """The data directory of the demo: the one given, which stays, or one that is removed."""
    if data_dir is not None:
        yield data_dir.expanduser().resolve()
        return
    directory = Path(tempfile.mkdtemp(prefix="spawnlog-demo-"))
    try:
        yield directory
    finally:
        _remove(directory)


@contextlib.contextmanager
def start_demo_server(
    config: Path, data_dir: Path, more: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """A server for the time of the block, with `more` variables in its environment; gives its URL.

    Raises CommandFailed, with the end of what the server said, when it does not get ready, or
    does not stop with exit status 0.
    """
    with tempfile.TemporaryFile() as errors:
        process = _start_process(config, data_dir, errors, more)
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        reader = threading.Thread(target=_drain_output, args=(process, lines), daemon=True)
        reader.start()
        try:
            yield _url(process, lines, errors)
        finally:
            status = _stop_process(process)
            reader.join(timeout=5)
            if process.stdout is not None and not reader.is_alive():
                process.stdout.close()
        if status != 0:
            raise CommandFailed(f"the server stopped with status {status}{_tail(errors)}")


@contextlib.contextmanager
def end_on_signals() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP end the block as an exception, so that it tidies up."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    signals = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, end) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _start_process(
    config: Path, data_dir: Path, errors: IO[bytes], more: Mapping[str, str]
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", _MODULE, "serve", "--config", str(config)]
    command += ["--host", "127.0.0.1", "--port", "0", "--data-dir", str(data_dir)]
    # The demo is the same on every machine: a database of somebody's environment is not for it.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SPAWNLOG_")
    }
    return subprocess.Popen(
        command,
        cwd=config.parent.parent,
        env={**environment, **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        errors="replace",
        # Ctrl-C is for the demo, which then stops the server in its own way.
        start_new_session=True,
    )


def _drain_output(process: subprocess.Popen[str], lines: "queue.SimpleQueue[str]") -> None:
    """Take in the server's lines to the end, so that it never waits for a reader."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(READY):
            lines.put(line.removeprefix(READY).strip())


def _url(process: subprocess.Popen[str], lines: "queue.SimpleQueue[str]", errors: IO[bytes]) -> str:
    end = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < end:
        try:
            return lines.get(timeout=0.1)
        except queue.Empty:
            if process.poll() is not None:
                break
    status = process.poll()
    reason = "did not get ready in time" if status is None else f"ended with status {status}"
    raise CommandFailed(f"the server {reason}{_tail(errors)}")


def _stop_process(process: subprocess.Popen[str]) -> int:
    process.terminate()
    try:
        return process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _tail(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - TAIL_BYTES))
    text = printable_block(errors.read().decode("utf-8", "replace")).strip()
    return f"; it said:\n{text}" if text else ""


def _remove(directory: Path) -> None:
    """Remove the data. The last file of a stopping database may appear while it goes."""
    end = time.monotonic() + REMOVE_SECONDS_MAX
    while True:
        try:
            shutil.rmtree(directory)
        except FileNotFoundError:
            return
        except OSError as error:
            if time.monotonic() >= end:
                raise CommandFailed(f"cannot remove {directory}: {error.strerror}") from None
            time.sleep(0.1)
