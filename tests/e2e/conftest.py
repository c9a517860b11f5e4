"""A data directory made once, and places for real servers that are found deserted afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from infrastructure.database import open_database
from infrastructure.outbound.data_directory import DataDirectory
from tests.support.data_directories import copied, new_place
from tests.support.spawning_server import Stories


@pytest.fixture(scope="session")
def made_data_dir() -> Iterator[Path]:
    """A data directory with an empty log in it, which nobody uses: it is copied."""
    with new_place() as place:
        directory = DataDirectory.open(place / "data")
        open_database(None, directory.postgres).close()
        yield directory.path


@pytest.fixture(scope="module")
def data_dir(made_data_dir: Path) -> Iterator[Path]:
    """The data directory of this file's servers. Everything in it and beside it is removed."""
    with new_place() as place:
        yield copied(made_data_dir, place / "data")


@pytest.fixture(scope="session")
def server(made_data_dir: Path) -> Iterator[Stories]:
    """One server with an agent for every story."""
    with new_place() as place:
        with Stories(copied(made_data_dir, place / "data"), place / "notes") as stories:
            yield stories
        assert " ERROR " not in stories.log(), stories.log()
