"""Hooks over HTTP, against a real server: requests, answers, and room for calls."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from application.ports.hooks import HookAnswer, HookError
from domain.delivery.hook_payloads import HookCall
from infrastructure.outbound.hooks.http_hooks import ANSWER_BYTES_MAX
from tests.support.servers.hook_calls import CALL, SECRET, Asked, asked
from tests.support.servers.hook_server import HookServer, Reply


@pytest.fixture
def server() -> Iterator[HookServer]:
    with HookServer() as server:
        yield server


async def test_request_has_key_name_and_headers_of_file(
    server: HookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    headers = {"Authorization": "Bearer ${HOOK_SECRET}", "X-Plain": "p"}
    server.replies("subagentEnded", Reply(body={"x": 1}))
    answer = await asked(server, "/a/b?c=d", headers=headers).ask()
    assert answer == HookAnswer(200, {"x": 1})
    (call,) = server.calls()
    assert call.path == "/a/b?c=d"
    assert call.body == {"hook": "subagentEnded", "event": {"runId": "a"}, "ctx": {"b": "c"}}
    sent = {name.lower(): value for name, value in call.headers.items()}
    assert sent["authorization"] == f"Bearer {SECRET}"
    assert sent["idempotency-key"] == "a-run:subagentEnded"
    assert sent["content-type"] == "application/json"
    assert sent["user-agent"].startswith("spawnlog/")
    assert sent["x-plain"] == "p"


@pytest.mark.parametrize(
    ("headers", "accept"),
    [
        ({}, "application/json"),
        ({"accept": "application/vnd.x+json"}, "application/vnd.x+json"),
        ({"ACCEPT": "application/vnd.x+json"}, "application/vnd.x+json"),
    ],
)
async def test_header_is_sent_once_in_any_case(headers: dict[str, str], accept: str) -> None:
    received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.set_result(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(note, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        await Asked({"url": f"http://127.0.0.1:{port}/", "headers": headers}).ask()
    lines = (await received).decode("ascii").split("\r\n")[1:-2]
    sent = [(name.lower(), value) for name, _, value in (line.partition(": ") for line in lines)]
    names = [name for name, _ in sent]
    assert sorted(names) == sorted(set(names))
    assert dict(sent)["accept"] == accept
    assert dict(sent)["accept-encoding"] == "identity"
    assert "content-length" in names


@pytest.mark.parametrize(
    "reply",
    [Reply(204), Reply(200, b""), Reply(200, b" \n"), Reply(202, None), Reply(200, b"null")],
    ids=["204", "empty", "blank", "null", "null as text"],
)
async def test_answer_may_be_empty(server: HookServer, reply: Reply) -> None:
    server.replies("subagentEnded", reply)
    assert await asked(server).ask() == HookAnswer(reply.status, None)


def _padded(size: int) -> bytes:
    return b'{"a":"' + b"x" * (size - 8) + b'"}'


async def test_answer_may_be_as_large_as_the_limit(server: HookServer) -> None:
    server.replies("subagentEnded", Reply(body=_padded(ANSWER_BYTES_MAX)))
    answer = await asked(server).ask()
    assert answer.body is not None


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (Reply(500, {"error": SECRET}), "the hook answered HTTP 500"),
        (Reply(302, headers={"Location": "/elsewhere"}), "the hook answered HTTP 302"),
        (
            Reply(body=b"not json " + SECRET.encode()),
            "the answer of the hook is not JSON",
        ),
        (Reply(body=b"\xff\xfe"), "the answer of the hook is not JSON"),
        (Reply(body=[SECRET]), "the answer of the hook is not a JSON object"),
        (Reply(body=_padded(ANSWER_BYTES_MAX + 1)), "the hook answered more than 65536 bytes"),
        (
            Reply(body=b"zipped", headers={"Content-Encoding": "gzip"}),
            "the hook answered in an encoding that was not requested",
        ),
        (Reply(breaks_off=True), "the hook closed the connection"),
    ],
)
async def test_unusable_answer_is_told_without_secrets(
    server: HookServer, reply: Reply, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    server.replies("subagentEnded", reply)
    threw = await asked(server, headers={"X-Secret": SECRET}).threw()
    assert str(threw) == text
    assert threw.was_asked
    assert threw.status_code == (None if reply.breaks_off else reply.status)
    assert len(server.calls()) == 1
    assert SECRET not in caplog.text


async def test_slow_hook_is_not_waited_for(server: HookServer) -> None:
    server.replies("subagentEnded", Reply(is_held=True))
    threw = await asked(server, timeoutSeconds=0.2).threw()
    assert (str(threw), threw.was_asked) == ("the hook did not answer in 0.2 s", True)


async def test_trickling_answer_is_not_waited_for(tmp_path: Path) -> None:
    async def trickle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        try:
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        except ConnectionError:
            writer.close()

    listening = await asyncio.start_server(trickle, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        hook = {"url": f"http://127.0.0.1:{port}/", "timeoutSeconds": 0.3}
        threw = await Asked(hook).threw()
    assert str(threw) == "the hook did not answer in 0.3 s"


@pytest.fixture
async def nobody() -> AsyncIterator[str]:
    """Yield an address without a listener."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{place.getsockname()[1]}/secret-path?{SECRET}"


