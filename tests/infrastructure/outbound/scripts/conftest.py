"""A gatehouse that leaves nothing behind."""

from collections.abc import AsyncIterator

import pytest

from infrastructure.outbound.processes.gatehouse import ProcessLauncher
from tests.support.launches import careful_gatehouse


@pytest.fixture
async def gatehouse() -> AsyncIterator[ProcessLauncher]:
    async with careful_gatehouse() as house:
        yield house
