"""Data directory of a server: embedded PostgreSQL, transcripts, workspaces and secrets."""

import logging
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args
from uuid import UUID, uuid4

import orjson

from domain.values.text import replace_unstorable
from infrastructure.contract.errors import UserError
from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.locks import FileLock
from spawnlog.core.data_directory import (
    ADMIN_TOKEN_FILE,
    SERVERS_FOLDER,
    ServerEntry,
    default_data_directory,
    server_entries,
)

TOKEN_BYTES = 32
LOG_FILE = "log.json"
"""The log of the directory: `{"logId": …, "database": "embedded" or "external"}`."""
IDENTITY_FILE = "data-directory-id"

_log = logging.getLogger("spawnlog.data_directory")

DatabaseKind = Literal["embedded", "external"]


@dataclass(frozen=True, slots=True)
class RecordedLog:
    """The log whose servers use a data directory.

    `database` says where it was last served. It is None if an earlier release did not record it.
    """

    log_id: UUID
    database: DatabaseKind | None = None


def expand_data_directory(path: Path | None) -> Path:
    """Return the absolute path of a data directory, by default the user's own.

    Raises:
        UserError: The path begins with the name of an unknown user.
    """
    try:
        return (path or default_data_directory()).expanduser().absolute()
    except RuntimeError as error:
        raise UserError(
            f"the data directory {path} names an unknown user; name another one with --data-dir"
        ) from error


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """Paths and secrets below one directory."""

    path: Path

    @classmethod
    def open(cls, path: Path | None) -> "DataDirectory":
        """Open the data directory; create it if it is missing.

        For root its mode is 0711, because the embedded server runs as another user and must pass
        through. Private files have modes of their own.

        Args:
            path: The directory. Default: the user's own.

        Raises:
            UserError: The directory cannot be created or written to, or its path is not UTF-8.
        """
        chosen = expand_data_directory(path)
        if replace_unstorable(str(chosen)) != str(chosen):
            raise UserError(
                "the path of the data directory is not UTF-8; name another one with --data-dir"
            )
        try:
            chosen.mkdir(parents=True, exist_ok=True, mode=0o711 if os.geteuid() == 0 else 0o700)
        except OSError as error:
            raise UserError(
                f"the data directory {chosen} cannot be created: {error.strerror}; name another"
                " one with --data-dir"
            ) from error
        if not os.access(chosen, os.W_OK | os.X_OK):
            raise UserError(
                f"the data directory {chosen} is not writable; name another one with --data-dir"
            )
        return cls(chosen)

    @property
    def postgres(self) -> Path:
        """Return the home of the embedded server."""
        return self.path / "postgres"

    @property
    def transcripts(self) -> Path:
        """Return the folder of transcripts, one folder per agent."""
        return self.path / "transcripts"

    @property
    def workspaces(self) -> Path:
        """Return the folder of workspaces of agents that configure none, one folder per agent."""
        return self.path / "workspaces"

    def admin_token(self) -> str:
        """Return the admin token. The first start creates it, readable only by the owner."""
        return self._secret(ADMIN_TOKEN_FILE, lambda: "sla_" + secrets.token_urlsafe(TOKEN_BYTES))

    def child_token_key(self) -> bytes:
        """Return the key that signs child tokens, shared by all servers of this directory."""
        return bytes.fromhex(self._secret("child-token.key", lambda: secrets.token_hex(32)))

    def identity(self) -> str:
        """Return the id by which a log recognizes its data directory."""
        return self._secret(IDENTITY_FILE, lambda: str(uuid4()))

    @property
    def has_identity(self) -> bool:
        """Return True if a server has used the directory."""
        return (self.path / IDENTITY_FILE).exists()

    def recorded_log(self) -> RecordedLog | None:
        """Return the log of this directory, or None if it has none yet.

        Earlier releases recorded it in the entries of servers only.

        Raises:
            UserError: The record cannot be read.
        """
        path = self.path / LOG_FILE
        try:
            return _read_record(path.read_bytes())
        except FileNotFoundError:
            return self._log_of_entries()
        except OSError as error:
            raise UserError(
                f"{path} cannot be read: {error.strerror}; run the server as the user of the data"
                " directory, or name another one with --data-dir"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path} does not name a log; restore it from a backup, or delete it and start with"
                " the database of this data directory"
            ) from error

    def _log_of_entries(self) -> RecordedLog | None:
        for entry in server_entries(self.path):
            with suppress(ValueError):
                return RecordedLog(UUID(entry.log_id))
        return None

    def record_log(self, log_id: UUID, database: DatabaseKind) -> None:
        """Record the log of this directory, unless it has another one.

        Call it before the log is bound to the directory, so that a crash between the two leaves
        a directory that accepts this log only.

        Raises:
            UserError: The directory belongs to another log, or the record cannot be written.
        """
        served = RecordedLog(log_id, database)
        path = self.path / LOG_FILE
        content = orjson.dumps({"logId": log_id, "database": database}).decode()
        try:
            recorded = self.recorded_log()
            if recorded is None or (recorded.log_id == log_id and recorded.database is None):
                # Of two first servers, the one that comes second reads the record of the other.
                self._secret(LOG_FILE, lambda: content)
                recorded = self.recorded_log()
            if recorded is None or recorded.log_id != log_id:
                raise UserError(self._other_log(recorded, served))
            if recorded != served:
                self._write_part(path.name, content).replace(path)
        except OSError as error:
            raise UserError(
                f"{path} cannot be written: {error.strerror}; the data directory must be writable"
            ) from error

    def _other_log(self, recorded: RecordedLog | None, served: RecordedLog) -> str:
        owner = "another log" if recorded is None else f"log {recorded.log_id}"
        kind = None if recorded is None else recorded.database
        if kind == served.database == "embedded":
            advice = "restore the database of that log"
        elif kind == "embedded":
            advice = (
                "start without a database URL (--database-url, SPAWNLOG_DATABASE_URL, databaseUrl)"
            )
        elif kind == "external":
            advice = "start with the --database-url (or SPAWNLOG_DATABASE_URL) of that log"
        else:
            advice = "start with the database of that log"
        found = "its embedded" if served.database == "embedded" else "the external"
        return (
            f"the data directory {self.path} belongs to {owner}, but {found} database holds log"
            f" {served.log_id}; {advice}, or name another data directory with --data-dir"
        )

    def require_embedded_log(self) -> None:
        """Refuse to begin a log in a directory that has one elsewhere.

        Call it before the embedded server starts.

        Raises:
            UserError: There is no embedded database, and an earlier server used the directory.
        """
        # In this order: a server that starts at the same time makes the database first.
        recorded, is_used = self.recorded_log(), self.has_identity
        if Home.at(self.postgres).data.is_dir() or (recorded is None and not is_used):
            return
        if recorded is not None and recorded.database == "embedded":
            raise UserError(
                f"the embedded database of log {recorded.log_id} is missing from {self.postgres};"
                " restore it from a backup, or name another data directory with --data-dir for a"
                " new log"
            )
        log = "its log" if recorded is None else f"its log {recorded.log_id}"
        raise UserError(
            f"the data directory {self.path} has {log} in an external database; start with the"
            " same --database-url (or SPAWNLOG_DATABASE_URL), or name another data directory with"
            " --data-dir for a new log"
        )

    def _secret(self, name: str, make: Callable[[], str]) -> str:
        path = self.path / name
        with suppress(FileNotFoundError):
            text = path.read_text("utf-8").strip()
            if text:
                return text
        part = self._write_part(name, make())
        # If two servers start at once, the first file stays: a link never replaces a file.
        with suppress(FileExistsError):
            os.link(part, path)
        part.unlink()
        return path.read_text("utf-8").strip()

    def _write_part(self, name: str, content: str) -> Path:
        """Write a private file, still under another name. Return its path."""
        part = self.path / f".{name}.{os.getpid()}.{secrets.token_hex(4)}"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{content}\n")
            file.flush()
            os.fsync(file.fileno())
        return part

    def servers_of(self, log_id: UUID) -> list[ServerEntry]:
        """Return the running servers of this directory that serve a log, the most recently started
        first."""
        entries = server_entries(self.path)
        return [entry for entry in entries if entry.is_alive and entry.log_id == str(log_id)]

    def enter_server(self, url: str, log_id: UUID) -> "EnteredServer":
        """Write the entry by which clients find this server; remove the entries of killed servers.

        Raises:
            UserError: The entry cannot be written or locked.
        """
        folder = self.path / SERVERS_FOLDER
        try:
            folder.mkdir(mode=0o755, exist_ok=True)
            for entry in server_entries(self.path):
                if not entry.is_alive:
                    entry.path.unlink(missing_ok=True)
            return EnteredServer(folder, url, log_id)
        except OSError as error:
            raise UserError(
                f"the server cannot be registered in {folder}: {error.strerror}; its data directory"
                " must be writable, on a file system with locks (flock)"
            ) from error


