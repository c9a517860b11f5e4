"""MCP relay: messages are lines on one side, and requests to `/mcp` of a server on the other.

The headers follow from the message and the agreed protocol version; the relay keeps no other state.
It knows only the methods that concern the transport. It uses no MCP library, since importing one
takes most of a second.
"""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.output import JsonObject
from spawnlog.async_client import AsyncClient
from spawnlog.core.answer import LINE_BYTES_MAX, AnswerContent, read_object
from spawnlog.core.errors import (
    Problem,
    ServerUnreachableError,
    SpawnlogError,
    UnexpectedResponseError,
)
from spawnlog.core.location import ServerAddress
from spawnlog.core.request import Request
from spawnlog.core.retries import NO_RETRIES

MESSAGE_BYTES_MAX = 16 * 1024 * 1024
SESSION_CHARS_MAX = 512
CALLS_MAX = 64
"""Maximum number of requests in progress; a further one is answered with an error."""

LAST_ANSWERS_SECONDS = 10.0
"""Time to wait for outstanding answers after the input has ended.

A client that wants the process to end earlier ends it.
"""

PARSE_ERROR, INVALID_REQUEST, SERVER_ERROR = -32700, -32600, -32000
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_ENCODED = re.compile(r"=\?base64\?.*\?=")

MessageId = str | int


