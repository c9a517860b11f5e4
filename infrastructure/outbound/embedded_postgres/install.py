"""Preparation of everything that the server needs to start."""

import contextlib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from infrastructure.outbound.embedded_postgres import binaries, data_directory
from infrastructure.outbound.embedded_postgres.account import (
    Account,
    choose_account,
    may_enter,
    may_run,
)
from infrastructure.outbound.embedded_postgres.binaries import Programs
from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError
from infrastructure.outbound.embedded_postgres.process import BoundedLog

# Copied programs of homes that the account cannot enter, while their servers run. Never data.
_SHARED_PLACE = Path("/var/lib/spawnlog-postgresql")


@dataclass(frozen=True)
class Installation:
    """A server that is ready to start.

    Attributes:
        home: Home of the server.
        account: Account of the server.
        programs: Programs that the account can execute.
        by_path: False if the account cannot reach the home by its path.
    """

    home: Home
    account: Account
    programs: Programs
    by_path: bool

    def remove_what_lies_outside(self) -> None:
        """Remove the socket directory and the copied programs if they are outside the home."""
        if not self.home.sockets_are_inside:
            shutil.rmtree(self.home.sockets, ignore_errors=True)
        shared = _SHARED_PLACE / self.home.name
        if shared in self.programs.directory.parents:
            shutil.rmtree(shared, ignore_errors=True)
            with contextlib.suppress(OSError):
                _SHARED_PLACE.rmdir()


def prepare_installation(
    home: Home, directories: list[Path], lock: int, log: BoundedLog
) -> Installation:
    """Choose account and programs, and create what is missing, including the data.

    Args:
        home: Home of the server.
        directories: Candidate directories of the programs.
        lock: Descriptor of the server lock; started programs inherit it.
        log: Log for the output of programs.

    Raises:
        EmbeddedPostgresError: The server cannot run.
        OSError: A file or directory cannot be created.
    """
    account = choose_account(home.data)
    data_major = data_directory.major_version(home.data)
    programs = binaries.choose_programs(directories, data_major)
    if account.switch and home.root.stat().st_uid == os.geteuid():
        home.root.chmod(0o711)
    by_path = may_enter(account, home.root)
    if not by_path and not data_directory.can_pass_descriptor():
        raise EmbeddedPostgresError(
            f"PostgreSQL does not run as root, but the user that runs it instead cannot enter "
            f"{home.root}: choose with --data-dir a directory that every user can enter, or run as "
            "an ordinary user"
        )
    programs = _runnable_programs(programs, account, home, by_path)
    installed = Installation(home, account, programs, by_path)
    try:
        if data_major is None:
            data_directory.create_data_directory(home, programs, account, by_path, lock, log)
        _make_socket_directory(home.sockets, account)
    except BaseException:
        installed.remove_what_lies_outside()
        raise
    return installed


def _runnable_programs(programs: Programs, account: Account, home: Home, by_path: bool) -> Programs:
    """Return the programs, or a copy of them if the account cannot execute them."""
    if may_run(account, programs.directory / "initdb"):
        return programs
    if by_path:
        copied = binaries.copy_into(programs, home.root)
    else:
        place = _SHARED_PLACE / home.name
        place.mkdir(parents=True, exist_ok=True)
        _SHARED_PLACE.chmod(0o755)
        place.chmod(0o755)
        copied = binaries.copy_into(programs, place)
    if not may_run(account, copied.directory / "initdb"):
        Installation(home, account, copied, by_path).remove_what_lies_outside()
        raise EmbeddedPostgresError(
            f"the user that runs PostgreSQL instead of root can execute it neither in "
            f"{programs.directory} nor in {copied.directory}: run as an ordinary user, or use "
            "another server with --database-url"
        )
    return copied


def _make_socket_directory(path: Path, account: Account) -> None:
    """Create the socket directory, empty and private to the account."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (account.uid, os.geteuid()):
        raise EmbeddedPostgresError(
            f"{path} belongs to another user and cannot hold the socket of the embedded "
            "PostgreSQL: remove it, or choose another directory with --data-dir"
        )
    for left in path.iterdir():
        left.unlink()
    path.chmod(0o700)
    if account.switch:
        os.chown(path, account.uid, account.gid)
