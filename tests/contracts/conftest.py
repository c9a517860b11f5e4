"""A gatehouse that leaves nothing behind."""

from collections.abc import AsyncIterator

import pytest

from infrastructure.outbound.processes.gatehouse import Gatehouse
from tests.support.launches import careful_gatehouse


@pytest.fixture
async def gatehouse() -> AsyncIterator[Gatehouse]:
    async with careful_gatehouse() as house:
        yield house
