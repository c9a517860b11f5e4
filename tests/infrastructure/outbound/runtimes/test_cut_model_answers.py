"""Model endpoints whose errors have a body that is cut off, slow or endless."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import httpx2
import pytest

from infrastructure.outbound.guarded_http.request import PREFIX_BYTES_MAX
from tests.support.servers.cut_answers import BODIES, answering

Client = Callable[[float], AbstractAsyncContextManager[httpx2.AsyncClient]]


@pytest.fixture
def bounded_client() -> Client:
    from infrastructure.outbound.runtimes.model_endpoint import bounded_client

    return bounded_client


@pytest.mark.parametrize("name", ["cut", "cut chunk", "broken chunk", "huge"])
async def test_endpoint_error_keeps_its_status_whatever_its_body(
    bounded_client: Client, name: str
) -> None:
    head = b"Retry-After: 7\r\n" + BODIES[name]
    async with answering("429 Busy", head) as url, bounded_client(5) as client:
        answer = await client.get(url)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    assert len(answer.content) <= PREFIX_BYTES_MAX


async def test_endpoint_error_with_slow_body_is_not_waited_for(bounded_client: Client) -> None:
    slow = b"Content-Length: 100\r\n\r\no"
    async with answering("500 x", slow, stays=True) as url, bounded_client(30) as client:
        async with asyncio.timeout(10):
            answer = await client.get(url)
    assert (answer.status_code, answer.content) == (500, b"o")
