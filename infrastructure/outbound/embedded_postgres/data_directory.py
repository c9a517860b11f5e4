"""Data directory: its version, its creation, and the files that a killed server left.

**Home that the account cannot reach.** Root's home is often below a directory of mode 0700 (/root,
a temporary directory) that the server's user cannot enter. spawnlog does not change the modes of
directories that it does not own, and still keeps the data in the home. Root opens the directory and
passes the descriptor to the server, with `/proc/self/fd/<n>` as the data directory. The kernel
resolves such a path to the open directory and checks the permissions of that directory only. Every
process of the server inherits the descriptor. So the data is where it was asked for, moves and is
deleted with its home, and nothing durable is elsewhere. This works on Linux only; without /proc
such a home is refused.
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

# A socket path must not contain commas or colons, which separate hosts and ports in libpq and
# SQLAlchemy, nor percent signs, which configuration parsers interpret.
_PLAIN = re.compile(r"[A-Za-z0-9_./+=~-]+")


@dataclass(frozen=True)
class Home:
    """Directory of one embedded server, by its real path.

    Locks: `start.lock` is held while a server is started, joined or stopped. Every user of the
    server holds `holders.lock` as a shared lock. The supervisor and every process of the server
    hold `server.lock`.
    """

    root: Path

    @classmethod
    def at(cls, path: Path) -> "Home":
        """Return the home at `path`. Two spellings of one directory give equal homes."""
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
        """Hash of twelve characters that identifies this home in shared places."""
        return hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]

    @property
    def sockets(self) -> Path:
        """Return the directory of the socket: in the home, or a short one in /tmp if the path would
        be too long.

        It is /tmp and not the configured temporary directory, because that differs between
        processes.
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
        """Return the libpq URL of `database`."""
        return f"postgresql://{USER}@/{database}?host={self.sockets}&port={PORT}"


_UNFINISHED = "init-"
_BUILTIN_LOCALES_SINCE = 17


@dataclass(frozen=True)
class DirectoryView:
    """Path under which the server's processes see a directory, and the descriptors that it
    needs."""

    path: str
    descriptors: tuple[int, ...]


@contextlib.contextmanager
def open_directory_view(directory: Path, by_path: bool) -> Iterator[DirectoryView]:
    """Yield a view of the directory by path, or by an open descriptor if the account cannot reach
    it."""
    if by_path:
        yield DirectoryView(str(directory), ())
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield DirectoryView(f"/proc/self/fd/{descriptor}", (descriptor,))
    finally:
        os.close(descriptor)


def can_pass_descriptor() -> bool:
    """Return True if the server can get directories by descriptor."""
    return sys.platform == "linux" and Path("/proc/self/fd").is_dir()


def major_version(data: Path) -> int | None:
    """Return the major version of existing data; None if there is no data.

    Raises:
        EmbeddedPostgresError: The directory is not a data directory.
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
    """Create the data directory: complete and synced under its name, or not at all.

    The name marks complete data, because initdb writes PG_VERSION first.

    Args:
        home: The home.
        programs: The programs.
        account: The account of the server.
        by_path: True if the account can reach the home by path.
        lock: Descriptor of the server lock, which initdb inherits.
        log: Log for the output of initdb.

    Raises:
        EmbeddedPostgresError: initdb failed; the message has its reason.
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
    """Remove the pid file of a dead server.

    Call it while holding the server lock alone, so that no process of a server started from here is
    alive. PostgreSQL itself would mistake a zombie for a running server, or another program that
    got the pid after a restart of the container.

    Raises:
        EmbeddedPostgresError: A server that was started in another way runs on the data.
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
    # The builtin provider sorts the same with every C library, so a system upgrade never corrupts
    # an index.
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
