"""Generated histories, each made once."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.builders.generated_pasts import SEEDS, GeneratedPast, generated_url, past_of
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import running_on


@pytest.fixture(scope="session", params=SEEDS, ids=lambda seed: str(seed.number))
def url_of_the_past(databases: Databases, request: pytest.FixtureRequest) -> Iterator[str]:
    """Where one of them is."""
    yield from generated_url(databases, request.param)


@pytest.fixture
async def past(url_of_the_past: str, tmp_path: Path) -> AsyncIterator[GeneratedPast]:
    """One of them as a server sees it that has just started."""
    async with running_on(url_of_the_past) as running:
        yield await past_of(running, tmp_path)
