"""A launcher that leaves nothing behind, and an endpoint for models."""

from collections.abc import AsyncIterator

import pytest

from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from tests.support.builders.launches import careful_launcher
from tests.support.servers.model_endpoint import ModelEndpoint


@pytest.fixture
async def launcher() -> AsyncIterator[ProcessLauncher]:
    async with careful_launcher() as house:
        yield house


@pytest.fixture
async def endpoint() -> AsyncIterator[ModelEndpoint]:
    async with ModelEndpoint() as endpoint:
        yield endpoint
