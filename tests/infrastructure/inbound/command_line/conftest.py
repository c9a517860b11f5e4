"""Shared fixtures of the command line's tests: a server, and the command."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from typer.testing import Result

from tests.support.servers.command_line import Command, run_program
from tests.support.servers.recorded_api import RecordedApi, recorded_api


@pytest.fixture
def api() -> Iterator[RecordedApi]:
    """Yield a server that sends the answers of a test."""
    with recorded_api() as served:
        yield served


@pytest.fixture
def spawnlog(tmp_path: Path, api: RecordedApi) -> Command:
    """Return a function that runs a command against the server, with a token and without settings
    of this machine.
    """
    usual: dict[str, str | None] = {
        "SPAWNLOG_URL": api.url,
        "SPAWNLOG_TOKEN": "a-token",
        "SPAWNLOG_DATA_DIR": str(tmp_path),
        "SPAWNLOG_SESSION_KEY": None,
        "SPAWNLOG_CONFIG": None,
    }

    def run(
        *arguments: str, given: str | None = None, settings: Mapping[str, str] | None = None
    ) -> Result:
        return run_program(arguments, usual | dict(settings or {}), given)

    return run