async def test_absent_hook_was_not_asked(nobody: str) -> None:
    threw = await Asked({"url": nobody}).threw()
    assert (str(threw), threw.was_asked) == (
        "the hook cannot be reached: Connection refused",
        False,
    )


async def test_unknown_certificate_is_refused(server: HookServer) -> None:
    threw = await Asked({"url": server.url.replace("http:", "https:")}).threw()
    assert not threw.was_asked
    assert str(threw).startswith("the hook cannot be reached")
    assert server.calls() == []


async def test_proxy_of_environment_is_not_used(
    server: HookServer, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, nobody.partition("/secret")[0])
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert (await asked(server).ask()).status_code == 204


@pytest.mark.parametrize(
    ("hook", "value", "text"),
    [
        ({"url": "${HOOK_URL}"}, None, "HOOK_URL: is not set"),
        (
            {"url": "${HOOK_URL}"},
            "ftp://x/",
            "its url must be a URL with http:// or https:// and a host",
        ),
        ({"url": "${HOOK_URL}"}, "http://u:p@127.0.0.1:1/", "its url must not contain a user name"),
        (
            {"url": "http://127.0.0.1:1/", "headers": {"A": "${HOOK_URL}"}},
            "line\r\nX: y",
            "one of its headers has an invalid value",
        ),
    ],
)
async def test_reference_is_checked_when_it_is_used(
    hook: dict[str, Any], value: str | None, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOOK_URL", raising=False)
    if value is not None:
        monkeypatch.setenv("HOOK_URL", value)
    threw = await Asked(hook).threw()
    assert text in str(threw)
    assert value is None or value not in str(threw)
    assert not threw.was_asked


async def test_cookie_is_not_kept(server: HookServer) -> None:
    server.replies("subagentEnded", Reply(200, headers={"Set-Cookie": "a=b; Path=/"}))
    hooks = asked(server)
    for _ in range(2):
        await hooks.hooks.ask(hooks.pinned, CALL)
    await hooks.hooks.aclose()
    assert not [call for call in server.calls() if "Cookie" in call.headers]


async def test_unconfigured_hook_is_not_asked(server: HookServer) -> None:
    call = HookCall("subagentSpawned", "subagentSpawned", "k", {}, {})
    with pytest.raises(HookError, match="not configured"):
        await asked(server).ask(call)
    assert server.calls() == []


async def test_closed_hooks_leave_no_connection(server: HookServer) -> None:
    hooks = asked(server)
    await asyncio.gather(*(hooks.hooks.ask(hooks.pinned, CALL) for _ in range(5)))
    await hooks.hooks.aclose()
    await hooks.hooks.aclose()
    assert len(server.calls()) == 5


SPAWNED = HookCall("subagentSpawned", "subagentSpawned", "a-run:subagentSpawned", {}, {})


async def test_hanging_hook_is_in_the_way_of_itself_alone(server: HookServer) -> None:
    server.replies("subagentEnded", Reply(is_held=True))
    others = server.hooks("subagentSpawned", timeoutSeconds=1)
    hook = {"url": server.url, "timeoutSeconds": 30}
    request = Asked(hook, others, calls_at_once_max=2, room_seconds=0.1)
    try:
        async with asyncio.TaskGroup() as group:
            hanging = [group.create_task(request.hooks.ask(request.pinned, CALL)) for _ in range(2)]
            await asyncio.to_thread(server.called, "subagentEnded", 2)
            for _ in range(3):
                assert (await request.hooks.ask(request.pinned, SPAWNED)).status_code == 204
            with pytest.raises(HookError) as caught:
                await request.hooks.ask(request.pinned, CALL)
            server.let_go()
        assert [item.result().status_code for item in hanging] == [200, 200]
        assert (await request.hooks.ask(request.pinned, CALL)).status_code == 200
    finally:
        await request.hooks.aclose()
    threw = caught.value
    text = "the hook was not called: too many concurrent calls"
    assert (str(threw), threw.was_asked) == (text, False)
    assert len(server.calls("subagentEnded")) == 3


async def test_waiting_for_room_is_no_time_of_the_hook(server: HookServer) -> None:
    server.replies("subagentEnded", Reply(is_held=True))
    hook = {"url": server.url, "timeoutSeconds": 0.3}
    request = Asked(hook, calls_at_once_max=1, room_seconds=5.0)
    calls = (request.hooks.ask(request.pinned, CALL) for _ in range(3))
    try:
        threw = await asyncio.gather(*calls, return_exceptions=True)
    finally:
        await request.hooks.aclose()
    assert [str(item) for item in threw] == ["the hook did not answer in 0.3 s"] * 3
    assert len(server.calls("subagentEnded")) == 3, "each was asked"


async def test_cancelled_call_leaves_its_room(server: HookServer) -> None:
    server.replies("subagentEnded", Reply(is_held=True), Reply(204))
    hook = {"url": server.url, "timeoutSeconds": 30}
    request = Asked(hook, calls_at_once_max=1, room_seconds=0.1)
    try:
        given_up = asyncio.create_task(request.hooks.ask(request.pinned, CALL))
        await asyncio.to_thread(server.called, "subagentEnded")
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await request.hooks.ask(request.pinned, CALL)).status_code == 204
    finally:
        await request.hooks.aclose()
