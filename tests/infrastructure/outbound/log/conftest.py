"""A log in which everything has happened, which each file of tests damages and mends."""

from collections.abc import Iterator

import pytest

from tests.support.builders.damaged_log import ToldLog
from tests.support.builders.told_logs import ToldLogs
from tests.support.servers.databases import Databases


@pytest.fixture(scope="module")
def story(
    databases: Databases, told_logs: ToldLogs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ToldLog]:
    """The log itself; whoever damages it mends it."""
    told = ToldLog(told_logs.copy("all"), tmp_path_factory.mktemp("story"))
    told.save()
    yield told
    databases.drop(told.url)


@pytest.fixture
def told(story: ToldLog) -> Iterator[ToldLog]:
    """A log that is as it was told, and will be again."""
    yield story
    story.mend()
