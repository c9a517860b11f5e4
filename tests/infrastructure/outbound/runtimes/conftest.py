"""An endpoint for models."""

from collections.abc import AsyncIterator

import pytest

from tests.support.servers.model_endpoint import ModelEndpoint


@pytest.fixture
async def endpoint() -> AsyncIterator[ModelEndpoint]:
    async with ModelEndpoint() as endpoint:
        yield endpoint
