"""A browser, the servers that its windows look at, and windows of users who are signed in."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.page.browser import chromium, watched_context
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.databases import Databases
from tests.support.servers.misconfigured_storm import StormRecord, blow, server_of_storm
from tests.support.servers.narrators import narrating
from tests.support.servers.server import Server, serving


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Yield the browser of all tests of this folder, whose windows have separate contexts.

    It is closed when the tests of another folder begin: while it is open, an event loop runs in
    this thread, and asynchronous tests need one of their own.
    """
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def storm(made_data_dir: Path) -> Iterator[tuple[Server, StormRecord]]:
    """Yield a server that has decided some 200 spawns, some of them under a wrong configuration."""
    with new_place() as place:
        with server_of_storm(copied(made_data_dir, place / "data")) as server:
            yield server, blow(server)


@pytest.fixture
def window(browser: Browser, storm: tuple[Server, StormRecord]) -> Iterator[Page]:
    """Yield a window on the server after the storm."""
    server, _ = storm
    with watched_context(browser, server.url, token=server.token) as (context, _):
        yield context.new_page()


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Server]:
    """Yield a server whose children say what a test tells them; a file may have another one."""
    with serving(databases, narrating) as running:
        yield running


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """Yield a window on the server of the file."""
    with watched_context(browser, server.url, token=server.token) as (context, _):
        yield context.new_page()
