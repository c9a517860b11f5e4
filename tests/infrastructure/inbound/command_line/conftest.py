"""What the tests of the command line share: a server to speak to, and the command itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from tests.support.servers.command_line import Command, run_program
from tests.support.servers.recorded_api import RecordedApi, recorded_api


@pytest.fixture
def api() -> Iterator[RecordedApi]:
    """A server that answers what a test tells it to."""
    with recorded_api() as served:
        yield served


@pytest.fixture
def spawnlog(tmp_path: Path, api: RecordedApi) -> Command:
    """Runs a command against the server, with a token and none of this machine's settings."""
    settings: dict[str, str | None] = {
        "SPAWNLOG_URL": api.url,
        "SPAWNLOG_TOKEN": "a-token",
        "SPAWNLOG_DATA_DIR": str(tmp_path),
        "SPAWNLOG_SESSION_KEY": None,
        "SPAWNLOG_CONFIG": None,
    }

    def run(*arguments: str, given: str | None = None) -> Result:
        return run_program(arguments, settings, given)

    return run
