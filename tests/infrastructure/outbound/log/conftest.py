"""A log with every type of event, which each test file damages and repairs."""

from collections.abc import Iterator

import pytest

from tests.support.builders.damaged_log import ToldLog
from tests.support.builders.told_logs import ToldLogs
from tests.support.servers.databases import Databases


@pytest.fixture(scope="module")
def story(
    databases: Databases, told_logs: ToldLogs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ToldLog]:
    """Yield the log itself; a test that damages it repairs it."""
    told_log = ToldLog(told_logs.copy("all"), tmp_path_factory.mktemp("story"))
    told_log.save()
    yield told_log
    databases.drop(told_log.url)


@pytest.fixture
def told(story: ToldLog) -> Iterator[ToldLog]:
    """Yield the unchanged log; assert that it is unchanged at the end."""
    yield story
    story.mend()
