"""Starting, sharing and leaving the embedded server."""

import multiprocessing
import os
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError
from infrastructure.outbound.embedded_postgres.locks import FileLock
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from tests.support.servers.embedded_servers import (
    answer,
    answers,
    keeper_of,
    leave,
    postmaster_of,
    server_is_gone,
    start_holder,
)
from tests.support.servers.process_table import is_alive
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill
WARM_START_SECONDS_MAX = 2.0
SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "data_checksums": "on",
    "listen_addresses": "",
    "server_encoding": "UTF8",
}


def test_first_start_creates_durable_utf8_database(tmp_path: Path) -> None:
    with closing(EmbeddedPostgres.start(tmp_path / "data" / "postgres")) as used:
        with psycopg.connect(used.conninfo) as connection:
            shown = connection.execute(
                "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(SETTINGS)]
            ).fetchall()
            row = connection.execute(
                "SELECT current_database(), datlocale FROM pg_database WHERE datname = %s",
                ["spawnlog"],
            ).fetchone()
    assert dict(shown) == SETTINGS
    assert row == ("spawnlog", "C.UTF-8")


def test_only_owner_may_enter_socket_directory(home: Path, used: EmbeddedPostgres) -> None:
    found = (home / "s").stat()
    assert found.st_mode & 0o777 == 0o700
    assert found.st_uid == (home / "data").stat().st_uid


def test_last_user_leaves_nothing_behind(home: Path) -> None:
    began = time.monotonic()
    used = EmbeddedPostgres.start(home)
    assert time.monotonic() - began < WARM_START_SECONDS_MAX
    server, keeper = postmaster_of(home), keeper_of(home)
    segments = _shared_memory_of(server)
    used.close()
    used.close()
    assert server_is_gone(home)
    wait_for("both processes ended", lambda: not is_alive(server) and not is_alive(keeper))
    assert not (home / "data" / "postmaster.pid").exists()
    assert [segment for segment in segments if Path(segment).exists()] == []
    assert _sysv_segments_of(server) == []


def test_several_uses_in_one_process_count_one_by_one(home: Path) -> None:
    first = EmbeddedPostgres.start(home)
    second = EmbeddedPostgres.start(home)
    server = postmaster_of(home)
    first.close()
    assert answer(second.conninfo) == 42
    assert postmaster_of(home) == server
    second.close()
    assert server_is_gone(home)
    with pytest.raises(EmbeddedPostgresError, match="was closed"):
        second.ensure_running()


def test_four_starts_at_once_share_one_server(tmp_path: Path) -> None:
    home = tmp_path / "postgres"
    holders = [start_holder(home) for _ in range(4)]
    try:
        for process in holders:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        started = (home / "server.log").read_text().count("starting PostgreSQL")
        assert started == 1
        assert list(home.glob("init-*")) == []
        for process in holders:
            leave(process)
    finally:
        for process in holders:
            process.kill()
            process.communicate()
    wait_for("the server has stopped", lambda: server_is_gone(home))


def test_home_with_long_path_has_its_socket_elsewhere(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 20) / "a place, with: odd 'signs'" / "postgres"
    used = EmbeddedPostgres.start(home)
    sockets = Home.at(home).sockets
    try:
        assert answer(used.conninfo) == 42
        assert sockets.parent == Path("/tmp")
        assert sockets.stat().st_mode & 0o777 == 0o700
    finally:
        used.close()
    assert not sockets.exists()


def test_forked_child_does_not_keep_the_server(home: Path) -> None:
    used = EmbeddedPostgres.start(home)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    try:
        used.close()
        assert server_is_gone(home)
    finally:
        os.close(reader)
        os.close(writer)
        os.waitpid(child, 0)


def test_executed_child_inherits_no_lock(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "a.lock")
    assert lock.try_exclusive()
    context = multiprocessing.get_context("spawn")
    inherits = context.Process(target=_wait_a_little)
    inherits.start()
    lock.close()
    again = FileLock(tmp_path / "a.lock")
    try:
        assert again.try_exclusive()
    finally:
        again.close()
        inherits.kill()
        inherits.join()
        inherits.close()


def test_server_without_free_connections_is_running(home: Path) -> None:
    used = EmbeddedPostgres.start(home)
    connections: list[psycopg.Connection] = []
    try:
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            _take_every(connections, used.conninfo)
        assert not answers(used.conninfo)
        used.ensure_running()
    finally:
        for connection in connections:
            connection.close()
        used.close()


def _wait_a_little() -> None:
    time.sleep(30)


def _take_every(connections: list[psycopg.Connection], conninfo: str) -> None:
    while True:
        connections.append(psycopg.connect(conninfo))


def _shared_memory_of(pid: int) -> list[str]:
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return sorted({line.split()[-1] for line in lines if "/dev/shm/" in line})


def _sysv_segments_of(pid: int) -> list[str]:
    table = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return [line for line in table if line.split()[4] == str(pid)]
