"""Where the parts of an embedded server lie."""

import os
from pathlib import Path

import pytest

from infrastructure.outbound.embedded_postgres.data_directory import Home


def test_the_socket_lies_in_the_home() -> None:
    assert Home.at(Path("/srv/spawnlog/postgres")).sockets == Path("/srv/spawnlog/postgres/s")


@pytest.mark.parametrize("name", ["x" * 84, "a,b", "a:b", "a b", "100%", "ä", "a'b", "\udc80"])
def test_the_socket_lies_elsewhere_when_its_path_is_too_long_or_not_plain(name: str) -> None:
    sockets = Home.at(Path("/", name)).sockets
    assert sockets.parent == Path("/tmp")
    assert len(os.fsencode(sockets)) < 40


def test_a_path_of_one_hundred_bytes_is_short_enough() -> None:
    longest = Path("/", "x" * 83)
    assert len(str(longest / "s" / ".s.PGSQL.5432")) == 100
    assert Home.at(longest).sockets == longest / "s"


def test_two_spellings_of_one_directory_are_one_home(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert Home.at(tmp_path / "link" / "postgres") == Home.at(tmp_path / "real" / "postgres")
