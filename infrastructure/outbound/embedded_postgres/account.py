"""Operating system account of the embedded server.

PostgreSQL refuses to run as root, and nothing here needs root. An ordinary user runs the server
itself. Root switches to an unprivileged user: the owner of existing data, else the first of
`spawnlog`, `postgres` and `nobody` that exists. No user is created.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError

if sys.platform != "win32":
    import pwd

_CANDIDATES = ("spawnlog", "postgres", "nobody")
_CHECK_SECONDS_MAX = 20


@dataclass(frozen=True)
class Account:
    """A user and its group. `switch` is True if the server process has to change to it."""

    uid: int
    gid: int
    switch: bool


def choose_account(data: Path) -> Account:
    """Return the account for the server of `data`, which need not exist yet.

    Raises:
        EmbeddedPostgresError: No account may run the server.
    """
    own_uid = os.geteuid()
    if data.exists():
        owner = data.stat()
        if own_uid != 0 and owner.st_uid != own_uid:
            raise EmbeddedPostgresError(
                f"the data in {data} belongs to user {_name(owner.st_uid)}: run as that user, or "
                "choose another directory with --data-dir"
            )
        if owner.st_uid == 0:
            raise EmbeddedPostgresError(
                f"the data in {data} belongs to root, but PostgreSQL does not run as root: give"
                f" it to an unprivileged user (chown -R postgres {data})"
            )
        return Account(owner.st_uid, owner.st_gid, switch=own_uid == 0)
    if own_uid != 0:
        if _entry(own_uid) is None:
            raise EmbeddedPostgresError(
                f"user id {own_uid} has no name on this machine, so PostgreSQL cannot create a"
                " database for it: add the user to /etc/passwd, or use another server with "
                "--database-url"
            )
        return Account(own_uid, os.getegid(), switch=False)
    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, switch=True)
    raise EmbeddedPostgresError(
        "PostgreSQL does not run as root, but this machine has none of the users "
        f"{', '.join(_CANDIDATES)}: add one, run as an ordinary user, or use another server with "
        "--database-url"
    )


def may_enter(account: Account, directory: Path) -> bool:
    """Return True if the account can reach `directory` by its path."""
    return not account.switch or _succeeds(
        account, ["/bin/sh", "-c", 'cd "$1"', "-", str(directory)]
    )


def may_run(account: Account, program: Path) -> bool:
    """Return True if the account can execute `program`, including its libraries."""
    if not account.switch:
        # `access` checks the real user, as the program will run.
        return os.access(program, os.X_OK)
    return _succeeds(account, [str(program), "--version"])


def cannot_switch(account: Account, error: OSError) -> EmbeddedPostgresError:
    """Return the error for a root that may not become another user, as in a container without
    rights."""
    return EmbeddedPostgresError(
        f"PostgreSQL does not run as root, but this process may not switch to user "
        f"{_name(account.uid)} ({error.strerror}): run as an ordinary user, or use another server "
        "with --database-url"
    )


def _succeeds(account: Account, command: list[str]) -> bool:
    try:
        ended = subprocess.run(
            command,
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_CHECK_SECONDS_MAX,
            check=False,
        )
    except OSError as error:
        if error.filename == command[0]:
            return False
        raise cannot_switch(account, error) from error
    return ended.returncode == 0


def _name(uid: int) -> str:
    entry = _entry(uid)
    return entry.pw_name if entry is not None else str(uid)


def _entry(uid: int) -> "pwd.struct_passwd | None":
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return None
