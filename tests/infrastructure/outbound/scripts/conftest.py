"""A gatehouse that leaves nothing behind."""

from collections.abc import AsyncIterator

import pytest

from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from tests.support.builders.launches import careful_gatehouse


@pytest.fixture
async def gatehouse() -> AsyncIterator[ProcessLauncher]:
    async with careful_gatehouse() as house:
        yield house
