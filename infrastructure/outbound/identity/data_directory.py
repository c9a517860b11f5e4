"""Data directory of a server: embedded PostgreSQL, transcripts, workspaces and secrets."""

import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import orjson

from domain.values.text import replace_unstorable
from infrastructure.contract.errors import UserError
from infrastructure.outbound.embedded_postgres.locks import FileLock
from spawnlog.core.data_directory import (
    ADMIN_TOKEN_FILE,
    SERVERS_FOLDER,
    ServerEntry,
    default_data_directory,
    server_entries,
)

TOKEN_BYTES = 32


def expand_data_directory(path: Path | None) -> Path:
    """Return the absolute path of a data directory; by default that of this user.

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
            path: The directory. Default: that of this user.

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
        """Home of the embedded server."""
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
        return self._secret("data-directory-id", lambda: str(uuid4()))

    def _secret(self, name: str, make: Callable[[], str]) -> str:
        path = self.path / name
        with suppress(FileNotFoundError):
            text = path.read_text("utf-8").strip()
            if text:
                return text
        part = path.with_name(f".{name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{make()}\n")
            file.flush()
            os.fsync(file.fileno())
        # If two servers start at once, the first file stays: a link never replaces a file.
        with suppress(FileExistsError):
            os.link(part, path)
        part.unlink()
        return path.read_text("utf-8").strip()

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


class EnteredServer:
    """Entry of a running server. The system releases its lock when the process ends, in whatever
    way."""

    def __init__(self, folder: Path, url: str, log_id: UUID) -> None:
        name = f"{time.time_ns()}-{os.getpid()}.json"
        self._path = folder / name
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
        """Remove the entry. Idempotent."""
        self._path.unlink(missing_ok=True)
        self._lock.close()
