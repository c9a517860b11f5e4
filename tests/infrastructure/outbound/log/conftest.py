"""A log in which everything has happened, told once for each file of tests that asks for it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.builders.damaged_log import ToldLog, told_log
from tests.support.servers.databases import Databases


@pytest.fixture(scope="module")
async def story(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ToldLog]:
    """The log itself; whoever damages it mends it."""
    url = databases.create()
    yield await told_log(url, tmp_path_factory.mktemp("story"))
    databases.drop(url)


@pytest.fixture
def told(story: ToldLog) -> Iterator[ToldLog]:
    """A log that is as it was told, and will be again."""
    yield story
    story.mend()
