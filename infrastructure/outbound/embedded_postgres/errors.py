"""Errors of the embedded server, each with its cause and remedy."""

import errno
import os
import re
from pathlib import Path

_DISK_FULL = ("No space left on device", "Disk quota exceeded", "Check free disk space")
_READ_ONLY = "Read-only file system"
_NOT_WRITABLE = (_READ_ONLY, "Permission denied", "Operation not permitted")
_PREFIX = re.compile(r"^.*?\d{4}-\d\d-\d\d \S+ \S+ \[\d+\] ")
_WAY_OUT = "choose another directory with --data-dir, or use another server with --database-url"
_REASON_CHARS_MAX = 600


class EmbeddedPostgresError(Exception):
    """The embedded server cannot run. The message names the cause and the next step."""


def from_os_error(error: OSError, home: Path) -> EmbeddedPostgresError:
    """Return the error for a system error during the preparation of `home`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full(home)
    where = os.fsdecode(error.filename) if error.filename is not None else str(home)
    text = error.strerror or str(error)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return not_writable(where, text)
    return EmbeddedPostgresError(f"the embedded PostgreSQL cannot use {where} ({text}): {_WAY_OUT}")


def from_output(doing: str, output: str, home: Path, log: Path) -> EmbeddedPostgresError:
    """Return the error for a failed initdb or server, from its output.

    Args:
        doing: The failed action, in words that follow "could not", such as "start".
        output: Last lines of the output.
        home: Home of the server.
        log: Path of the log.
    """
    if any(text in output for text in _DISK_FULL):
        return disk_full(home)
    reason = _reason(output) or "it gave no reason"
    if any(text in reason for text in _NOT_WRITABLE):
        return not_writable(str(home), reason)
    return EmbeddedPostgresError(
        f"the embedded PostgreSQL could not {doing}: {reason} (log: {log}). "
        f"Correct the cause and start again, or {_WAY_OUT}"
    )


def disk_full(home: Path) -> EmbeddedPostgresError:
    """Return the error for a full disk, with the free space."""
    try:
        disk = os.statvfs(home)
        left = f"{disk.f_bavail * disk.f_frsize / 1_000_000:.1f} MB free"
    except OSError:
        left = "free space unknown"
    return EmbeddedPostgresError(
        f"no space left on the disk that holds {home} ({left}; a new database takes about 50 MB): "
        f"free some, or {_WAY_OUT}"
    )


def not_writable(where: str, reason: str) -> EmbeddedPostgresError:
    """Return the error for a place that is not writable."""
    if _READ_ONLY in reason:
        mend = "mount it read-write (after an error of the disk, check it first)"
    else:
        mend = "give that user the directory"
    return EmbeddedPostgresError(
        f"{where} is not writable for user id {os.geteuid()} ({reason}): {mend}, or {_WAY_OUT}"
    )


def _reason(output: str) -> str:
    """Return the last fatal line. If it reports a configuration error, include the lines before
    it."""
    lines = [_PREFIX.sub("", line.strip()) for line in output.splitlines() if line.strip()]
    for at in range(len(lines) - 1, -1, -1):
        if lines[at].startswith(("FATAL:", "PANIC:", "initdb: error:")):
            first = max(0, at - 3) if "configuration file" in lines[at] else at
            return "; ".join(lines[first : at + 1])[-_REASON_CHARS_MAX:]
    return "; ".join(lines[-2:])[-_REASON_CHARS_MAX:]
