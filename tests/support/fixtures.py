"""Fixtures for all tests: databases on one embedded server, and a running log on one.

It is a pytest plugin that a process without tests does not import, because that takes long.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from infrastructure.outbound.identity.data_directory import DataDirectory
from infrastructure.outbound.log.schema.connections import LogConnection, open_connection
from infrastructure.server.database import open_database
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.told_logs import ToldLogs
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases, serving_databases
from tests.support.servers.ordinary_user import Becoming, ordinary_user
from tests.support.servers.running_log import RunningLog, running_on


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    with serving_databases() as made:
        yield made


@pytest.fixture(scope="session")
def made_data_dir() -> Iterator[Path]:
    """Yield a data directory with an empty log, to be copied."""
    with new_place() as place:
        directory = DataDirectory.open(place / "data")
        open_database(None, directory.postgres).close()
        yield directory.path


@pytest.fixture
def becoming_ordinary(databases: Databases) -> Becoming:
    """Return a context manager that makes the process an ordinary user.

    No database of other tests is created or dropped meanwhile, because that user cannot reach their
    server.
    """
    databases.settle()
    return ordinary_user


@pytest.fixture
def resting_databases(databases: Databases) -> Databases:
    """Return the databases for tests that limit the whole process: none is created or dropped
    meanwhile.
    """
    databases.settle()
    return databases


@pytest.fixture(scope="session")
def told_logs(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToldLogs]:
    logs = ToldLogs(databases, tmp_path_factory.mktemp("told"))
    yield logs
    logs.drop()


@pytest.fixture
def database_url(
    databases: Databases, told_logs: ToldLogs, request: pytest.FixtureRequest
) -> Iterator[str]:
    """Yield the URL of a separate database, empty after migration or with the log that the mark
    `told` names.
    """
    result = request.node.get_closest_marker("told")
    url = told_logs.copy(result.args[0]) if result else databases.create()
    yield url
    databases.drop(url)


@pytest.fixture
def empty_database_url(databases: Databases) -> Iterator[str]:
    """Yield the URL of a separate database without tables."""
    url = databases.create_empty()
    yield url
    databases.drop(url)


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[LogConnection]:
    """Yield a connection to the database, outside any transaction."""
    opened = await open_connection(database_url, application="test")
    async with opened:
        yield opened


@pytest.fixture
async def running(database_url: str) -> AsyncIterator[RunningLog]:
    """Yield a running log."""
    async with running_on(database_url) as log:
        yield log


@pytest.fixture
def family(running: RunningLog) -> LoggedFamily:
    """Return a family that is recorded in the running log."""
    return LoggedFamily(running.log)
