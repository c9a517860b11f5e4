"""Homes of embedded servers."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from tests.support.servers.embedded_servers import (
    NOBODY,
    open_directory,
    run_as_ordinary_user,
    server_is_gone,
)
from tests.support.waiting import wait_for

_CREATE = """
import sys
from contextlib import closing
from pathlib import Path
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
EmbeddedPostgres.start(Path(sys.argv[1])).close()
"""


@pytest.fixture(scope="package")
def shared_home() -> Iterator[Path]:
    """Yield one home with a database, which every user can reach by its path."""
    with open_directory() as place:
        EmbeddedPostgres.start(place / "postgres").close()
        yield place / "postgres"


@pytest.fixture
def home(shared_home: Path) -> Iterator[Path]:
    """Yield the home; assert that no process uses it before and after the test."""
    assert server_is_gone(shared_home)
    yield shared_home
    wait_for("the server has stopped", lambda: server_is_gone(shared_home))
    assert list((shared_home / "s").iterdir()) == []


@pytest.fixture(scope="package")
def ordinary_home() -> Iterator[Path]:
    """Yield a home with a database that an ordinary user created below its own directory."""
    with open_directory(owner=NOBODY) as place:
        place.chmod(0o700)
        run_as_ordinary_user(_CREATE, str(place / "postgres"))
        yield place / "postgres"


@pytest.fixture
def used(home: Path) -> Iterator[EmbeddedPostgres]:
    """Yield a server that runs on the home."""
    with closing(EmbeddedPostgres.start(home)) as server:
        yield server
