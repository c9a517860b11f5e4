"""Folder in memory for all files of tests, so that servers need not wait for a disk."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

MEMORY = Path("/dev/shm")
ROOM_BYTES_MIN = 2 * 1024**3
NAME = "spawnlog-tests-"


@contextmanager
def files_in_memory() -> Iterator[None]:
    """Let `tempfile` and started programs write into memory, if it has room and permits execution.

    Removes what a killed run has left there.
    """
    if not _is_usable():
        yield
        return
    with _memory_place() as place, temporary_files_in(place):
        yield


@contextmanager
def temporary_files_in(place: Path) -> Iterator[None]:
    """Let `tempfile` and started programs write into a folder."""
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = tempfile.tempdir = str(place)
    try:
        yield
    finally:
        tempfile.tempdir = None
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before


@contextmanager
def _memory_place() -> Iterator[Path]:
    for left in MEMORY.glob(f"{NAME}*-*"):
        pid = left.name.removeprefix(NAME).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(left, ignore_errors=True)
    place = Path(tempfile.mkdtemp(prefix=f"{NAME}{os.getpid()}-", dir=MEMORY))
    # Other users can reach their files through it, but not list it.
    place.chmod(0o711)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _is_usable() -> bool:
    if not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
        return False
    found = os.statvfs(MEMORY)
    has_room = found.f_bavail * found.f_frsize >= ROOM_BYTES_MIN
    return has_room and not found.f_flag & os.ST_NOEXEC
