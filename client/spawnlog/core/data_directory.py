"""The data directory of a server: its default place, and the files that programs of the same user
read there to find the server. The server writes them."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if sys.platform != "win32":
    import fcntl

ADMIN_TOKEN_FILE = "admin-token"  # noqa: S105
"""The admin token as one line of text, mode 0600; written by the first start."""

SERVERS_FOLDER = "servers"
"""A file for each server that runs: `<start>-<pid>.json` holds `{"url": …, "pid": …, "logId": …}`.
The server holds a lock (flock) on its file while it lives, so the file of a killed server is known
by its missing lock."""

ENTRY_BYTES_MAX = 4096
ENTRIES_READ_MAX = 100


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """The file of one server of a data directory. `log_id` is the log that it serves."""

    path: Path
    url: str
    pid: int
    log_id: str
    is_alive: bool


def server_entries(directory: Path) -> list[ServerEntry]:
    """Return the servers of a data directory, the one that started last first. Skip what is no
    entry, and what cannot be read."""
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
    # Opening a pipe would wait for a writer.
    return os.open(path, flags | os.O_NONBLOCK)


def _is_locked(descriptor: int) -> bool:
    """Return True if another process holds the lock of a file alone. Readers share their lock, so
    that none takes another one for a server."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def default_data_directory() -> Path:
    """Return the data directory of this user, where the system keeps data of programs."""
    if sys.platform == "darwin":
        folder = "~/Library/Application Support"
    elif sys.platform == "win32":
        folder = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    else:
        folder = os.environ.get("XDG_DATA_HOME", "").strip() or "~/.local/share"
    # Not `Path.expanduser`, which fails if there is no home.
    return Path(os.path.expanduser(folder), "spawnlog")
