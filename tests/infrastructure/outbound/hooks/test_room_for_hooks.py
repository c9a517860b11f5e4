"""A hook that hangs is in the way of itself alone."""

import asyncio
from collections.abc import Iterator

import pytest

from application.ports.hooks import HookFailure
from domain.delivery.hook_payloads import HookCall
from tests.support.servers.hook_calls import CALL, Asked
from tests.support.servers.hook_server import HookServer, Reply

SPAWNED = HookCall("subagentSpawned", "subagentSpawned", "a-run:subagentSpawned", {}, {})


@pytest.fixture
def server() -> Iterator[HookServer]:
    with HookServer() as server:
        yield server


async def test_a_hook_that_hangs_is_in_the_way_of_no_other(server: HookServer) -> None:
    """A call of its own that finds no room was not asked, and says so."""
    server.replies("subagentEnded", Reply(is_held=True))
    others = server.hooks("subagentSpawned", timeoutSeconds=1)
    hook = {"url": server.url, "timeoutSeconds": 30}
    asked = Asked(hook, others, calls_at_once_max=2, room_seconds=0.1)
    try:
        async with asyncio.TaskGroup() as group:
            hanging = [group.create_task(asked.hooks.ask(asked.pinned, CALL)) for _ in range(2)]
            await asyncio.to_thread(server.called, "subagentEnded", 2)
            for _ in range(3):
                assert (await asked.hooks.ask(asked.pinned, SPAWNED)).status_code == 204
            with pytest.raises(HookFailure) as caught:
                await asked.hooks.ask(asked.pinned, CALL)
            server.let_go()
        assert [one.result().status_code for one in hanging] == [200, 200]
        assert (await asked.hooks.ask(asked.pinned, CALL)).status_code == 200
    finally:
        await asked.hooks.aclose()
    threw = caught.value
    text = "the hook was not asked: too many calls of it are under way"
    assert (str(threw), threw.was_asked) == (text, False)
    assert len(server.calls("subagentEnded")) == 3


async def test_waiting_for_room_is_no_time_of_the_hook(server: HookServer) -> None:
    """Each call may take as long as the hook may, however long it waited for the one before."""
    server.replies("subagentEnded", Reply(is_held=True))
    hook = {"url": server.url, "timeoutSeconds": 0.3}
    asked = Asked(hook, calls_at_once_max=1, room_seconds=5.0)
    calls = (asked.hooks.ask(asked.pinned, CALL) for _ in range(3))
    try:
        threw = await asyncio.gather(*calls, return_exceptions=True)
    finally:
        await asked.hooks.aclose()
    assert [str(one) for one in threw] == ["the hook did not answer in 0.3 s"] * 3
    assert len(server.calls("subagentEnded")) == 3, "each was asked"


async def test_a_call_that_is_given_up_leaves_its_room(server: HookServer) -> None:
    server.replies("subagentEnded", Reply(is_held=True), Reply(204))
    hook = {"url": server.url, "timeoutSeconds": 30}
    asked = Asked(hook, calls_at_once_max=1, room_seconds=0.1)
    try:
        given_up = asyncio.create_task(asked.hooks.ask(asked.pinned, CALL))
        await asyncio.to_thread(server.called, "subagentEnded")
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await asked.hooks.ask(asked.pinned, CALL)).status_code == 204
    finally:
        await asked.hooks.aclose()
