"""A log in which everything has happened, told once: each file of tests has a copy."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.builders.damaged_log import ToldLog, told_log
from tests.support.servers.databases import Databases


@pytest.fixture(scope="session")
async def told_url(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """Where the log is that is copied: nobody reads or writes it."""
    url = databases.create()
    await told_log(url, tmp_path_factory.mktemp("told"))
    yield url
    databases.drop(url)


@pytest.fixture(scope="module")
def story(
    databases: Databases, told_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ToldLog]:
    """The log itself; whoever damages it mends it."""
    url = databases.copy(told_url)
    yield ToldLog(url, tmp_path_factory.mktemp("story"))
    databases.drop(url)


@pytest.fixture
def told(story: ToldLog) -> Iterator[ToldLog]:
    """A log that is as it was told, and will be again."""
    yield story
    story.mend()
