"""Real servers whose agents are real processes; what they recorded is gone through at the end."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.running_server import RunningServer, configuration
from tests.support.servers.verified_servers import Serve, must_be_whole


@pytest.fixture(scope="module")
def serve(databases: Databases) -> Iterator[Serve]:
    """Starts servers of the module, each on a database of its own."""
    with ExitStack() as stack:

        def start(
            *agents: dict[str, Any], further: dict[str, Any] | None = None, **subagents: Any
        ) -> RunningServer:
            place = stack.enter_context(new_place())
            url = databases.create()
            stack.callback(databases.drop, url)
            config = configuration(*agents, **subagents) | (further or {})
            server = RunningServer(place / "data", config, database_url=url)
            stack.callback(must_be_whole, server)
            return stack.enter_context(server)

        yield start


@pytest.fixture(scope="module")
def gates() -> Iterator[Path]:
    """Where children look whether they may go on."""
    with new_place() as place:
        yield place
