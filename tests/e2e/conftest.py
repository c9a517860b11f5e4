"""A data directory made once, and places for real servers that are found deserted afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.data_directories import copied, new_place
from tests.support.running_server import RunningServer, configuration, scripted
from tests.support.spawning_server import Stories, telling


@pytest.fixture(scope="session")
def made_data_dir() -> Iterator[Path]:
    """A data directory with a database in it, which nobody uses: it is copied."""
    with new_place() as place:
        with RunningServer(place / "data", configuration(scripted())):
            pass
        yield place / "data"


@pytest.fixture(scope="module")
def data_dir(made_data_dir: Path) -> Iterator[Path]:
    """The data directory of this file's servers. Everything in it and beside it is removed."""
    with new_place() as place:
        yield copied(made_data_dir, place / "data")


@pytest.fixture(scope="session")
def server(made_data_dir: Path) -> Iterator[Stories]:
    """One server with an agent for every story."""
    with new_place() as place:
        folder = place / "notes"
        folder.mkdir()
        with telling(copied(made_data_dir, place / "data"), folder) as stories:
            yield stories
        assert " ERROR " not in stories.log(), stories.log()
