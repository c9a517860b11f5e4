"""Large bodies have room in one process, and no more of them than have it."""

import asyncio
from typing import Any

import orjson
import pytest
from starlette.types import Message, Receive, Scope, Send

from infrastructure.inbound.http.middleware.body_limits import (
    SMALL_BODY_BYTES_MAX,
    BodyBudget,
    BudgetExhausted,
    note_owner,
)
from infrastructure.inbound.http.middleware.positions import PositionHeaders
from infrastructure.inbound.http.middleware.request_guard import RequestGuard

LARGE = 100 * 1024
SECONDS = 10.0
FULL = "the service holds as many large requests as it can; ask again in a moment"


async def head() -> int:
    return 7


class Application:
    """Takes a whole body, then waits until it may answer."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.taken = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "owner" in scope:
            note_owner(scope, scope["owner"])
        while (await receive()).get("more_body"):
            pass
        self.taken += 1
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Door:
    """The guard before such an application. `ask` gives status and body of the answer."""

    def __init__(self, bytes_max: int, wait_seconds_max: float = SECONDS, **limits: int) -> None:
        self.budget = BodyBudget(bytes_max, wait_seconds_max=wait_seconds_max, **limits)
        self.application = Application()
        marks = PositionHeaders("a-log", head, lambda: 0)
        self._guard = RequestGuard(self.application, {"spawnlog.test"}, marks, self.budget)

    async def ask(
        self, size: int, *, declared: bool = True, owner: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        half = size // 2
        pieces: list[Message] = [
            {"type": "http.request", "body": bytes(half), "more_body": True},
            {"type": "http.request", "body": bytes(size - half), "more_body": False},
        ]
        sent: list[Message] = []

        async def receive() -> Message:
            return pieces.pop(0)

        async def send(message: Message) -> None:
            sent.append(message)

        headers = [(b"host", b"spawnlog.test")]
        if declared:
            headers.append((b"content-length", b"%d" % size))
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/spawns",
            "raw_path": b"/v1/spawns",
            "query_string": b"",
            "headers": headers,
        }
        if owner is not None:
            scope["owner"] = owner
        await self._guard(scope, receive, send)
        body = b"".join(one.get("body", b"") for one in sent[1:])
        return sent[0]["status"], orjson.loads(body) if body else {}

    async def until(self, *, taken: int = 0, waiting: int = 0) -> None:
        async with asyncio.timeout(SECONDS):
            while self.application.taken < taken or self.budget.waiting < waiting:
                await asyncio.sleep(0)


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_that_has_no_room_is_told_to_come_again(declared: bool) -> None:
    door = Door(LARGE, wait_seconds_max=0.05)
    first = asyncio.create_task(door.ask(LARGE))
    await door.until(taken=1)
    status, problem = await door.ask(LARGE, declared=declared)
    assert (status, problem["code"], problem["retryable"]) == (503, "unavailable", True)
    assert problem["detail"] == FULL
    assert problem["retryAfterMs"] == 1000
    door.application.may_answer.set()
    assert (await first)[0] == 200
    assert (door.budget.free_bytes, door.budget.waiting) == (LARGE, 0)


async def test_a_body_waits_until_another_was_answered() -> None:
    door = Door(LARGE)
    asking = [asyncio.create_task(door.ask(LARGE)) for _ in range(3)]
    await door.until(taken=1, waiting=2)
    door.application.may_answer.set()
    assert [status for status, _ in await asyncio.gather(*asking)] == [200, 200, 200]
    assert door.budget.free_bytes == LARGE


async def test_small_bodies_do_not_wait() -> None:
    door = Door(LARGE)
    first = asyncio.create_task(door.ask(LARGE))
    await door.until(taken=1)
    small = [
        asyncio.create_task(door.ask(SMALL_BODY_BYTES_MAX, declared=one)) for one in (True, False)
    ]
    await door.until(taken=3)
    door.application.may_answer.set()
    assert [status for status, _ in await asyncio.gather(first, *small)] == [200, 200, 200]


async def test_room_is_given_back_whatever_becomes_of_a_request() -> None:
    door = Door(LARGE)
    first = asyncio.create_task(door.ask(LARGE))
    await door.until(taken=1)
    waiting = asyncio.create_task(door.ask(LARGE))
    await door.until(waiting=1)
    waiting.cancel()
    first.cancel()
    await asyncio.gather(first, waiting, return_exceptions=True)
    assert (door.budget.free_bytes, door.budget.waiting) == (LARGE, 0)


async def test_who_comes_first_has_room_first() -> None:
    budget = BodyBudget(10)
    await budget.take("a", 6)
    large = asyncio.create_task(budget.take("a", 8))
    await asyncio.sleep(0)
    small = asyncio.create_task(budget.take("a", 2))
    await asyncio.sleep(0)
    assert budget.waiting == 2
    budget.give_back("a", 6)
    await asyncio.gather(large, small)
    assert budget.free_bytes == 0


async def test_no_more_than_so_many_wait() -> None:
    budget = BodyBudget(1, waiting_max=1)
    await budget.take("a", 1)
    first = asyncio.create_task(budget.take("a", 1))
    await asyncio.sleep(0)
    with pytest.raises(BudgetExhausted):
        await budget.take("a", 1)
    budget.give_back("a", 1)
    await first


async def test_owner_takes_no_more_than_its_share() -> None:
    budget = BodyBudget(10, share_bytes_max=4, wait_seconds_max=0.01)
    await budget.take("a", 4)
    with pytest.raises(BudgetExhausted) as refused:
        await budget.take("a", 1)
    assert refused.value.is_share
    await budget.take("b", 4)
    with pytest.raises(BudgetExhausted) as refused:
        await budget.take("c", 4)
    assert not refused.value.is_share
    budget.give_back("a", 4)
    budget.give_back("b", 4)
    assert (budget.free_bytes, budget.waiting) == (10, 0)


async def test_owner_that_waits_for_its_share_is_in_nobodys_way() -> None:
    budget = BodyBudget(10, share_bytes_max=4)
    await budget.take("a", 4)
    own = asyncio.create_task(budget.take("a", 4))
    await asyncio.sleep(0)
    async with asyncio.timeout(SECONDS):
        await budget.take("b", 4)
    assert budget.waiting == 1
    budget.give_back("a", 4)
    await own
    assert budget.free_bytes == 2


async def test_owner_has_a_share_of_the_queue() -> None:
    budget = BodyBudget(2, share_bytes_max=1, share_waiting_max=1)
    await budget.take("a", 1)
    waiting = asyncio.create_task(budget.take("a", 1))
    await asyncio.sleep(0)
    with pytest.raises(BudgetExhausted) as refused:
        await budget.take("a", 1)
    assert refused.value.is_share
    await budget.take("b", 1)
    budget.give_back("a", 1)
    await waiting


async def test_bodies_without_a_token_share_one_part() -> None:
    door = Door(4 * LARGE, 0.05, share_bytes_max=LARGE)
    first = asyncio.create_task(door.ask(LARGE))
    await door.until(taken=1)
    status, problem = await door.ask(LARGE)
    assert (status, problem["code"], problem["retryAfterMs"]) == (429, "bodies_busy", 1000)
    assert "as many as one token may" in problem["detail"]
    known = asyncio.create_task(door.ask(LARGE, owner="token:a"))
    await door.until(taken=2)
    door.application.may_answer.set()
    assert [(await one)[0] for one in (first, known)] == [200, 200]
    assert door.budget.free_bytes == 4 * LARGE
