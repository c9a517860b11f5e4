"""Prepared data directories, and a check for processes that still use them."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.waiting import wait_for

GONE_SECONDS_MAX = 15.0


@contextmanager
def new_place(directory: Path | None = None) -> Iterator[Path]:
    """Yield a folder (mode 0700), which is removed when no process uses it anymore."""
    place = Path(tempfile.mkdtemp(prefix="spawnlog-e2e-", dir=directory))
    try:
        yield place
        require_deserted(place)
    except BaseException:
        for pid in busy_with(place):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        raise
    finally:
        shutil.rmtree(place)


def require_deserted(place: Path) -> None:
    """Assert that no process uses the folder, now or in a moment."""
    try:
        wait_for("them to go", lambda: not busy_with(place), seconds=GONE_SECONDS_MAX)
    except AssertionError:
        raise AssertionError(f"still busy with {place}: {described(place)}") from None


def copied(made: Path, to: Path) -> Path:
    """Copy an unused data directory, including owners."""
    subprocess.run(["cp", "-a", str(made), str(to)], check=True)
    return to


def busy_with(place: Path) -> list[int]:
    """Return the other processes that name the folder, work in it or have a file of it open."""
    # A machine has thousands of descriptors, so none of them becomes a Path.
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and _has_to_do_with(pid, str(place))]


def described(place: Path) -> list[str]:
    """Return these processes with their command lines."""
    return [f"{pid}: {_words(pid)[:200]!r}" for pid in busy_with(place)]


def _has_to_do_with(pid: int, place: str) -> bool:
    if os.fsencode(place) in _words(pid):
        return True
    folder = f"/proc/{pid}/fd"
    return any(
        _leads_to(link).startswith(place)
        for link in (f"/proc/{pid}/cwd", *(f"{folder}/{name}" for name in _names_in(folder)))
    )


def _words(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as words:
            return words.read()
    except OSError:
        return b""


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _leads_to(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""
