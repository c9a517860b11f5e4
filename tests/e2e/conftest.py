"""Servers of the end-to-end tests: one that is never killed, one that dies, and their folders."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.databases import Databases
from tests.support.servers.server import SOUND, Server
from tests.support.servers.stories import mortal_stories, stories


@pytest.fixture(scope="module")
def module_database_url(databases: Databases) -> Iterator[str]:
    """Yield a database for the servers of the module."""
    url = databases.create()
    yield url
    databases.drop(url)


@pytest.fixture(scope="package")
def one_that_dies(made_data_dir: Path) -> Iterator[Server]:
    with new_place() as place:
        data = copied(made_data_dir, place / "data")
        with Server(data, mortal_stories(place / "notes"), dies=True) as running:
            yield running
        assert running.log_faults(*SOUND) == []


@pytest.fixture
def mortal(one_that_dies: Server) -> Server:
    """Return a server to kill, running whatever the previous test did to it."""
    one_that_dies.ensure_running()
    return one_that_dies


@pytest.fixture(scope="package")
def server(made_data_dir: Path) -> Iterator[Server]:
    """Yield the shared server, with an agent for every story. No test kills it."""
    with new_place() as place:
        data = copied(made_data_dir, place / "data")
        with Server(data, stories(place / "notes")) as running:
            yield running
        assert " ERROR " not in running.log(), running.log()


@pytest.fixture(scope="package")
def partner(server: Server) -> Iterator[Server]:
    """Yield another server on the same data directory."""
    with server.twin("partner") as second_server:
        yield second_server
    assert " ERROR " not in second_server.log(), second_server.log()
