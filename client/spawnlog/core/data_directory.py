"""Data directory of a server: its default path, and the files through which clients find servers.

The server writes these files. Programs of the same user read them.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if sys.platform != "win32":
    import fcntl

ADMIN_TOKEN_FILE = "admin-token"  # noqa: S105
"""The admin token: one line of text, mode 0600, written by the first start."""

SERVERS_FOLDER = "servers"
"""One file per running server: `<start>-<pid>.json` with `{"url": …, "pid": …, "logId": …}`.

A server holds a lock (flock) on its file while it lives. If a file has no lock, its server was
killed.
"""

ENTRY_BYTES_MAX = 4096
ENTRIES_READ_MAX = 100


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """File of one server in a data directory.

    Attributes:
        path: Path of the file.
        url: Address of the server.
        pid: Process id of the server.
        log_id: Id of the log that it serves.
        is_alive: True if the server holds the lock of the file.
    """

    path: Path
    url: str
    pid: int
    log_id: str
    is_alive: bool


def server_entries(directory: Path) -> list[ServerEntry]:
    """Return the servers of a data directory, the most recently started first.

    Files that are unreadable or are not entries are skipped, as are all after `ENTRIES_READ_MAX`.
    """
    folder = directory / SERVERS_FOLDER
    try:
        names = sorted(os.listdir(folder), reverse=True)
    except OSError:
        return []
    paths = [folder / name for name in names if name.endswith(".json") and name[0] != "."]
    return list(_read_entries(paths[:ENTRIES_READ_MAX]))


def _read_entries(paths: list[Path]) -> Iterator[ServerEntry]:
    for path in paths:
        try:
            with open(path, "rb", opener=_open_without_waiting) as file:
                is_alive = _is_locked(file.fileno())
                entry = json.loads(file.read(ENTRY_BYTES_MAX))
            url, pid, log_id = str(entry["url"]), int(entry["pid"]), str(entry["logId"])
            yield ServerEntry(path, url, pid, log_id, is_alive)
        except (OSError, ValueError, LookupError, TypeError):
            continue


def _open_without_waiting(path: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a FIFO would block until a writer comes.
    return os.open(path, flags | os.O_NONBLOCK)


def _is_locked(descriptor: int) -> bool:
    """Return True if another process holds the exclusive lock of a file.

    Readers take a shared lock, so they do not mistake each other for a server.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def default_data_directory() -> Path:
    """Return the data directory of this user, by the convention of the operating system."""
    if sys.platform == "darwin":
        folder = "~/Library/Application Support"
    elif sys.platform == "win32":
        folder = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    else:
        folder = os.environ.get("XDG_DATA_HOME", "").strip() or "~/.local/share"
    # `Path.expanduser` raises if the user has no home directory.
    return Path(os.path.expanduser(folder), "spawnlog")
