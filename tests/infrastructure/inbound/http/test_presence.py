"""Work for a caller that waits ends when it leaves, on connections that say so by themselves."""

import asyncio
from collections.abc import Callable

import pytest
from starlette.requests import ClientDisconnect

from infrastructure.inbound.http.middleware.disconnects import EXTENSION, while_present


class FakeConnection:
    """What `while_present` asks of a connection."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.on_lost: Callable[[], None] | None = None
        self._is_open = is_open

    def watch(self) -> Callable[[], bool]:
        return lambda: self._is_open


def working(connection: FakeConnection, work: asyncio.Future[str]) -> "asyncio.Task[str]":
    async def answer() -> str:
        return await work

    return asyncio.create_task(while_present({"extensions": {EXTENSION: connection}}, answer()))


async def test_caller_that_stays_gets_its_answer() -> None:
    connection, work = FakeConnection(), asyncio.get_running_loop().create_future()
    waiting = working(connection, work)
    await asyncio.sleep(0)
    assert connection.on_lost is not None
    work.set_result("done")
    assert await waiting == "done"
    assert connection.on_lost is None


async def test_caller_that_leaves_cancels_its_wait() -> None:
    connection, work = FakeConnection(), asyncio.get_running_loop().create_future()
    waiting = working(connection, work)
    await asyncio.sleep(0)
    assert connection.on_lost is not None
    connection.on_lost()
    with pytest.raises(ClientDisconnect):
        await waiting
    assert work.cancelled()
    assert connection.on_lost is None


async def test_caller_that_left_before_begins_no_wait() -> None:
    connection, work = FakeConnection(is_open=False), asyncio.get_running_loop().create_future()
    with pytest.raises(ClientDisconnect):
        await working(connection, work)
    assert not work.cancelled()


async def test_server_that_stops_cancels_without_a_caller_that_left() -> None:
    connection, work = FakeConnection(), asyncio.get_running_loop().create_future()
    waiting = working(connection, work)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
