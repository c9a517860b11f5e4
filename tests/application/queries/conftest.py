"""Generated histories, each made once, by the first test that asks for it."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.support.builders.generated_pasts import (
    SEEDS,
    GeneratedPast,
    Seed,
    generated_url,
    past_of,
)
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import running_on
from tests.support.tiers import nightly_but


@pytest.fixture(scope="package")
def url_of_seed(databases: Databases) -> Iterator[Callable[[Seed], str]]:
    """Where the history of a seed is."""
    urls: dict[Seed, str] = {}

    def url_of(seed: Seed) -> str:
        if seed not in urls:
            urls[seed] = generated_url(databases, seed)
        return urls[seed]

    yield url_of
    for url in urls.values():
        databases.drop(url)


@pytest.fixture(params=nightly_but(SEEDS, SEEDS[-1:]), ids=lambda seed: str(seed.number))
async def past(
    url_of_seed: Callable[[Seed], str], request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[GeneratedPast]:
    """One of them as a server sees it that has just started."""
    async with running_on(url_of_seed(request.param)) as running:
        yield await past_of(running, tmp_path)
