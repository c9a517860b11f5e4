"""The data directory: where the embedded server, transcripts, workspaces and secrets live."""

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


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """Paths below one directory."""

    path: Path

    @classmethod
    def open(cls, path: Path | None) -> "DataDirectory":
        """Make it when it is not there. As root others may pass through it (0711), because the
        embedded server runs as somebody else; what is private is closed by itself."""
        chosen = (path or default_data_directory()).expanduser().absolute()
        if replace_unstorable(str(chosen)) != str(chosen):
            raise UserError(
                "the path of the data directory is not UTF-8; name another one with --data-dir"
            )
        try:
            chosen.mkdir(parents=True, exist_ok=True, mode=0o711 if os.geteuid() == 0 else 0o700)
        except OSError as error:
            raise UserError(
                f"the data directory {chosen} cannot be made: {error.strerror};"
                " name another one with --data-dir"
            ) from error
        if not os.access(chosen, os.W_OK | os.X_OK):
            raise UserError(
                f"the data directory {chosen} is not writable; name another one with --data-dir"
            )
        return cls(chosen)

    @property
    def postgres(self) -> Path:
        """The embedded server's home."""
        return self.path / "postgres"

    @property
    def transcripts(self) -> Path:
        """Transcripts, a folder per agent."""
        return self.path / "transcripts"

    @property
    def workspaces(self) -> Path:
        """Workspaces of agents that were given none, a folder per agent."""
        return self.path / "workspaces"

    def admin_token(self) -> str:
        """The administrator's token; made at the first start, readable by the owner alone."""
        return self._secret(ADMIN_TOKEN_FILE, lambda: "sla_" + secrets.token_urlsafe(TOKEN_BYTES))

    def child_token_key(self) -> bytes:
        """The key of children's tokens; shared by all servers of this directory."""
        return bytes.fromhex(self._secret("child-token.key", lambda: secrets.token_hex(32)))

    def identity(self) -> str:
        """By this a log knows its data directory again."""
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
        # Of two that start at once the first one's stays: a link never replaces a file.
        with suppress(FileExistsError):
            os.link(part, path)
        part.unlink()
        return path.read_text("utf-8").strip()

    def servers_of(self, log_id: UUID) -> list[ServerEntry]:
        """Return the servers of this directory that serve a log, the one that started last
        first."""
        entries = server_entries(self.path)
        return [one for one in entries if one.is_alive and one.log_id == str(log_id)]

    def enter_server(self, url: str, log_id: UUID) -> "EnteredServer":
        """Write the entry by which the command line finds a server, and remove those of servers
        that were killed. UserError if that cannot be done."""
        folder = self.path / SERVERS_FOLDER
        try:
            folder.mkdir(mode=0o755, exist_ok=True)
            for entry in server_entries(self.path):
                if not entry.is_alive:
                    entry.path.unlink(missing_ok=True)
            return EnteredServer(folder, url, log_id)
        except OSError as error:
            raise UserError(
                f"the server cannot be entered in {folder}: {error.strerror}; its data directory"
                " must be writable, on a file system with locks (flock)"
            ) from error


class EnteredServer:
    """The entry of a server that runs. The system lets go of its lock when the process ends, in
    whatever way."""

    def __init__(self, folder: Path, url: str, log_id: UUID) -> None:
        name = f"{time.time_ns()}-{os.getpid()}.json"
        self._path = folder / name
        part = folder / f".{name}"
        self._lock = FileLock(part)
        try:
            # Locked before others see it: to them a file without a lock is of a killed server.
            self._lock.try_exclusive()
            part.write_bytes(orjson.dumps({"url": url, "pid": os.getpid(), "logId": log_id}))
            part.chmod(0o644)
            part.replace(self._path)
        except BaseException:
            part.unlink(missing_ok=True)
            self._lock.close()
            raise

    def remove(self) -> None:
        """Remove the entry; a second call does nothing."""
        self._path.unlink(missing_ok=True)
        self._lock.close()
