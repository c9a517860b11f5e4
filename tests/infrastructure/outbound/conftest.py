"""A launcher; a test fails if it leaves a process or an open descriptor."""

from collections.abc import AsyncIterator

import pytest

from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from tests.support.builders.launches import careful_launcher


@pytest.fixture
async def launcher() -> AsyncIterator[ProcessLauncher]:
    async with careful_launcher() as launcher:
        yield launcher
