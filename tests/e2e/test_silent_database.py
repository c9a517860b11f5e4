"""A database that holds its connections and does not answer, and one that is of a newer format."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import psycopg
import pytest

from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.server.database import migrate_database
from tests.support.servers.configurations import agent, command, configuration
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.embedded_servers import postmaster_of
from tests.support.servers.process_table import children
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill

ANSWER_SECONDS_MAX = 3.0
STOP_SECONDS = 1.0
ENDED_SECONDS_MAX = 5.0
STOPPED_SECONDS_MAX = 12.0

_QUICK_STOP = f"""
import runpy, sys
from infrastructure.server import lifecycle
lifecycle.STOP_SECONDS_MAX = {STOP_SECONDS}
module, sys.argv[1:] = sys.argv[3], sys.argv[4:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""The program with a shorter time limit for its end."""


@contextlib.contextmanager
def serving(made_data_dir: Path, *prefix: str) -> Iterator[Server]:
    config = configuration(agent(), leaseSeconds=10, drainSeconds=0)
    with new_place() as place:
        data = copied(made_data_dir, place / "data")
        with Server(data, config, prefix=prefix) as running:
            yield running


@pytest.fixture
def server(made_data_dir: Path) -> Iterator[Server]:
    with serving(made_data_dir) as running:
        yield running


@pytest.fixture
def hasty_server(made_data_dir: Path) -> Iterator[Server]:
    with serving(made_data_dir, sys.executable, "-c", _QUICK_STOP) as running:
        yield running


@contextlib.contextmanager
def silence(server: Server) -> Iterator[None]:
    """Freeze all processes of the database during the block."""
    postmaster = postmaster_of(server.data_dir / "postgres")
    stopped = [postmaster]
    os.kill(postmaster, signal.SIGSTOP)
    try:
        for pid in children(postmaster):
            os.kill(pid, signal.SIGSTOP)
            stopped.append(pid)
        yield
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def asked(server: Server) -> tuple[httpx2.Response, float]:
    """Return the answer about readiness, and its duration in seconds."""
    began = time.monotonic()
    answer = server.http.get("/readyz")
    return answer, time.monotonic() - began


def is_ready_again(server: Server) -> None:
    wait_for("readiness", lambda: asked(server)[0].status_code == 200)
    answer = server.spawn(cleanup="delete")
    assert answer.status_code == 201, answer.text
    assert server.run(answer.json()["runId"], "archived")["outcome"] == "success"


def test_it_is_not_ready_while_the_database_is_silent_or_of_a_newer_format(
    server: Server,
) -> None:
    assert asked(server)[0].status_code == 200
    with silence(server):
        for _ in range(2):
            answer, seconds = asked(server)
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
            assert "the database does not respond" in answer.json()["detail"]
            assert seconds < ANSWER_SECONDS_MAX
        assert server.http.get("/healthz").status_code == 200
    is_ready_again(server)
    conninfo = Home.at(server.data_dir / "postgres").conninfo()
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("UPDATE log_head SET format = format + 98")
        answer, _ = asked(server)
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert "the log has format 99" in answer.json()["detail"]
        assert "install a newer spawnlog" in answer.json()["detail"]
        connection.execute("UPDATE log_head SET format = format - 98")
    is_ready_again(server)


def test_stop_does_not_wait_for_database_that_is_gone() -> None:
    sleeper = agent("main", command("sleep", "60"), default=True)
    with new_place() as place:
        home = place / "postgres"
        with closing(EmbeddedPostgres.start(home)) as database:
            url = database.conninfo
            migrate_database(url, home)
            server = Server(
                place / "data", configuration(sleeper, drainSeconds=0), database_url=url
            )
            server.start()
            run_id = server.accepted()
            server.run(run_id, "started")
        began = time.monotonic()
        server.terminate()
        assert server.wait_exit() == 0
        assert time.monotonic() - began < STOPPED_SECONDS_MAX
        assert "runs and due work are left for the next start" in server.log()
        with closing(EmbeddedPostgres.start(home)), server:
            run = server.run(run_id, "announced")
    assert (run["outcome"], run["error"].partition(":")[0]) == ("error", "interrupted")


def test_a_silent_database_does_not_keep_a_server_that_is_told_to_stop(
    hasty_server: Server,
) -> None:
    with silence(hasty_server):
        began = time.monotonic()
        hasty_server.terminate()
        assert hasty_server.wait_exit() == 1
        assert time.monotonic() - began < ENDED_SECONDS_MAX
    assert "the process exits now" in hasty_server.log()
    # The next start finds everything in order.
    hasty_server.start()
    is_ready_again(hasty_server)
    assert hasty_server.stop() == 0
