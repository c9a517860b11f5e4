"""A launcher that leaves nothing behind."""

from collections.abc import AsyncIterator

import pytest

from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from tests.support.builders.launches import careful_launcher


@pytest.fixture
async def launcher() -> AsyncIterator[ProcessLauncher]:
    async with careful_launcher() as house:
        yield house
