"""Messages relayed to `/mcp`: their headers, and the answers to those that cannot be relayed."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from infrastructure.inbound.command_line.client import mcp_relay
from infrastructure.inbound.command_line.client.mcp_relay import (
    CALLS_MAX,
    McpRelay,
    NotAMessageError,
    read_message,
)
from spawnlog.core.location import ServerAddress

VERSION = "io.modelcontextprotocol/protocolVersion"


def headers_of(agreed: str | None = None, **message: Any) -> dict[str, str]:
    read = read_message(json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode())
    assert read is not None
    return read.headers(agreed)


def test_server_gets_a_message_as_it_was_written() -> None:
    line = b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"task":1,"task":"\\ud800"}}'
    read = read_message(line + b"\r\n")
    assert read is not None
    assert read.content == line


def test_headers_have_version_method_and_name() -> None:
    meta = {"_meta": {VERSION: "2026-07-28"}}
    plain = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
    assert headers_of(method="tools/list", params=meta) == plain
    for method, member in (
        ("tools/call", "name"),
        ("resources/read", "uri"),
        ("tasks/get", "taskId"),
        ("tasks/update", "taskId"),
        ("tasks/cancel", "taskId"),
    ):
        given = headers_of(method=method, params={**meta, member: "subagents"})
        assert given == {**plain, "Mcp-Method": method, "Mcp-Name": "subagents"}


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("ä", "=?base64?w6Q=?="),
        (" a", "=?base64?IGE=?="),
        ("a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ("a b", "a b"),
        ("", "=?base64??="),
    ],
)
def test_name_that_no_header_holds_is_encoded(name: str, header: str) -> None:
    params = {"_meta": {VERSION: "2026-07-28"}, "name": name}
    assert headers_of(method="tools/call", params=params)["Mcp-Name"] == header


def test_message_goes_by_agreed_version() -> None:
    assert headers_of(method="tools/list") == {}
    assert headers_of("2025-06-18", method="tools/call", params={"name": "x"}) == {
        "MCP-Protocol-Version": "2025-06-18"
    }
    odd_ones: list[Any] = [[], "x", {"_meta": []}, {"_meta": {VERSION: 5}}]
    for odd in odd_ones:
        assert headers_of(method="tools/list", params=odd) == {}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"[" * 100_000, -32700),
        (b"\xff", -32700),
        (b"[]", -32600),
        (b"5", -32600),
        (b"{}", -32600),
        (b'{"method": 5}', -32600),
        (b'{"method": "x", "id": true}', -32600),
        (b'{"method": "x", "id": null}', -32600),
        (b'{"method": "x", "id": 1.5}', -32600),
    ],
)
def test_line_that_is_no_message_is_an_error(line: bytes, code: int) -> None:
    with pytest.raises(NotAMessageError) as caught:
        read_message(line)
    assert caught.value.code == code


def test_answer_is_relayed_to_nobody() -> None:
    assert read_message(b'{"jsonrpc": "2.0", "id": 1, "result": {}}') is None


class Relayed:
    """A relay in front of a server of the test."""

    def __init__(self, url: str, token: str | None = "t", session: str | None = None) -> None:
        self.said: list[dict[str, Any]] = []
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.address = ServerAddress(url, token)
        relay = McpRelay(lambda: self.address, session, self._hear)
        self._running = asyncio.create_task(relay.run(self._given()))

    async def _given(self) -> AsyncIterator[bytes]:
        while line := await self._lines.get():
            yield line

    def _hear(self, line: bytes) -> None:
        self.said.append(json.loads(line))

    def say(self, **message: Any) -> None:
        self._lines.put_nowait(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def end(self) -> list[dict[str, Any]]:
        """Return all output once the input has ended."""
        self._lines.put_nowait(b"")
        await asyncio.wait_for(self._running, 20)
        return self.said


Answer = Callable[[str], bytes]


@asynccontextmanager
async def server_that(
    answer: Answer | None, seen: list[str], left: asyncio.Event | None = None
) -> AsyncIterator[str]:
    """Yield a server that sends this answer, or none for None; it notes when a caller has
    `left`.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
            seen.append(head + (await reader.readexactly(length)).decode())
            if answer is None:
                await reader.read(1)
                if left is not None:
                    left.set()
            else:
                writer.write(answer(seen[-1]))
                await writer.drain()
        except asyncio.IncompleteReadError:
            pass  # The connection was closed before the request was complete.
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def document(status: str, kind: str, body: str) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n{body}".encode()


def answer_to(request: str, **members: Any) -> bytes:
    own = json.loads(request.partition("\r\n\r\n")[2])["id"]
    body = json.dumps({"jsonrpc": "2.0", "id": own, **members})
    return document("200 OK", "application/json", body)


