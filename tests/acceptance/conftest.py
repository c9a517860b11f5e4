"""Real servers whose agents are real processes; their record is checked at the end."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.configurations import configuration
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.server import Serve, Server


@pytest.fixture(scope="module")
def serve(databases: Databases) -> Iterator[Serve]:
    """Yield a function that starts servers of the module, each on its own database."""
    with ExitStack() as stack:

        def start(*agents: dict[str, Any], **settings: Any) -> Server:
            place = stack.enter_context(new_place())
            url = databases.create()
            stack.callback(databases.drop, url)
            config = configuration(*agents, **settings)
            server = Server(place / "data", config, database_url=url)
            stack.callback(server.require_sound_log)
            return stack.enter_context(server)

        yield start


@pytest.fixture(scope="module")
def gates() -> Iterator[Path]:
    """Yield the folder in which children look for permission to continue."""
    with new_place() as place:
        yield place
