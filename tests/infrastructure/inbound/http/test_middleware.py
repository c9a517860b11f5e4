"""Request guard, memory for large bodies, position headers, callers that leave."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import unquote

import httpx2
import orjson
import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from application.log.event_log import LogUnavailableError
from infrastructure.inbound.http.middleware.body_limits import (
    BODY_BYTES_MAX,
    DISCARDED_BYTES_MAX,
    SMALL_BODY_BYTES_MAX,
    BodyBudget,
    BodyBudgetExhaustedError,
    note_owner,
)
from infrastructure.inbound.http.middleware.disconnects import EXTENSION, while_present
from infrastructure.inbound.http.middleware.positions import POSITION_HEADER, PositionHeaders
from infrastructure.inbound.http.middleware.request_guard import RequestGuard
from infrastructure.inbound.http.requests.event_stream import prefers_stream
from infrastructure.inbound.http.responses.path_encoding import (
    protect_encoded_slashes,
    restore_slashes,
)
from tests.support.builders.submissions import key, observing
from tests.support.http.problems import problem_of
from tests.support.servers.running_log import RunningLog, running_on

HEAD = 7


async def head() -> int:
    return HEAD


def guarding(app: ASGIApp, budget: BodyBudget | None = None) -> RequestGuard:
    marks = PositionHeaders("a-log", head, lambda: 0)
    return RequestGuard(app, {"spawnlog.test"}, marks, budget)


def client_of(app: ASGIApp) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(guarding(app))
    return httpx2.AsyncClient(transport=transport, base_url="http://spawnlog.test")


async def nothing() -> Message:
    return {"type": "http.request", "body": b""}


async def send_post(
    guarded: ASGIApp, receive: Receive = nothing, size: int | None = 0, **scope: Any
) -> list[Message]:
    """Send a `POST /v1/spawns` that declares a size, unless it is None. Return the answer."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    length = [] if size is None else [(b"content-length", b"%d" % size)]
    request = {
        "type": "http",
        "method": "POST",
        "path": "/v1/spawns",
        "raw_path": b"/v1/spawns",
        "query_string": b"",
        "headers": [(b"host", b"spawnlog.test"), *length],
    }
    await guarded(request | scope, receive, send)
    return sent


