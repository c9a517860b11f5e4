"""The guard around the application, tried on applications that misbehave."""

import logging
from urllib.parse import unquote

import httpx2
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from infrastructure.inbound.http.middleware.body_limits import BODY_BYTES_MAX, DISCARDED_BYTES_MAX
from infrastructure.inbound.http.middleware.positions import PositionHeaders
from infrastructure.inbound.http.middleware.request_guard import RequestGuard, host_of
from infrastructure.inbound.http.responses.path_encoding import (
    protect_encoded_slashes,
    restore_slashes,
)
from tests.support.http.problems import problem_of

HEAD = 7


async def head() -> int:
    return HEAD


def guarding(app: ASGIApp) -> RequestGuard:
    return RequestGuard(app, {"spawnlog.test"}, PositionHeaders("a-log", head, lambda: 0))


def client_of(app: ASGIApp) -> httpx2.AsyncClient:
    guarded = guarding(app)
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(guarded), base_url="http://spawnlog.test"
    )


async def nothing() -> Message:
    return {"type": "http.request", "body": b""}


async def asked(
    app: ASGIApp, receive: Receive = nothing, content_length: bytes = b"0"
) -> list[Message]:
    """What the guarded application sends to a `POST /v1/spawns`."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/spawns",
        "raw_path": b"/v1/spawns",
        "query_string": b"",
        "headers": [(b"host", b"spawnlog.test"), (b"content-length", content_length)],
    }
    await guarding(app)(scope, receive, send)
    return sent


async def failing(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("canary-of-the-inside")


async def failing_late(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise RuntimeError("canary-of-the-inside")


async def plain(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


async def test_a_failure_inside_is_a_problem_that_tells_nothing_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with client_of(failing) as client:
        answer = await client.get("/v1/runs?token=canary-token")
    problem_of(answer, 500, "internal")
    assert "canary" not in answer.text
    (record,) = [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert record.name == "spawnlog.http"
    assert "canary-token" not in record.getMessage()


async def test_a_failure_after_the_answer_began_is_logged_and_no_second_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent = await asked(failing_late)
    assert [message["type"] for message in sent] == ["http.response.start"]
    assert [one.name for one in caplog.records] == ["spawnlog.http"]


async def test_every_answer_is_marked_and_guarded() -> None:
    async with client_of(plain) as client:
        answer = await client.get("/v1/runs")
    assert answer.headers["spawnlog-log"] == "a-log"
    assert answer.headers["spawnlog-position"] == "7"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "no-referrer"


async def test_an_answer_that_knows_its_position_keeps_it() -> None:
    async def knowing(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"spawnlog-position", b"3")]
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async with client_of(knowing) as client:
        answer = await client.get("/v1/runs")
    assert answer.headers.get_list("spawnlog-position") == ["3"]


async def test_a_body_is_counted_even_when_its_length_is_a_lie() -> None:
    async def taking(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await plain(scope, receive, send)

    megabytes = 0

    async def receive() -> Message:
        nonlocal megabytes
        megabytes += 1
        return {"type": "http.request", "body": bytes(1024 * 1024), "more_body": True}

    sent = await asked(taking, receive, content_length=b"10")
    assert sent[0]["status"] == 413
    bytes_max = BODY_BYTES_MAX + DISCARDED_BYTES_MAX + 1024 * 1024
    assert BODY_BYTES_MAX < megabytes * 1024 * 1024 <= bytes_max


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("Spawnlog.TEST:80", "spawnlog.test"),
        ("[::1]:8700", "::1"),
        ("user@evil.example", "evil.example"),
        ("", ""),
        ("[", ""),
        ("a b", "a b"),
    ],
)
def test_the_host_of_an_authority(authority: str, host: str) -> None:
    assert host_of(authority) == host


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
def test_an_encoded_slash_is_not_a_slash_of_the_path(raw: bytes, path: str) -> None:
    scope = {"raw_path": raw, "path": unquote(raw.decode())}
    assert protect_encoded_slashes(scope) == path
    assert "\x1f" not in restore_slashes(path)