class NotAMessageError(ValueError):
    """The line is not a message. `code` is a JSON-RPC error code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class RelayedMessage:
    """A message from the client, without `id` if it is a notification.

    The server receives `content` unchanged and validates it.
    """

    body: JsonObject
    content: bytes
    id: MessageId | None
    method: str

    @property
    def cancelled(self) -> MessageId | None:
        """Return the id of the request that this message cancels, if it cancels one."""
        if self.method != "notifications/cancelled" or self.id is not None:
            return None
        given = _object(self.body.get("params")).get("requestId")
        return given if isinstance(given, str | int) else None

    def headers(self, agreed: str | None) -> dict[str, str]:
        """Return the headers to send the message with.

        A message that names its version belongs to the protocol without sessions, whose method and
        name are headers too. Other messages use the version that was agreed.
        """
        params = _object(self.body.get("params"))
        version = _object(params.get("_meta")).get(_VERSION_KEY)
        if not isinstance(version, str):
            return {"MCP-Protocol-Version": _header(agreed)} if agreed is not None else {}
        named = params.get(_NAMED_BY.get(self.method, ""))
        return {
            "MCP-Protocol-Version": _header(version),
            "Mcp-Method": _header(self.method),
            **({"Mcp-Name": _header(named)} if isinstance(named, str) else {}),
        }


def read_message(line: bytes) -> RelayedMessage | None:
    """Return the message in a line, or None for an answer, which no server requested.

    Raises:
        NotAMessageError: The line is not a JSON-RPC message.
    """
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        raise NotAMessageError(PARSE_ERROR, "the line is not JSON") from None
    if not isinstance(body, dict):
        raise NotAMessageError(INVALID_REQUEST, "the line is not a single JSON-RPC message")
    method, own = body.get("method"), body.get("id")
    if not isinstance(method, str):
        if "result" in body or "error" in body:
            return None
        raise NotAMessageError(INVALID_REQUEST, "the message has no method")
    if "id" in body and (isinstance(own, bool) or not isinstance(own, str | int)):
        raise NotAMessageError(
            INVALID_REQUEST, "the id of a request must be a string or an integer"
        )
    return RelayedMessage(body, line.strip(), own, method)


def error_message(
    request_id: MessageId | None, code: int, text: str, data: Mapping[str, Any] | None = None
) -> JsonObject:
    """Return an error message of JSON-RPC."""
    error: JsonObject = {"code": code, "message": text}
    if data:
        error["data"] = dict(data)
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _header(text: str) -> str:
    if _PLAIN.fullmatch(text) and not _ENCODED.fullmatch(text):
        return text
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode()
    return f"=?base64?{encoded}?="


class McpRelay:
    """Relay for one client. `write` receives each line of output."""

    def __init__(
        self,
        locate: Callable[[], ServerAddress],
        session: str | None,
        write: Callable[[bytes], None],
    ) -> None:
        self._locate, self._server, self._write = locate, locate(), write
        self._agreed: str | None = None
        self._calls: dict[MessageId, asyncio.Task[None]] = {}
        self._headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        if session is not None:
            if not session.isprintable() or len(session) > SESSION_CHARS_MAX:
                raise CommandError(
                    f"--session must be a session key: printable, at most {SESSION_CHARS_MAX}"
                    " characters"
                )
            self._headers["Spawnlog-Session"] = session.strip()
        self._client = _client_of(self._server)
        self._clients_left: list[AsyncClient] = []

    async def run(self, lines: AsyncIterator[bytes]) -> int:
        """Relay until the lines end. Return the number of requests that got no answer.

        If the client cancels a request or leaves, the relay no longer waits for it. The runs
        continue.
        """
        try:
            async for line in lines:
                if line.strip():
                    await self._take(line)
            if self._calls:
                await asyncio.wait(self._calls.values(), timeout=LAST_ANSWERS_SECONDS)
            left = dict(self._calls)
            for request_id, call in left.items():
                call.cancel()
                text = "the input ended before the answer came; the request may take effect"
                self._say(error_message(request_id, SERVER_ERROR, text))
            await asyncio.gather(*left.values(), return_exceptions=True)
            return len(left)
        finally:
            for client in (self._client, *self._clients_left):
                await client.close()

    async def _take(self, line: bytes) -> None:
        if len(line) > MESSAGE_BYTES_MAX:
            text = f"a message may have at most {MESSAGE_BYTES_MAX} bytes"
            self._say(error_message(None, INVALID_REQUEST, text))
            return
        try:
            message = read_message(line)
        except NotAMessageError as error:
            self._say(error_message(None, error.code, str(error)))
            return
        if message is None:
            return
        if message.cancelled is not None:
            call = self._calls.pop(message.cancelled, None)
            if call is not None:
                call.cancel()
            return
        if message.id is None:
            await self._send(message)
            return
        if len(self._calls) >= CALLS_MAX:
            text = f"{CALLS_MAX} requests are in progress; wait for one of them"
            self._say(error_message(message.id, SERVER_ERROR, text))
            return
        if message.id in self._calls:
            text = "a request with this id is in progress"
            self._say(error_message(message.id, INVALID_REQUEST, text))
            return
        if message.method == "initialize":
            # Later messages are sent with the version that this request agrees on.
            self._agreed = None
            await self._send(message)
            return
        call = asyncio.create_task(self._send(message))
        self._calls[message.id] = call
        call.add_done_callback(lambda done: self._forget(message.id, done))

    def _forget(self, own: MessageId | None, call: "asyncio.Task[None]") -> None:
        if own is not None and self._calls.get(own) is call:
            del self._calls[own]

    async def _send(self, message: RelayedMessage) -> None:
        """Send a message and relay the answers. Each request is answered, if only with an error."""
        answered = False
        request: Request[Any] = Request(
            operation="",
            method="POST",
            path="/mcp",
            content=message.content,
            headers={**self._headers, **message.headers(self._agreed)},
        )
        try:
            async for answer in _bodies(self._client, request):
                body = answer
                if message.id is not None and "error" in body and body.get("id") is None:
                    body = {**body, "id": message.id}
                if message.id is not None and body.get("id") == message.id:
                    answered = True
                    self._note_version(message, body)
                self._say(body)
            text = "the server accepted the message but did not answer"
        except Problem as problem:
            detail = problem.detail or "it is not a spawnlog server: check --url"
            text = f"the server answered {problem.status}: {detail}"
        except SpawnlogError as failure:
            if isinstance(failure, ServerUnreachableError):
                self._locate_again()
            text = failure.message
        if message.id is not None and not answered:
            self._say(error_message(message.id, SERVER_ERROR, text))

    def _locate_again(self) -> None:
        """Look up the server again, since a restarted one may listen elsewhere.

        A new address gets a client of its own, since only a client for a remote server uses proxy
        settings of the environment.
        """
        try:
            server = self._locate()
        except SpawnlogError:
            return
        if server != self._server:
            # Requests to the previous server may still be in progress.
            self._clients_left.append(self._client)
            self._server, self._client = server, _client_of(server)

    def _note_version(self, message: RelayedMessage, body: JsonObject) -> None:
        if message.method == "initialize":
            version = _object(body.get("result")).get("protocolVersion")
            self._agreed = version if isinstance(version, str) else None

    def _say(self, body: JsonObject) -> None:
        self._write(json.dumps(body, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")


def _client_of(server: ServerAddress) -> AsyncClient:
    return AsyncClient(address=server, retries=NO_RETRIES, agent="spawnlog-mcp")


async def _bodies(client: AsyncClient, request: Request[Any]) -> AsyncIterator[JsonObject]:
    """Yield the messages of an answer: a document (an error too), or the events of a stream."""
    try:
        async with client._opened(request) as response:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "text/event-stream":
                async for event in httpx2.EventSource(response, LINE_BYTES_MAX):
                    if event.data:
                        yield _message_in(event.data.encode())
                return
            content = AnswerContent()
            async for chunk in response.aiter_bytes():
                content.add(chunk)
            if whole := content.whole():
                yield _message_in(whole)
    except Problem as problem:
        if problem.members.get("jsonrpc") != "2.0":
            raise
        yield problem.members


def _message_in(content: bytes) -> JsonObject:
    body = read_object(content)
    if body.get("jsonrpc") != "2.0":
        raise UnexpectedResponseError("this is not a spawnlog server: check --url")
    return body
