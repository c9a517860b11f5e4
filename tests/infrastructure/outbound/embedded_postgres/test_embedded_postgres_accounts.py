"""Account of the server, and files that root leaves unchanged."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from infrastructure.outbound.embedded_postgres import binaries
from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from tests.support.servers.embedded_servers import (
    NOBODY,
    answer,
    kill,
    open_directory,
    postmaster_of,
    run_as_ordinary_user,
    server_is_gone,
)
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root gives the server to another user: run the suite as root"
)

_SHARED_PLACE = Path("/var/lib/spawnlog-postgresql")
_USE = """
import os, sys
from pathlib import Path
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
home = Path(sys.argv[1])
used = EmbeddedPostgres.start(home)
server = int((home / "data" / "postmaster.pid").read_text().split()[0])
print(os.geteuid(), os.stat(f"/proc/{server}").st_uid)
used.close()
"""


def test_an_ordinary_user_runs_the_server_itself(ordinary_home: Path) -> None:
    own, of_server = run_as_ordinary_user(_USE, str(ordinary_home)).split()
    assert own == of_server != "0"
    assert server_is_gone(ordinary_home)


@needs_root
def test_root_gives_the_server_to_an_unprivileged_user(home: Path, used: EmbeddedPostgres) -> None:
    assert _identity_of(postmaster_of(home)) == ((home / "data").stat().st_uid, "0")
    assert (home / "data").stat().st_uid != 0


@needs_root
def test_root_runs_data_of_a_user_as_that_user(ordinary_home: Path) -> None:
    with closing(EmbeddedPostgres.start(ordinary_home)):
        assert _identity_of(postmaster_of(ordinary_home))[0] == NOBODY
    assert run_as_ordinary_user(_USE, str(ordinary_home))


@needs_root
def test_data_may_lie_where_only_root_enters(tmp_path: Path) -> None:
    place = tmp_path / "only-root" / "deeper"
    place.mkdir(parents=True)
    (tmp_path / "only-root").chmod(0o700)
    before = _modes_above(place / "postgres")
    with closing(EmbeddedPostgres.start(place / "postgres")) as used:
        with psycopg.connect(used.conninfo) as connection:
            connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 50000)")
        assert _identity_of(postmaster_of(place / "postgres"))[0] != 0
        kill(postmaster_of(place / "postgres"))
        wait_for("the rows are back after recovery", lambda: _rows(used.conninfo) == 50_000)
    (tmp_path / "only-root").rename(tmp_path / "moved")
    moved = EmbeddedPostgres.start(tmp_path / "moved" / "deeper" / "postgres")
    try:
        assert _rows(moved.conninfo) == 50_000
    finally:
        moved.close()
        (tmp_path / "moved").rename(tmp_path / "only-root")
    assert _modes_above(place / "postgres") == before
    assert (place / "postgres").stat().st_mode & 0o777 == 0o711


@needs_root
def test_programs_are_copied_beside_the_data(home: Path) -> None:
    with _hidden_programs() as programs:
        for _ in range(2):
            with closing(EmbeddedPostgres.start(home, binaries=programs)) as used:
                assert answer(used.conninfo) == 42
                running = os.readlink(f"/proc/{postmaster_of(home)}/exe")
                assert running.startswith(f"{home}/postgresql-18")
    for copied in home.glob("postgresql-*"):
        shutil.rmtree(copied)


@needs_root
def test_programs_are_copied_for_the_time_of_use(tmp_path: Path) -> None:
    # Other tests may use the shared place at the same time, so look only at the entry of this home.
    entry = Home.at(tmp_path / "postgres").name
    with _hidden_programs() as programs:
        with closing(EmbeddedPostgres.start(tmp_path / "postgres", binaries=programs)) as used:
            assert answer(used.conninfo) == 42
            assert entry in _entries(_SHARED_PLACE)
    assert entry not in _entries(_SHARED_PLACE)


@contextmanager
def _hidden_programs() -> Iterator[Path]:
    """Yield the programs of the wheel below a directory that only root can enter."""
    with open_directory() as place:
        place.chmod(0o700)
        newest = binaries.choose_programs(binaries.installed_directories(), None)
        yield binaries.copy_into(newest, place).directory


def _identity_of(pid: int) -> tuple[int, str]:
    """Return the user of a process, and its capabilities as a hexadecimal number."""
    status = Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    uids = set(fields["Uid"].split())
    assert len(uids) == 1
    return int(uids.pop()), fields["CapEff"].strip().lstrip("0") or "0"


def _modes_above(path: Path) -> dict[str, int]:
    return {str(parent): parent.stat().st_mode for parent in path.parents}


def _rows(conninfo: str) -> int:
    try:
        with psycopg.connect(conninfo) as connection:
            row = connection.execute("SELECT count(*) FROM kept").fetchone()
    except psycopg.OperationalError:
        return -1
    assert row is not None
    return int(row[0])


def _entries(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()} if directory.is_dir() else set()
