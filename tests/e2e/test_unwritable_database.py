"""A database that responds but accepts no writes: read-only for a while, or with a full disk."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import httpx2
import psycopg
import pytest

from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.server.database import migrate_database
from tests.support.http.problems import problem_of
from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

ANSWER_SECONDS_MAX = 5.0
LEASE_SECONDS = 1.5
SPAWNS_MAX = 3_000


@contextmanager
def small_disk(place: Path, mebibytes: int) -> Iterator[Path]:
    """Yield a separate file system."""
    disk = place / "disk"
    disk.mkdir()
    options = f"size={mebibytes}m,mode=0755"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
    mount = subprocess.run(command, capture_output=True, text=True, check=False)
    if mount.returncode != 0:
        pytest.skip(
            "NOT TESTED: what a full disk does needs the right to mount a file system (run the"
            f" suite as root): {mount.stderr.strip()}"
        )
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@contextmanager
def servers_on(folder: Path, home: Path, count: int) -> Iterator[tuple[str, list[Server]]]:
    """Yield the URL of a separate PostgreSQL with its data in `home`, and servers on it."""
    with closing(EmbeddedPostgres.start(home)) as database:
        migrate_database(database.conninfo, home)
        config = configuration(
            agent("main", scripted(steps=[{"afterMs": 300, "message": "so far"}])),
            maxChildrenPerAgent=20,
            maxConcurrent=20,
            leaseSeconds=LEASE_SECONDS,
        )
        servers = [
            Server(folder / "data", config, database_url=database.conninfo) for _ in range(count)
        ]
        try:
            for server in servers:
                server.start()
            yield database.conninfo, servers
        finally:
            for server in servers:
                server.stop()


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("unwritable")
    path.chmod(0o755)
    return path


def set_read_only(url: str, word: str) -> None:
    """Switch the whole cluster, including open connections."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {word}")
        connection.execute("SELECT pg_reload_conf()")


def spawn(server: Server) -> httpx2.Response:
    """Return the answer to a spawn of a new session; assert that it comes soon."""
    began = time.monotonic()
    answer = server.spawn(session=f"agent:main:{uuid4()}")
    assert time.monotonic() - began < ANSWER_SECONDS_MAX
    return answer


def require_ready_again(server: Server) -> None:
    wait_for("readiness", lambda: server.http.get("/readyz").status_code == 200)
    answer = spawn(server)
    assert answer.status_code == 201
    server.run(answer.json()["runId"], "announced")


def require_problem(server: Server, answer: httpx2.Response, why: str) -> None:
    """Assert a 503 with the reason, for the request and at `/readyz`, and one line in the server's
    log.
    """
    problem = problem_of(answer, 503, "unavailable")
    assert why in problem["detail"]
    assert int(answer.headers["retry-after"]) >= 1
    readiness = server.http.get("/readyz")
    assert why in problem_of(readiness, 503, "unavailable")["detail"]
    assert server.http.get("/healthz").status_code == 200
    assert "Traceback" not in server.log()
    assert server.log().count("nothing is recorded") == 1


def test_a_read_only_database_is_said_to_be_so_and_reads_go_on(folder: Path) -> None:
    with servers_on(folder, folder / "postgres", 1) as (url, (server,)):
        run_id = spawn(server).json()["runId"]
        server.run(run_id, "announced")
        set_read_only(url, "on")
        wait_for("a refusal", lambda: spawn(server).status_code == 503)
        require_problem(server, spawn(server), "the database is read-only")
        assert server.run(run_id)["stage"] == "announced"
        set_read_only(url, "off")
        require_ready_again(server)
        assert "recording resumed" in server.log()


@pytest.mark.nightly
def test_a_full_disk_is_said_to_be_so_at_once(folder: Path) -> None:
    with (
        small_disk(folder, 300) as disk,
        servers_on(folder, disk / "postgres", 1) as (_, (server,)),
    ):
        require_ready_again(server)
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(65_536))
            except OSError:
                pass
        answer = next(
            number
            for number in (spawn(server) for _ in range(SPAWNS_MAX))
            if number.status_code != 201
        )
        require_problem(server, answer, "the disk of the database is full")
        filler.unlink()
        require_ready_again(server)
        assert server.log_command("verify").returncode == 0


@pytest.mark.nightly
def test_three_servers_whose_leases_lapsed_meanwhile_leave_a_log_that_verifies(
    folder: Path,
) -> None:
    with servers_on(folder, folder / "postgres", 3) as (url, servers):
        run_ids = [server.json()["runId"] for _ in range(8) for server in map(spawn, servers)]
        set_read_only(url, "on")
        lapse_at = time.monotonic() + 2 * LEASE_SECONDS
        wait_for(
            "leases that have lapsed",
            lambda: spawn(servers[0]).status_code == 503 and time.monotonic() > lapse_at,
        )
        set_read_only(url, "off")
        for run_id in run_ids:
            servers[0].run(run_id, "announced")
        for server in servers:
            require_ready_again(server)
        verification = servers[0].log_command("verify")
        assert verification.returncode == 0, verification.stdout + verification.stderr
