"""The data directory: its version, its creation, and what a killed server left in it.

**A home that the account cannot reach.** Root's home often lies below a directory of mode 0700
(/root, a temporary directory), which the server's user cannot pass, and the modes of directories
that are not ours stay as they are. The data stays in the home all the same: root opens the
directory and hands the open descriptor to the server, which is told `/proc/self/fd/<n>` as its
data directory. The kernel follows such a name straight to the open directory and asks for rights
on that directory alone, and every process of the server inherits the descriptor. So the data is
where it was asked for, moves and is deleted with its home, and nothing durable lies elsewhere.
Linux only; without /proc such a home is refused.
"""

import contextlib
import hashlib
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infrastructure.outbound.embedded_postgres import process
from infrastructure.outbound.embedded_postgres.account import Account
from infrastructure.outbound.embedded_postgres.binaries import Programs
from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError, from_output
from infrastructure.outbound.embedded_postgres.process import BoundedLog

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
    every user of the server; `server.lock` is held by the supervisor and every process of the
    server.
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


_UNFINISHED = "init-"
_BUILTIN_LOCALES_SINCE = 17


@dataclass(frozen=True)
class DirectoryView:
    """How the server's processes are told about a directory, and the descriptors they need."""

    path: str
    descriptors: tuple[int, ...]


@contextlib.contextmanager
def open_directory_view(directory: Path, by_path: bool) -> Iterator[DirectoryView]:
    """The directory by its path, or by an open descriptor when the account cannot reach it."""
    if by_path:
        yield DirectoryView(str(directory), ())
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield DirectoryView(f"/proc/self/fd/{descriptor}", (descriptor,))
    finally:
        os.close(descriptor)


def can_pass_descriptor() -> bool:
    """Whether directories can be given to the server by descriptor."""
    return sys.platform == "linux" and Path("/proc/self/fd").is_dir()


def major_version(data: Path) -> int | None:
    """The major version of existing data; None when there is none.

    Raises EmbeddedPostgresError when the directory is no data directory.
    """
    if not data.exists():
        return None
    try:
        return int((data / "PG_VERSION").read_text("ascii").split(".")[0])
    except (FileNotFoundError, ValueError) as error:
        raise EmbeddedPostgresError(
            f"{data} is not a PostgreSQL data directory (no usable PG_VERSION in it): move it "
            "away, or choose another directory with --data-dir"
        ) from error


def create_data_directory(
    home: Home, programs: Programs, account: Account, by_path: bool, lock: int, log: BoundedLog
) -> None:
    """Make the data directory: complete and on disk under its name, or not at all.

    The marker of finished data is its name, because initdb writes PG_VERSION first. Raises
    EmbeddedPostgresError with initdb's reason.
    """
    for unfinished in home.root.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(unfinished)
    directory = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=home.root))
    try:
        if account.switch:
            os.chown(directory, account.uid, account.gid)
        with open_directory_view(directory, by_path) as view:
            command = [str(programs.directory / "initdb"), "-D", view.path, *_options(programs)]
            program = process.start_program(
                command, account, (*view.descriptors, lock), signal.SIGTERM
            )
            assert program.stdout is not None
            output = log.follow(program.stdout)
            if program.wait() != 0:
                raise from_output("create its database", output.output(), home.root, home.log)
        directory.rename(home.data)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    _sync(home.root)


def remove_stale_lock_file(data: Path) -> None:
    """Remove the pid file of a server that is gone.

    Called while nobody else has the server lock, so no process of a server started from here
    lives. PostgreSQL itself would take the number of a zombie, or of another program after a
    restart of the container, for a running server. Raises EmbeddedPostgresError when a server
    that was started in some other way runs on the data.
    """
    file = data / "postmaster.pid"
    if sys.platform != "linux" or not file.exists():
        return
    try:
        pid = int(file.read_text("utf-8", "replace").split("\n", 1)[0])
        runs = os.path.samefile(f"/proc/{pid}/cwd", data)
    except (ValueError, OSError):
        runs = False
    if runs:
        raise EmbeddedPostgresError(
            f"another PostgreSQL server (process {pid}) runs on {data}: stop it, or choose another "
            "directory with --data-dir"
        )
    file.unlink(missing_ok=True)


def _options(programs: Programs) -> list[str]:
    options = [f"--username={USER}", "--auth=trust", "--encoding=UTF8", "--data-checksums"]
    if programs.major < _BUILTIN_LOCALES_SINCE:
        return [*options, "--locale=C.UTF-8"]
    # The builtin provider sorts the same under every C library, so that a system upgrade never
    # makes an index wrong.
    return [
        *options,
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--no-instructions",
    ]


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
