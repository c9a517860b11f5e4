"""A wait and a stream continue after a server was stopped and started again."""

import asyncio
import socket
from pathlib import Path

import pytest

from spawnlog import AsyncClient
from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.server import Server

pytestmark = pytest.mark.server


def free_port() -> int:
    """Return an unused port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_wait_and_a_stream_outlive_a_restart(database_url: str, tmp_path: Path) -> None:
    slow = agent("slow", scripted(steps=[{"afterMs": 300_000}]), default=True)
    config = configuration(slow, drainSeconds=0, maxConcurrent=1)
    arguments = ("--port", str(free_port()))
    with Server(
        tmp_path / "data", config, arguments=arguments, database_url=database_url
    ) as server:
        url, token = server.url, server.token
        async with AsyncClient(url, token=token) as client:
            session = client.session("agent:slow:main")
            await (await session.spawn("long", label="long")).wait("started", seconds=30)
            # It waits for its turn, and no server that stops gives it one.
            run = await session.spawn("behind", label="behind")
            positions: list[int] = []

            async def follow() -> None:
                async with client.follow_events(after=0, run_id=run.run_id) as events:
                    async for event in events:
                        positions.append(event.position)
                        if event.type == "RunStarted":
                            return

            following = asyncio.create_task(follow())
            started = asyncio.create_task(run.wait("started", seconds=60))
            while not positions:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.stop)
            assert not started.done()
            assert not following.done()
            await asyncio.to_thread(server.start)
            assert server.url == url
            await asyncio.gather(started, following)
            recorded = [event.position async for event in client.events(run_id=run.run_id)]
        assert positions == recorded[: len(positions)]
        assert started.result().stage == "started"
