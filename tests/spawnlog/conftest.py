"""One server for all tests of the client; each has its own session."""

from collections.abc import Iterator

import pytest

from spawnlog import Client
from tests.support.servers.http_server import http_server
from tests.support.servers.recorded_api import RecordedApi, recorded_api
from tests.support.servers.server import Server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with http_server(tmp_path_factory.mktemp("client")) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, token=server.token) as client:
        yield client


@pytest.fixture
def api() -> Iterator[RecordedApi]:
    with recorded_api() as served:
        yield served
