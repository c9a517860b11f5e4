"""Layout of an embedded server: its socket, its log, a copy of its programs."""

import io
import os
from pathlib import Path

import pytest

from infrastructure.outbound.embedded_postgres import install
from infrastructure.outbound.embedded_postgres.account import Account
from infrastructure.outbound.embedded_postgres.binaries import Programs
from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError
from infrastructure.outbound.embedded_postgres.process import BoundedLog


def test_the_socket_lies_in_the_home() -> None:
    assert Home.at(Path("/srv/spawnlog/postgres")).sockets == Path("/srv/spawnlog/postgres/s")


@pytest.mark.parametrize("name", ["x" * 84, "a,b", "a b", "100%", "ä", "\udc80"])
def test_socket_of_unusable_path_lies_elsewhere(name: str) -> None:
    sockets = Home.at(Path("/", name)).sockets
    assert sockets.parent == Path("/tmp")
    assert len(os.fsencode(sockets)) < 40


def test_socket_path_of_hundred_bytes_is_taken() -> None:
    longest = Path("/", "x" * 83)
    assert len(str(longest / "s" / ".s.PGSQL.5432")) == 100
    assert Home.at(longest).sockets == longest / "s"


def test_two_spellings_of_one_directory_are_one_home(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert Home.at(tmp_path / "link" / "postgres") == Home.at(tmp_path / "real" / "postgres")


def test_server_log_keeps_newest_lines(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "server.log", bytes_max=1000)
    lines = [f"line {number:04}\n" for number in range(950)]
    followed = log.follow(io.BytesIO("".join(lines).encode()))
    assert followed.output().splitlines()[-1] == "line 0949"
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["server.log", "server.log.1"]
    assert all(file.stat().st_size <= 1010 for file in files)
    newest = files[1].read_text() + files[0].read_text()
    assert newest == "".join(lines)[-len(newest) :]


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "missing" / "server.log")
    followed = log.follow(io.BytesIO(b"FATAL: a reason\n"))
    assert followed.output() == "FATAL: a reason\n"


def test_failed_start_leaves_no_copy_of_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    monkeypatch.setattr(install, "_SHARED_PLACE", shared)
    programs = Programs(tmp_path / "package" / "install" / "bin", "18.4")
    programs.directory.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (programs.directory / name).write_text("no program")
    account = Account(os.geteuid(), os.getegid(), switch=False)
    with pytest.raises(EmbeddedPostgresError, match="can execute it neither in"):
        install._runnable_programs(programs, account, Home.at(tmp_path / "home"), by_path=False)
    assert not shared.exists()
