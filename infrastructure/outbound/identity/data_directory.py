"""The data directory: where the embedded server, transcripts, workspaces and secrets live."""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import orjson

from infrastructure.contract.data_directory import (
    ADMIN_TOKEN_FILE,
    SERVER_FILE,
    default_data_directory,
)
from infrastructure.contract.errors import UserError

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

    def note_server(self, url: str, pid: int) -> None:
        """Where the server can be reached, for the command line. Of several servers one is noted;
        when its note goes, another one writes its own."""
        if (self.path / SERVER_FILE).exists():
            return
        self._note(url, pid)

    def replace_note(self, url: str, pid: int) -> None:
        """Note a server that has just started, whatever is noted."""
        self._note(url, pid)

    def _note(self, url: str, pid: int) -> None:
        part = self.path / f".server.json.{pid}"
        part.write_bytes(orjson.dumps({"url": url, "pid": pid}))
        part.replace(self.path / SERVER_FILE)

    def forget_server(self, pid: int) -> None:
        """The server is gone; another one's note is left alone."""
        path = self.path / SERVER_FILE
        with suppress(FileNotFoundError, orjson.JSONDecodeError, KeyError):
            if orjson.loads(path.read_bytes())["pid"] == pid:
                path.unlink()