def _read_record(content: bytes) -> RecordedLog:
    values = orjson.loads(content)
    database = values["database"]
    if database not in get_args(DatabaseKind):
        raise ValueError(database)
    return RecordedLog(UUID(str(values["logId"])), database)


class EnteredServer:
    """Entry of a running server. The system releases its lock when the process ends, in whatever
    way."""

    def __init__(self, folder: Path, url: str, log_id: UUID) -> None:
        name = f"{time.time_ns()}-{os.getpid()}.json"
        self._path = folder / name
        self._removed = False
        part = folder / f".{name}"
        self._lock = FileLock(part)
        try:
            # Lock before renaming: a visible file without a lock means a killed server.
            self._lock.try_exclusive()
            part.write_bytes(orjson.dumps({"url": url, "pid": os.getpid(), "logId": log_id}))
            part.chmod(0o644)
            part.replace(self._path)
        except BaseException:
            part.unlink(missing_ok=True)
            self._lock.close()
            raise

    def remove(self) -> None:
        """Remove the entry. Idempotent.

        An entry that cannot be removed, as on a read-only disk, stays without a lock, like that of
        a killed server: clients skip it, and the next start removes it.
        """
        if self._removed:
            return
        self._removed = True
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            _log.warning(
                "%s cannot be removed: %s; the next start removes it", self._path, error.strerror
            )
        self._lock.close()
