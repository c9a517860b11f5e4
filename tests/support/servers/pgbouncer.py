"""Real pgbouncer in front of the databases of the tests."""

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.servers.databases import temporary_home
from tests.support.waiting import wait_for

PORT = 6432
STOP_SECONDS_MAX = 10.0


def _program() -> str:
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if found is None:
        missing = "a real pooler needs pgbouncer (`make pgbouncer`)"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(f"NOT TESTED: {missing}")
    return found


def _listens(place: Path) -> bool:
    """Return whether a connection is taken: the file is there a moment before that."""
    with socket.socket(socket.AF_UNIX) as line, suppress(OSError):
        line.connect(str(place))
        return True
    return False


@contextmanager
def pooled(url: str, mode: str, *more: str) -> Iterator[str]:
    """Yield the URL of a database behind a pooler with this `pool_mode`.

    `more` are further lines of pgbouncer's configuration.
    """
    program, database = _program(), conninfo_to_dict(url)
    sockets = Path(str(database["host"]))
    with temporary_home() as home:
        folder, owner = home.parent, sockets.stat()
        settings = (
            "[databases]",
            f"* = host={sockets} port={database['port']} user={database['user']}",
            "[pgbouncer]",
            "listen_addr =",
            f"listen_port = {PORT}",
            f"unix_socket_dir = {folder}",
            "auth_type = any",
            f"pool_mode = {mode}",
            *more,
        )
        configuration = folder / "pgbouncer.ini"
        configuration.write_text("\n".join(settings), "utf-8")
        command = [program, "-q", str(configuration)]
        if os.geteuid() == 0:
            # PgBouncer refuses to run as root, and only the database's user may use the socket.
            os.chown(folder, owner.st_uid, owner.st_gid)
            command += ["-u", pwd.getpwuid(owner.st_uid).pw_name]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            place = folder / f".s.PGSQL.{PORT}"
            wait_for("pgbouncer listens", lambda: _listens(place) or process.poll() is not None)
            assert process.poll() is None, process.communicate()[1]
            yield (
                f"postgresql://{database['user']}@/{database['dbname']}?host={folder}&port={PORT}"
            )
        finally:
            process.terminate()
            process.communicate(timeout=STOP_SECONDS_MAX)
