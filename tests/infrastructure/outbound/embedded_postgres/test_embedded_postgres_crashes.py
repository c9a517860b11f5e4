"""Killed processes come back, and unused ones end."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from infrastructure.outbound.embedded_postgres import binaries
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from tests.support.servers.embedded_servers import (
    PROJECT,
    answer,
    answers,
    holder,
    keeper_of,
    keepers_of,
    kill,
    leave,
    postmaster_of,
    server_is_gone,
    start_holder,
)
from tests.support.servers.process_table import is_alive
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill

_NEVER_REAPS = """
import ctypes, os, signal, sys
from pathlib import Path
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from tests.support.servers.embedded_servers import (
    answer, keeper_of, kill, postmaster_of,
)
from tests.support.waiting import wait_for
home = Path(sys.argv[1])
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans become children of this process
used = EmbeddedPostgres.start(home)
server = postmaster_of(home)
status = lambda: Path(f"/proc/{server}/stat").read_text().split()
keeper = keeper_of(home)
os.kill(server, signal.SIGSTOP)  # so that it dies after its keeper, which could still reap it
kill(keeper)
wait_for("the server to be this process's child", lambda: status()[3] == str(os.getpid()))
kill(server)
wait_for("the server to be a zombie", lambda: status()[2] == "Z")
used.ensure_running()
print(answer(used.conninfo))
used.close()
"""


def test_server_ends_with_its_last_killed_user(home: Path) -> None:
    with holder(home) as starter, holder(home) as second, holder(home) as third:
        server = postmaster_of(home)
        starter.kill()
        starter.wait()
        leave(second)
        assert is_alive(server)
        third.kill()
        third.wait()
        wait_for("the server ended with its last user", lambda: server_is_gone(home))


def test_keeper_killed_in_initdb_is_replaced(tmp_path: Path) -> None:
    home = tmp_path / "postgres"
    process = start_holder(home)
    try:
        wait_for("initdb is at work", lambda: bool(list(home.glob("init-*/base"))))
        kill(*keepers_of(home))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert list(home.glob("init-*")) == []
        leave(process)
    finally:
        process.kill()
        process.communicate()


def test_starter_killed_in_initdb_leaves_no_server(tmp_path: Path) -> None:
    home = tmp_path / "postgres"
    process = start_holder(home)
    wait_for("initdb is at work", lambda: bool(list(home.glob("init-*/base"))))
    process.kill()
    process.communicate()
    wait_for("the unused server has ended", lambda: server_is_gone(home))


def test_server_of_background_starter_can_be_interrupted(home: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = start_holder(home)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        ignored = {pid: _ignores_interrupts(pid) for pid in (process.pid, keeper_of(home))}
        assert ignored == {process.pid: True, keeper_of(home): False}
        leave(process)
    finally:
        process.kill()
        process.communicate()


def _ignores_interrupts(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(mask, 16) & 1 << signal.SIGINT - 1)


def test_killed_server_is_started_again(home: Path, used: EmbeddedPostgres) -> None:
    _write(used.conninfo, 1)
    for _ in range(2):
        server, keeper = postmaster_of(home), keeper_of(home)
        kill(server)
        wait_for("the server answers again", lambda: answers(used.conninfo))
        assert postmaster_of(home) != server
        assert keeper_of(home) == keeper
    used.ensure_running()
    assert _read(used.conninfo) == [1]


def test_backends_of_killed_server_hinder_nothing(home: Path, used: EmbeddedPostgres) -> None:
    spinning = psycopg.connect(used.conninfo, autocommit=True)
    spinning.pgconn.send_query(b"DO 'BEGIN LOOP END LOOP; END'")
    kill(postmaster_of(home))
    wait_for("the server answers again", lambda: answers(used.conninfo))
    spinning.close()


def test_killed_keeper_takes_its_server_along(home: Path, used: EmbeddedPostgres) -> None:
    _write(used.conninfo, 2)
    server, keeper = postmaster_of(home), keeper_of(home)
    kill(keeper)
    wait_for("the server has followed its keeper", lambda: not is_alive(server))
    assert _state_of(home) == "shut down"
    used.ensure_running()
    assert _read(used.conninfo) == [2]
    assert keeper_of(home) != keeper


def test_use_after_death_of_keeper_waits_for_old_server(home: Path, used: EmbeddedPostgres) -> None:
    for _ in range(3):
        kill(keeper_of(home))
        # The old server may answer for a moment more: it is back when it has a keeper again.
        wait_for("the server answers again", lambda: _revived(used) and len(keepers_of(home)) == 1)


def test_keeper_and_server_killed_together_come_back(home: Path, used: EmbeddedPostgres) -> None:
    _write(used.conninfo, 3)
    began = time.monotonic()
    kill(keeper_of(home), postmaster_of(home))
    used.ensure_running()
    assert _read(used.conninfo) == [3]
    assert time.monotonic() - began < 30.0


def test_everything_killed_at_once_is_found_again(home: Path) -> None:
    with holder(home) as process:
        kill(process.pid, keeper_of(home), postmaster_of(home))
        process.wait()
    with closing(EmbeddedPostgres.start(home)) as used:
        assert answer(used.conninfo) == 42


def test_dead_server_that_nobody_reaps_hinders_nothing(home: Path) -> None:
    command = [sys.executable, "-c", _NEVER_REAPS, str(home)]
    ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "42\n"


def test_other_process_in_pid_file_hinders_nothing(home: Path) -> None:
    owner = (home / "data").stat()
    file = home / "data" / "postmaster.pid"
    other_user = owner.st_uid if os.geteuid() == 0 else None
    foreign_process = subprocess.Popen(["sleep", "60"], cwd="/", user=other_user)
    try:
        file.write_text(f"{foreign_process.pid}\n{home}/data\n0\n5432\n{home}/s\n\n0 0\nready\n")
        os.chown(file, owner.st_uid, owner.st_gid)
        used = EmbeddedPostgres.start(home)
        assert answer(used.conninfo) == 42
        used.close()
    finally:
        foreign_process.kill()
        foreign_process.wait()


def _revived(used: EmbeddedPostgres) -> bool:
    used.ensure_running()
    return answers(used.conninfo)


def _state_of(home: Path) -> str:
    command = [str(binaries.installed_directories()[-1] / "pg_controldata"), str(home / "data")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    line = next(line for line in shown.splitlines() if line.startswith("Database cluster state"))
    return line.partition(":")[2].strip()


def _write(conninfo: str, number: int) -> None:
    with psycopg.connect(conninfo) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept (number int)")
        connection.execute("INSERT INTO kept VALUES (%s)", [number])


def _read(conninfo: str) -> list[int]:
    with psycopg.connect(conninfo) as connection:
        return [row[0] for row in connection.execute("SELECT number FROM kept").fetchall()]
