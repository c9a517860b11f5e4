"""Histories shared by many tests, and query services of an empty log."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from application.queries.services import QueryServices
from tests.support.builders.generated_pasts import (
    SEEDS,
    GeneratedPast,
    Seed,
    generated_url,
    past_of,
)
from tests.support.builders.query_services import query_services
from tests.support.builders.told_logs import ToldLogs
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import RunningLog, running_on
from tests.support.tiers import nightly_but

History = Seed | str
"""A generated history by its seed, or a recorded one by its name."""


@pytest.fixture(scope="package")
def url_of(databases: Databases, told_logs: ToldLogs) -> Iterator[Callable[[History], str]]:
    urls: dict[History, str] = {}

    def find_url(history: History) -> str:
        if history not in urls:
            if isinstance(history, str):
                urls[history] = told_logs.copy(history)
            else:
                urls[history] = generated_url(databases, history)
        return urls[history]

    yield find_url
    for url in urls.values():
        databases.drop(url)


@pytest.fixture(params=nightly_but(SEEDS, SEEDS[-1:]), ids=lambda seed: str(seed.number))
async def past(
    url_of: Callable[[History], str], request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[GeneratedPast]:
    """Yield a history as a newly started server sees it, by default a generated one."""
    async with running_on(url_of(request.param)) as running:
        yield await past_of(running, tmp_path)


@pytest.fixture
async def services(running: RunningLog, tmp_path: Path) -> QueryServices:
    return await query_services(running, tmp_path)
