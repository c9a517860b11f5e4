"""One server for all tests of the client; each has a session of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spawnlog import Client
from tests.support.servers.http_server import House, open_house
from tests.support.servers.recorded_api import RecordedApi, recorded_api


@pytest.fixture(scope="package")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder: Path = tmp_path_factory.mktemp("client")
    folder.chmod(0o755)
    house = open_house(folder)
    with house.server:
        yield house
    log = house.server.log()
    assert "Traceback" not in log, log[-5000:]
    assert " ERROR " not in log, log[-5000:]


@pytest.fixture
def client(house: House) -> Iterator[Client]:
    with Client(house.server.url, token=house.server.token) as client:
        yield client


@pytest.fixture
def api() -> Iterator[RecordedApi]:
    with recorded_api() as served:
        yield served
