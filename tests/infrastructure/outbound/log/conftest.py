"""A log with every type of event, which each test file damages and repairs."""

from collections.abc import Iterator

import pytest

from tests.support.builders.damaged_log import RepairableLog
from tests.support.builders.told_logs import ToldLogs
from tests.support.servers.databases import Databases


@pytest.fixture(scope="module")
def story(
    databases: Databases, told_logs: ToldLogs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RepairableLog]:
    """Yield the log itself; a test that damages it repairs it."""
    told_log = RepairableLog(told_logs.copy("all"), tmp_path_factory.mktemp("story"))
    told_log.save()
    yield told_log
    databases.drop(told_log.url)


@pytest.fixture
def intact_log(story: RepairableLog) -> Iterator[RepairableLog]:
    """Yield the unchanged log; assert that it is unchanged at the end."""
    yield story
    story.mend()
