"""Places for real servers that are found deserted afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer
from tests.support.servers.mortal_server import Mortal, mortal_on
from tests.support.servers.preparing_server import Porter
from tests.support.servers.spawning_server import Stories
from tests.support.servers.talking_server import Talking, talking_on
from tests.support.servers.yielding_server import Yielding, yielding_on


@pytest.fixture(scope="module")
def module_database_url(databases: Databases) -> Iterator[str]:
    """A database for the servers of the module."""
    url = databases.create()
    yield url
    databases.drop(url)


@pytest.fixture(scope="package")
def one_that_dies(made_data_dir: Path) -> Iterator[Mortal]:
    with new_place() as place:
        with Mortal(copied(made_data_dir, place / "data"), place / "notes") as server:
            yield server


@pytest.fixture
def mortal(one_that_dies: Mortal) -> Mortal:
    """A server to kill, running whatever the test before has made of it."""
    one_that_dies.alive()
    return one_that_dies


@pytest.fixture(scope="package")
def one_porter(databases: Databases) -> Iterator[Porter]:
    with mortal_on(databases, Porter) as server:
        yield server


@pytest.fixture
def porter(one_porter: Porter) -> Porter:
    """A server that runs, and whose agents have no workspace yet. Its log is verified once all is
    over."""
    one_porter.alive()
    one_porter.places.clear()
    return one_porter


@pytest.fixture(scope="package")
def server(made_data_dir: Path) -> Iterator[Stories]:
    """One server with an agent for every story."""
    with new_place() as place:
        with Stories(copied(made_data_dir, place / "data"), place / "notes") as stories:
            yield stories
        assert " ERROR " not in stories.log(), stories.log()


@pytest.fixture(scope="package")
def partner(server: Stories) -> Iterator[Stories]:
    """Another server on the same data directory."""
    other = Stories(server.data_dir, server.folder)
    other.log_path = server.log_path.with_name("partner.log")
    with other:
        yield other
    assert " ERROR " not in other.log(), other.log()


@pytest.fixture(scope="module")
def outside() -> Iterator[HookServer]:
    """Who is told and asked over HTTP."""
    with HookServer() as server:
        yield server


@pytest.fixture(scope="module")
def one_yielding(databases: Databases) -> Iterator[Yielding]:
    """Orchestrators that yield, on a server of the module's own."""
    with yielding_on(databases) as server:
        yield server


@pytest.fixture(scope="module")
def one_talking(databases: Databases, outside: HookServer) -> Iterator[Talking]:
    """Children that stay, on a server of the module's own."""
    with talking_on(databases, outside) as server:
        yield server
