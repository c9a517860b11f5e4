"""Server of this folder: orchestrators that yield."""

from collections.abc import Iterator

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.orchestrators import orchestrating
from tests.support.servers.server import Server, serving


@pytest.fixture(scope="package")
def one_server(databases: Databases) -> Iterator[Server]:
    with serving(databases, orchestrating, dies=True) as running:
        yield running


@pytest.fixture
def server(one_server: Server) -> Server:
    """Return the server, running whatever the previous test did to it."""
    one_server.ensure_running()
    return one_server
