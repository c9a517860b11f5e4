"""Uses of the embedded server in real processes, and checks afterwards."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.locks import FileLock

PROJECT = Path(__file__).resolve().parents[3]
NOBODY = 65534
_HOLDER = """
import sys
from pathlib import Path
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
used = EmbeddedPostgres.start(Path(sys.argv[1]), timeout_seconds=30)
print("ready", flush=True)
sys.stdin.read()
used.close()
"""


def server_is_gone(home: Path) -> bool:
    """Return True if no process of the server of `home` is alive, including its keeper."""
    lock = FileLock(Home.at(home).server_lock)
    try:
        return lock.try_exclusive()
    finally:
        lock.close()


def postmaster_of(home: Path) -> int:
    """Return the process id of the running server."""
    return int((home / "data" / "postmaster.pid").read_text().split("\n", 1)[0])


def keepers_of(home: Path) -> list[int]:
    """Return the process ids of the keepers of `home`."""
    command = ["ps", "-ww", "-e", "-o", "pid=", "-o", "stat=", "-o", "args="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [
        int(row[0])
        for row in rows
        if not row[1].startswith("Z")
        and "embedded_postgres.supervisor" in row[2]
        and str(home.resolve()) in row[2]
    ]


def keeper_of(home: Path) -> int:
    """Return the process id of the running server's keeper, its parent process."""
    (keeper,) = keepers_of(home)
    command = ["ps", "-o", "ppid=", "-p", str(postmaster_of(home))]
    parent = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert parent == keeper
    return keeper


def kill(*pids: int) -> None:
    """kill -9, one after the other."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def answer(conninfo: str) -> int:
    """Run one query on the database."""
    with psycopg.connect(conninfo) as connection:
        row = connection.execute("SELECT 42").fetchone()
    assert row is not None
    return int(row[0])


def answers(conninfo: str) -> bool:
    """Return True if the database can be reached now."""
    try:
        return answer(conninfo) == 42
    except psycopg.OperationalError:
        return False


@contextmanager
def holder(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield another process that uses the server; it ends when its standard input ends."""
    process = start_holder(home)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def start_holder(home: Path) -> subprocess.Popen[str]:
    """Start a process that uses the server and prints `ready`. The caller ends it."""
    return subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )


def leave(process: subprocess.Popen[str]) -> None:
    """Let a holder leave in good order."""
    process.communicate(timeout=15)
    assert process.returncode == 0


def as_ordinary_user() -> tuple[str, ...]:
    """Return the command prefix that runs a command as a user other than root; empty if this is not
    root.

    Root becomes `nobody`. The right to read files of root lets it run an interpreter or a checkout
    below /root; it gives no right to write, and none to be root.
    """
    if os.geteuid() != 0:
        return ()
    identity = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    reading = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    return ("setpriv", *identity, *reading)


def run_as_ordinary_user(script: str, *arguments: str) -> str:
    """Return the output of a Python script that runs as a user other than root."""
    command = [*as_ordinary_user(), sys.executable, "-c", script, *arguments]
    ended = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@contextmanager
def open_directory(owner: int | None = None) -> Iterator[Path]:
    """Yield a temporary directory that every user can enter."""
    directory = Path(tempfile.mkdtemp(prefix="spawnlog-test-", dir="/tmp"))
    directory.chmod(0o755)
    if owner is not None and os.geteuid() == 0:
        os.chown(directory, owner, owner)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)