async def failing(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("canary-of-the-inside")


async def failing_late(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise RuntimeError("canary-of-the-inside")


async def plain(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


async def test_failure_inside_is_problem_without_details(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with client_of(failing) as client:
        answer = await client.get("/v1/runs?token=canary-token")
    problem_of(answer, 500, "internal")
    assert "canary" not in answer.text
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.name == "spawnlog.http"
    assert "canary-token" not in record.getMessage()


async def test_failure_after_answer_began_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent = await send_post(guarding(failing_late))
    assert [message["type"] for message in sent] == ["http.response.start"]
    assert [record.name for record in caplog.records] == ["spawnlog.http"]


async def test_every_answer_is_marked_and_guarded() -> None:
    async with client_of(plain) as client:
        answer = await client.get("/v1/runs")
    assert answer.headers["spawnlog-log"] == "a-log"
    assert answer.headers["spawnlog-position"] == "7"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "no-referrer"


async def test_body_is_counted_though_its_length_lies() -> None:
    async def taking(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await plain(scope, receive, send)

    megabytes = 0

    async def receive() -> Message:
        nonlocal megabytes
        megabytes += 1
        return {"type": "http.request", "body": bytes(1024 * 1024), "more_body": True}

    sent = await send_post(guarding(taking), receive, size=10)
    assert sent[0]["status"] == 413
    bytes_max = BODY_BYTES_MAX + DISCARDED_BYTES_MAX + 1024 * 1024
    assert BODY_BYTES_MAX < megabytes * 1024 * 1024 <= bytes_max


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"/v1/sessions/agent:main:a", "/v1/sessions/agent:main:a"),
        (b"/v1/sessions/a%2Fb", "/v1/sessions/a\x1fb"),
        (b"/v1/sessions/a%2fb%20c", "/v1/sessions/a\x1fb c"),
        (b"/v1/sessions/a%252Fb", "/v1/sessions/a%2Fb"),
        (b"/v1/sessions/%FF%2F", "/v1/sessions/\ufffd\x1f"),
    ],
)
def test_encoded_slash_separates_nothing(raw: bytes, path: str) -> None:
    scope = {"raw_path": raw, "path": unquote(raw.decode())}
    assert protect_encoded_slashes(scope) == path
    assert "\x1f" not in restore_slashes(path)


LARGE = 100 * 1024
SECONDS = 10.0
FULL = "too many large requests in progress; retry in a moment"


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
        self._guard = guarding(self.application, self.budget)

    async def ask(
        self, size: int, *, declared: bool = True, **scope: str
    ) -> tuple[int, dict[str, Any]]:
        half = size // 2
        pieces: list[Message] = [
            {"type": "http.request", "body": bytes(half), "more_body": True},
            {"type": "http.request", "body": bytes(size - half), "more_body": False},
        ]

        async def receive() -> Message:
            return pieces.pop(0)

        sent = await send_post(self._guard, receive, size if declared else None, **scope)
        body = b"".join(item.get("body", b"") for item in sent[1:])
        return sent[0]["status"], orjson.loads(body) if body else {}

    async def held(self) -> "asyncio.Task[tuple[int, dict[str, Any]]]":
        """Return a request that is in the application and has a large body."""
        task = asyncio.create_task(self.ask(LARGE))
        await self.until(taken=1)
        return task

    async def until(self, *, taken: int = 0, waiting: int = 0) -> None:
        async with asyncio.timeout(SECONDS):
            while self.application.taken < taken or self.budget.waiting < waiting:
                await asyncio.sleep(0)


@pytest.mark.parametrize("declared", [True, False])
async def test_body_without_room_is_503(declared: bool) -> None:
    door = Door(LARGE, wait_seconds_max=0.05)
    first = await door.held()
    status, problem = await door.ask(LARGE, declared=declared)
    assert (status, problem["code"], problem["retryable"]) == (503, "unavailable", True)
    assert problem["detail"] == FULL
    assert problem["retryAfterMs"] == 1000
    door.application.may_answer.set()
    assert (await first)[0] == 200
    assert (door.budget.free_bytes, door.budget.waiting) == (LARGE, 0)


async def test_body_waits_until_another_was_answered() -> None:
    door = Door(LARGE)
    asking = [asyncio.create_task(door.ask(LARGE)) for _ in range(3)]
    await door.until(taken=1, waiting=2)
    door.application.may_answer.set()
    assert [status for status, _ in await asyncio.gather(*asking)] == [200, 200, 200]
    assert door.budget.free_bytes == LARGE


async def test_small_bodies_do_not_wait() -> None:
    door = Door(LARGE)
    first = await door.held()
    small = [
        asyncio.create_task(door.ask(SMALL_BODY_BYTES_MAX, declared=number))
        for number in (True, False)
    ]
    await door.until(taken=3)
    door.application.may_answer.set()
    assert [status for status, _ in await asyncio.gather(first, *small)] == [200, 200, 200]


async def test_room_of_cancelled_requests_is_given_back() -> None:
    door = Door(LARGE)
    first = await door.held()
    waiting = asyncio.create_task(door.ask(LARGE))
    await door.until(waiting=1)
    waiting.cancel()
    first.cancel()
    await asyncio.gather(first, waiting, return_exceptions=True)
    assert (door.budget.free_bytes, door.budget.waiting) == (LARGE, 0)


async def test_first_in_line_has_room_first() -> None:
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


@pytest.mark.parametrize(
    ("size", "limits", "is_share"),
    [(1, {"waiting_max": 1}, False), (2, {"share_bytes_max": 1, "share_waiting_max": 1}, True)],
)
async def test_waiting_bodies_have_limit(size: int, limits: dict[str, int], is_share: bool) -> None:
    budget = BodyBudget(size, **limits)
    await budget.take("a", 1)
    first = asyncio.create_task(budget.take("a", 1))
    await asyncio.sleep(0)
    with pytest.raises(BodyBudgetExhaustedError) as refused:
        await budget.take("a", 1)
    assert refused.value.is_share is is_share
    if is_share:
        await budget.take("b", 1)
    budget.give_back("a", 1)
    await first


async def test_owner_takes_no_more_than_its_share() -> None:
    budget = BodyBudget(10, share_bytes_max=4, wait_seconds_max=0.01)
    await budget.take("a", 4)
    with pytest.raises(BodyBudgetExhaustedError) as refused:
        await budget.take("a", 1)
    assert refused.value.is_share
    await budget.take("b", 4)
    with pytest.raises(BodyBudgetExhaustedError) as refused:
        await budget.take("c", 4)
    assert not refused.value.is_share
    budget.give_back("a", 4)
    budget.give_back("b", 4)
    assert (budget.free_bytes, budget.waiting) == (10, 0)


async def test_owner_over_its_share_delays_nobody() -> None:
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


async def test_bodies_without_a_token_share_one_part() -> None:
    door = Door(4 * LARGE, 0.05, share_bytes_max=LARGE)
    first = await door.held()
    status, problem = await door.ask(LARGE)
    assert (status, problem["code"], problem["retryAfterMs"]) == (429, "bodies_busy", 1000)
    assert "in progress, the maximum" in problem["detail"]
    known = asyncio.create_task(door.ask(LARGE, owner="token:a"))
    await door.until(taken=2)
    door.application.may_answer.set()
    assert [(await item)[0] for item in (first, known)] == [200, 200]
    assert door.budget.free_bytes == 4 * LARGE


NOTHING_HERE = 404
NOT_READY = 503


def marks_of(server: RunningLog) -> PositionHeaders:
    """Return the position headers of a response that neither read nor decided."""
    return PositionHeaders(str(server.log.log_id), server.log.head, lambda: server.tail.position)


async def marked_position(
    marks: PositionHeaders, status: int, given: Sequence[tuple[bytes, bytes]] = ()
) -> int | None:
    position = dict(await marks.with_position(status, given)).get(POSITION_HEADER)
    return int(position) if position is not None else None


async def test_error_has_position_of_the_log(
    running: RunningLog,
) -> None:
    async with running_on(running.url) as second_log:
        # Its tail stops, as that of a busy server does for a moment.
        await second_log.tail.close()
        appended = await running.log.submit(observing(key("one")))
        assert second_log.tail.position < appended.position
        assert await marked_position(marks_of(running), NOTHING_HERE) == appended.position
        assert await marked_position(marks_of(second_log), NOTHING_HERE) == appended.position


async def test_position_of_answer_is_kept() -> None:
    marks = PositionHeaders("a-log", away, lambda: 9)
    assert await marked_position(marks, NOTHING_HERE, [(POSITION_HEADER, b"3")]) == 3


async def test_unready_server_names_last_known_position() -> None:
    seen = 3
    marks = PositionHeaders("a-log", away, lambda: seen)
    assert await marked_position(marks, NOT_READY) == 3
    await marked_position(marks, 200, [(POSITION_HEADER, b"5")])
    assert await marked_position(marks, NOT_READY) == 5
    seen = 6
    assert await marked_position(marks, NOT_READY) == 6


async def test_other_answers_name_none_without_log() -> None:
    for head in (away, silent, broken):
        marks = PositionHeaders("a-log", head, lambda: 3)
        assert await marked_position(marks, NOTHING_HERE) is None


async def test_answer_has_the_clock_of_the_log() -> None:
    instant = datetime(2026, 3, 1, 10, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=1)))
    marks = PositionHeaders("a-log", away, lambda: 3, now=lambda: instant)
    for status in (200, NOTHING_HERE, NOT_READY):
        headers = dict(await marks.with_position(status, []))
        assert headers[b"spawnlog-clock"] == b"2026-03-01T09:00:00.250000Z"


