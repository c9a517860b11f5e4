"""The shared server of all tests of HTTP and MCP."""

from collections.abc import Iterator

import pytest

from tests.support.servers.http_server import http_server
from tests.support.servers.server import Server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield the server. Each test spawns for its own session, so that tests do not see each other's
    runs.
    """
    with http_server(tmp_path_factory.mktemp("door")) as server:
        yield server
