"""One database for the tests of a file, without any table; each test takes a schema of its own."""

import gc
from collections.abc import Iterator

import pytest

from tests.support.servers.databases import Databases


@pytest.fixture(scope="module")
def shared_database_url(databases: Databases) -> Iterator[str]:
    url = databases.create_empty()
    yield url
    # The library's suites leave applications behind, which close what they have when they go.
    gc.collect()
    databases.drop(url)