async def relay(
    answer: Answer, *messages: dict[str, Any], **settings: Any
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the output for these messages, and the requests that the server saw."""
    seen: list[str] = []
    async with server_that(answer, seen) as url:
        relayed = Relayed(url, **settings)
        for message in messages:
            relayed.say(**message)
        return await relayed.end(), seen


LIST = {"id": 1, "method": "tools/list"}
UNUSABLE: list[tuple[bytes, str]] = [
    (document("401 No", "application/problem+json", '{"detail": "give a token"}'), "give a tok"),
    (document("404 No", "text/html", "<p>"), "404: it is not a spawnlog server"),
    (document("200 OK", "application/json", "[]"), "not from a spawnlog server"),
    (document("200 OK", "application/json", "{}"), "not a spawnlog server"),
    (document("200 OK", "application/json", "[" * 100_000), "not from a spawnlog server"),
    (document("202 OK", "text/plain", ""), "did not answer"),
    (document("200 OK", "text/event-stream", ""), "did not answer"),
    (document("200 OK", "text/event-stream", "data: {\n\n"), "not from a spawnlog server"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "was lost"),
    (b"nonsense\r\n\r\n", "was lost"),
]


@pytest.mark.process
@pytest.mark.parametrize(("answer", "why"), UNUSABLE, ids=range(len(UNUSABLE)))
async def test_unusable_answer_becomes_an_error(answer: bytes, why: str) -> None:
    (output,), seen = await relay(lambda _: answer, LIST, token="secret-token")
    assert output["id"] == 1
    assert why in output["error"]["message"]
    assert "secret-token" in seen[0]
    assert "secret-token" not in str(output)


@pytest.mark.process
async def test_error_without_id_gets_that_of_its_request() -> None:
    error = {"code": -32600, "message": "no such version"}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error})
    refused = document("400 No", "application/json", body)
    output, _ = await relay(lambda _: refused, LIST)
    assert output == [{"jsonrpc": "2.0", "id": 1, "error": error}]


@pytest.mark.process
async def test_headers_have_agreed_version_and_session() -> None:
    result = {"protocolVersion": "2025-06-18"}
    first = {"id": 0, "method": "initialize"}
    _, seen = await relay(
        lambda request: answer_to(request, result=result),
        first,
        LIST,
        session="agent:main:übung ",
    )
    assert ["mcp-protocol-version: 2025-06-18" in text.lower() for text in seen] == [False, True]
    assert all("Spawnlog-Session: agent:main:übung\r\n" in item for item in seen)


@pytest.mark.process
async def test_call_without_server_is_answered_with_advice() -> None:
    relayed = Relayed("http://127.0.0.1:1")
    relayed.say(**LIST)
    relayed.say(method="notifications/initialized")
    (answer,) = await relayed.end()
    assert answer["id"] == 1
    assert "start one with `spawnlog serve`" in answer["error"]["message"]


@pytest.mark.process
async def test_restarted_server_is_found() -> None:
    seen: list[str] = []
    async with server_that(lambda request: answer_to(request, result={}), seen) as url:
        relayed = Relayed("http://127.0.0.1:1", "old-token")
        relayed.say(id=7, method="initialize")
        relayed.address = ServerAddress(url, "new-token")
        relayed.say(**LIST)
        lost, found = await relayed.end()
    assert lost["id"] == 7
    assert "start one with `spawnlog serve`" in lost["error"]["message"]
    assert found == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert "new-token" in seen[0]
    assert "old-token" not in seen[0]


@pytest.mark.process
async def test_cancelled_call_closes_its_connection() -> None:
    seen: list[str] = []
    left = asyncio.Event()
    async with server_that(None, seen, left) as url:
        relayed = Relayed(url)
        relayed.say(id=1, method="tools/call")
        while not seen:
            await asyncio.sleep(0)
        relayed.say(method="notifications/cancelled", params={"requestId": 1})
        relayed.say(method="notifications/cancelled", params={"requestId": "unknown"})
        await asyncio.wait_for(left.wait(), 20)
        assert await relayed.end() == []


@pytest.mark.process
async def test_call_over_limit_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_relay, "LAST_ANSWERS_SECONDS", 0.0)
    async with server_that(None, []) as url:
        relayed = Relayed(url)
        for number in (*range(CALLS_MAX + 1), 0):
            relayed.say(id=number, method="tools/call")
        output = await relayed.end()
    assert [line["id"] for line in output] == [CALLS_MAX, 0, *range(CALLS_MAX)]
    assert "the input ended" in output[-1]["error"]["message"]
    assert f"{CALLS_MAX} requests are in progress" in output[0]["error"]["message"]


@pytest.mark.process
async def test_input_comes_in_pieces_and_output_may_be_closed() -> None:
    seen: list[str] = []
    async with server_that(lambda request: answer_to(request, result={"a": "ü"}), seen) as url:
        relay = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "infrastructure.inbound.command_line.main", "mcp"),
            *("--url", url),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert relay.stdin is not None
        assert relay.stdout is not None
        assert relay.stderr is not None
        line = (
            '{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": "ü"}}\n'.encode()
        )
        cut = line.index("ü".encode()) + 1
        for piece in (b'{"id": 7, "method": "\xc3"}\n', line[:cut]):
            relay.stdin.write(piece)
            await relay.stdin.drain()
        async with asyncio.timeout(30):
            # A line that is no text is answered before the rest of the other line arrives.
            refused = json.loads(await relay.stdout.readline())
            assert (refused["id"], refused["error"]["code"]) == (None, -32700)
            relay.stdin.write(line[cut:])
            answer = json.loads(await relay.stdout.readline())
            assert answer == {"jsonrpc": "2.0", "id": 1, "result": {"a": "ü"}}
            assert json.loads(seen[0].partition("\r\n\r\n")[2])["params"] == {"x": "ü"}
            relay.stdout._transport.close()  # type: ignore[attr-defined]
            ended = asyncio.ensure_future(relay.wait())
            # An answer may be written before the pipe is closed; the next one is not.
            while not ended.done():
                relay.stdin.write(b"no message\n")
                await asyncio.wait([ended], timeout=0.1)
            assert ended.result() == 0
            assert await relay.stderr.read() == b""