async def away() -> int:
    raise LogUnavailableError("the database is away")


async def silent() -> int:
    never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    return await never


async def broken() -> int:
    raise RuntimeError("nobody expected this")


class FakeConnection:
    """Connection with the members that `while_present` uses."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.on_lost: Callable[[], None] | None = None
        self._is_open = is_open

    def watch(self) -> Callable[[], bool]:
        return lambda: self._is_open


def working(connection: FakeConnection, work: asyncio.Future[str]) -> "asyncio.Task[str]":
    async def answer() -> str:
        return await work

    return asyncio.create_task(while_present({"extensions": {EXTENSION: connection}}, answer()))


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


async def test_stopping_server_cancels_wait() -> None:
    connection, work = FakeConnection(), asyncio.get_running_loop().create_future()
    waiting = working(connection, work)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


EVENTS = "text/event-stream"


@pytest.mark.parametrize(
    ("accepted", "prefers"),
    [
        (["*/*"], False),
        (["application/json"], False),
        ([EVENTS], True),
        (["Text/Event-Stream"], True),
        ([f"application/json, {EVENTS}"], True),
        ([f"application/json;q=0.5, {EVENTS};q=0.9"], True),
        ([f"application/json, {EVENTS};q=0.9"], False),
        ([f"{EVENTS};q=0"], False),
        ([f"{EVENTS};q=nan"], False),
        ([f'application/json;x="{EVENTS}"'], False),
    ],
)
def test_stream_is_sent_if_json_is_not_preferred(accepted: list[str], prefers: bool) -> None:
    headers = [(b"accept", text.encode()) for text in accepted]
    assert prefers_stream(Request({"type": "http", "headers": headers})) is prefers
