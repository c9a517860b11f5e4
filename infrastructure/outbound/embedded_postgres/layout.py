"""Where the parts of an embedded server lie."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

PORT = 5432
USER = "spawnlog"
DATABASE = "spawnlog"

_SOCKET_FILE = f".s.PGSQL.{PORT}"
_SOCKET_PATH_BYTES_MAX = 100
# A comma or a colon separates hosts and ports for libpq and SQLAlchemy, and a percent sign is
# read by configuration parsers: a socket path needs none of them.
_PLAIN = re.compile(r"[A-Za-z0-9_./+=~-]+")


@dataclass(frozen=True)
class Home:
    """The directory of one embedded server, by its real path.

    `start.lock` is held while a server is started, joined or stopped; `holders.lock` is shared by
    every user of the server; `server.lock` is held by the keeper and every process of the server.
    """

    root: Path

    @classmethod
    def at(cls, path: Path) -> "Home":
        """The home at `path`; two spellings of one directory give the same home."""
        return cls(Path(os.path.realpath(path)))

    @property
    def start_lock(self) -> Path:
        return self.root / "start.lock"

    @property
    def holders_lock(self) -> Path:
        return self.root / "holders.lock"

    @property
    def server_lock(self) -> Path:
        return self.root / "server.lock"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def log(self) -> Path:
        return self.root / "server.log"

    @property
    def name(self) -> str:
        """Twelve characters that stand for this home in places shared with others."""
        return hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]

    @property
    def sockets(self) -> Path:
        """The directory of the socket: in the home, or a short one when its path is too long.

        /tmp and not the configured temporary directory, which differs from process to process.
        """
        inside = self.root / "s"
        path_bytes = len(os.fsencode(inside / _SOCKET_FILE))
        if path_bytes <= _SOCKET_PATH_BYTES_MAX and _PLAIN.fullmatch(str(inside)):
            return inside
        return Path("/tmp") / f"spawnlog-{self.name}"  # noqa: S108

    @property
    def sockets_are_inside(self) -> bool:
        return self.sockets.parent == self.root

    def conninfo(self, database: str = DATABASE) -> str:
        """The URL of `database` for libpq."""
        return f"postgresql://{USER}@/{database}?host={self.sockets}&port={PORT}"
