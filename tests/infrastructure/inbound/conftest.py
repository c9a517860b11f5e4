"""The server of all tests of HTTP and of the tools for models; what it wrote is looked through at
the end."""

from collections.abc import Iterator

import pytest

from tests.support.servers.http_server import House, open_house


@pytest.fixture(scope="package")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The server. Each test spawns for a session of its own, so that none sees another's runs."""
    folder = tmp_path_factory.mktemp("door")
    folder.chmod(0o755)
    house = open_house(folder)
    with house.server:
        yield house
    log = house.server.log()
    assert "Traceback" not in log, log[-5000:]
    assert " ERROR " not in log, log[-5000:]
    for name, secret in house.secrets.items():
        assert secret not in log, f"the {name} token stands in the log"
