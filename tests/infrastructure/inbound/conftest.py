"""The warm server of all tests of HTTP and of the tools for models."""

from collections.abc import Iterator

import pytest

from tests.support.servers.http_server import http_server
from tests.support.servers.server import Server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server. Each test spawns for a session of its own, so that none sees another's runs."""
    with http_server(tmp_path_factory.mktemp("door")) as server:
        yield server
