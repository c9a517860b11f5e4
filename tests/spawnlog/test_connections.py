"""Connections that both kinds of clients keep to a server on this machine."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from spawnlog import (
    AsyncClient,
    Client,
    RetryLimits,
    ServerUnreachableError,
    UnexpectedResponseError,
)
from spawnlog.core import answer, request_builder

ONCE = RetryLimits(attempts_max=1)
READY = b'{"status": "ready", "head": 7, "tail": 7}'
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(READY), READY)
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Served:
    """Requests that a server of the test saw."""

    def __init__(self, *answers: bytes, closes: bool) -> None:
        self.url = ""
        self.connections = 0
        self.requests: list[bytes] = []
        self.left = asyncio.Event()
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._answers = list(answers)
        self._closes = closes

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request after the other; with b"" wait until the caller has left."""
        self.connections += 1
        try:
            while True:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                self.asked.set()
                await self.may_answer.wait()
                output = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                if not output:
                    await reader.read()
                    return
                writer.write(output)
                if self._closes:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.left.set()


class Asking:
    """A client of either kind, of which a test asks the same."""

    def __init__(self, client: Client | AsyncClient) -> None:
        self.client = client

    async def head(self) -> int:
        if isinstance(self.client, Client):
            return (await asyncio.to_thread(self.client.get_readiness)).head
        return (await self.client.get_readiness()).head

    async def close(self) -> None:
        if isinstance(self.client, Client):
            self.client.close()
        else:
            await self.client.close()


Serving = Callable[..., AbstractAsyncContextManager[tuple[Served, Asking]]]


@pytest.fixture(params=[Client, AsyncClient], ids=["blocks", "awaits"])
def served(request: pytest.FixtureRequest) -> Serving:
    """Return a context manager for a server with these answers, and its client."""

    @asynccontextmanager
    async def opened(*answers: bytes, closes: bool = False) -> AsyncIterator[tuple[Served, Asking]]:
        seen = Served(*answers, closes=closes)
        server = await asyncio.start_server(seen.serve, "127.0.0.1", 0)
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            asking = Asking(request.param(url, token="a-token", retries=ONCE))
            try:
                yield seen, asking
            finally:
                await asking.close()

    return opened


async def test_connection_is_reused(served: Serving) -> None:
    async with served(WHOLE) as (seen, client):
        for _ in range(3):
            await client.head()
        assert (seen.connections, len(seen.requests)) == (1, 3)
        # The server answers no request before all three have arrived.
        seen.may_answer.clear()
        asking = [asyncio.create_task(client.head()) for _ in range(3)]
        while len(seen.requests) < 6:
            seen.asked.clear()
            await asyncio.wait_for(seen.asked.wait(), 20)
        seen.may_answer.set()
        await asyncio.gather(*asking)
        assert seen.connections == 3


async def test_ended_connection_is_not_reused(served: Serving) -> None:
    async with served(WHOLE, closes=True) as (seen, client):
        for _ in range(3):
            await client.head()
            await asyncio.wait_for(seen.left.wait(), 20)
        assert seen.connections == 3


@pytest.mark.parametrize("served", [AsyncClient], indirect=True)
async def test_cancelled_request_cuts_its_connection(
    served: Serving,
) -> None:
    async with served(b"", WHOLE) as (seen, client):
        waiting = asyncio.create_task(client.head())
        await asyncio.wait_for(seen.asked.wait(), 20)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(seen.left.wait(), 20)
        assert await client.head() == 7
        assert seen.connections == 2


async def test_silent_server_is_given_up(
    served: Serving,
) -> None:
    async with served(b"") as (seen, client):
        client.client._requests._answer_seconds = 0.05
        with pytest.raises(ServerUnreachableError, match="did not answer in time"):
            await client.head()
        await asyncio.wait_for(seen.left.wait(), 20)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"nonsense\r\n\r\n", "the answer is not HTTP"),
        (
            b"HTTP/1.1 101 Other\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            "the answer is not HTTP",
        ),
        (WHOLE[:-1], "before the answer was complete"),
        (b"", "before the answer was complete"),
        (b"HTTP/1.1 200 OK\r\nX: %s" % (b"x" * 128 * 1024), "the answer is not HTTP"),
    ],
)
async def test_broken_answer_is_a_lost_connection(served: Serving, answer: bytes, why: str) -> None:
    async with served(answer or b"\r\n", closes=True) as (_, client):
        with pytest.raises(ServerUnreachableError, match=why):
            await client.head()


async def test_too_long_answer_is_not_read(
    served: Serving,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answer, "ANSWER_BYTES_MAX", 10)
    async with served(WHOLE) as (_, client):
        with pytest.raises(UnexpectedResponseError, match="longer than"):
            await client.head()


# A wait in another thread cannot be woken: it ends with the timeout of its request.
@pytest.mark.parametrize("served", [AsyncClient], ids=["awaits"], indirect=True)
async def test_closed_client_waits_for_nobody(served: Serving) -> None:
    async with served(b"") as (seen, client):
        waiting = asyncio.create_task(client.head())
        await asyncio.wait_for(seen.asked.wait(), 20)
        await client.close()
        with pytest.raises(ServerUnreachableError):
            await waiting


async def test_requests_wait_for_a_connection(
    served: Serving,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_builder, "CONNECTIONS_MAX", 2)
    async with served(WHOLE) as (seen, client):
        await asyncio.gather(*(client.head() for _ in range(9)))
        assert (seen.connections, len(seen.requests)) == (2, 9)
