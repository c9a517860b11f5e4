"""Hooks over HTTP: each call is a POST of JSON."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version

import httpx2

from application.ports.configurations import PinnedConfiguration
from application.ports.hooks import HookAnswer, HookError
from domain.configuration.hooks import HOOKS, AnyHook, Hook, header_problem, url_problem
from domain.configuration.problems import ConfigurationError
from domain.configuration.secrets import SecretReference
from domain.delivery.hook_payloads import HookCall
from domain.values.json_text import NotJsonError, compact_json, read_json
from infrastructure.outbound.configuration.files import RevisionFiles
from infrastructure.outbound.guarded_http.request import body_prefix, reason_of_no_connection

ANSWER_BYTES_MAX = 65_536


async def answer_of(
    status_code: int, encoding: str | None, body: AsyncIterator[bytes]
) -> HookAnswer:
    """Return the answer of a hook. It reads at most `ANSWER_BYTES_MAX` bytes of the body.

    Args:
        status_code: HTTP status.
        encoding: Content-Encoding, or None.
        body: Chunks of the body.

    Raises:
        HookError: The status is not 2xx, or the body is encoded, too long, or not a JSON object.
    """
    answer_without_body(status_code)
    if encoding is not None and encoding.strip().lower() not in ("", "identity"):
        raise _unusable_answer(
            "the hook answered in an encoding that was not requested", status_code
        )
    received = bytearray()
    async for part in body:
        received += part
        if len(received) > ANSWER_BYTES_MAX:
            message = f"the hook answered more than {ANSWER_BYTES_MAX} bytes"
            raise _unusable_answer(message, status_code)
    if not received.strip():
        return HookAnswer(status_code)
    try:
        value = read_json(received.decode("utf-8"))
    except (NotJsonError, UnicodeDecodeError):
        raise _unusable_answer("the answer of the hook is not JSON", status_code) from None
    if value is not None and not isinstance(value, dict):
        raise _unusable_answer("the answer of the hook is not a JSON object", status_code)
    return HookAnswer(status_code, value)


def answer_without_body(status_code: int) -> HookAnswer:
    """Return the answer of a hook for which only the status counts. Raise HookFailure unless it is
    2xx."""
    if not 200 <= status_code < 300:
        raise _unusable_answer(f"the hook answered HTTP {status_code}", status_code)
    return HookAnswer(status_code)


def _unusable_answer(text: str, status_code: int) -> HookError:
    return HookError(text, status_code=status_code)


CONNECT_SECONDS = 5.0
CALLS_AT_ONCE_MAX = 100
"""Maximum concurrent calls of one hook. A hook that hangs does not block others."""


SLOT_WAIT_SECONDS = 0.5
"""How long a call waits for a free slot, in seconds. It is less than a step has in addition to the
timeout of its hook."""


ResolveSecret = Callable[[str | SecretReference], str]


class HttpHooks:
    """Implementation of `Hooks`. One per process. Addresses and headers are resolved at each
    call."""

    def __init__(
        self,
        files: RevisionFiles,
        *,
        calls_at_once_max: int = CALLS_AT_ONCE_MAX,
        room_seconds: float = SLOT_WAIT_SECONDS,
    ) -> None:
        self._files = files
        self._rooms = {name: asyncio.Semaphore(calls_at_once_max) for name in HOOKS}
        self._room_seconds = room_seconds
        self._client: httpx2.AsyncClient | None = None
        self._agent = f"spawnlog/{version('spawnlog')}"

    async def ask(self, pinned: PinnedConfiguration, call: HookCall) -> HookAnswer:
        """Call a hook once, without retries. Errors contain nothing of the request or the answer.

        Raises:
            HookError: The hook is not configured, was not reached, or its answer is unusable.
        """
        hook = pinned.configuration.spawnlog.hooks.named(call.hook)
        if hook is None:
            raise HookError("the hook is not configured", was_asked=False)
        request = self._request(hook, call, self._files.file_of(pinned).resolve)
        async with self._slot(call.hook):
            return await self._exchange(call, request, float(hook.timeout_seconds))

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def _slot(self, name: AnyHook) -> AsyncIterator[None]:
        """Hold one of the slots of a hook.

        The wait for a slot does not count toward the timeout of the hook, which was not called yet.
        """
        room = self._rooms[name]
        try:
            async with asyncio.timeout(self._room_seconds):
                await room.acquire()
        except TimeoutError:
            text = "the hook was not called: too many concurrent calls"
            raise HookError(text, was_asked=False, is_busy=True) from None
        try:
            yield
        finally:
            room.release()

    async def _exchange(
        self, call: HookCall, request: httpx2.Request, seconds: float
    ) -> HookAnswer:
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._opened().send(request, stream=True)
                try:
                    if call.needs_body:
                        encoding = response.headers.get("Content-Encoding")
                        body = response.aiter_raw()
                        return await answer_of(response.status_code, encoding, body)
                    await body_prefix(response, deadline)
                    return answer_without_body(response.status_code)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise HookError(f"the hook did not answer in {seconds:g} s") from None
        except httpx2.ConnectTimeout:
            text = f"the hook cannot be reached in {CONNECT_SECONDS:g} s"
            raise HookError(text, was_asked=False) from None
        except httpx2.ConnectError as error:
            text = f"the hook cannot be reached: {reason_of_no_connection(error)}"
            raise HookError(text, was_asked=False) from None
        except httpx2.RequestError:
            raise HookError("the hook closed the connection") from None

    def _request(self, hook: Hook, call: HookCall, resolve: ResolveSecret) -> httpx2.Request:
        try:
            url = resolve(hook.url)
            headers = {name: resolve(value) for name, value in hook.headers.items()}
        except ConfigurationError as error:
            text = f"the hook cannot be called: {error}"
            raise HookError(text, was_asked=False) from None
        complaint = url_problem(url)
        if complaint is not None:
            raise HookError(f"the hook cannot be called: its url {complaint}", was_asked=False)
        if any(header_problem(value) is not None for value in headers.values()):
            text = "the hook cannot be called: one of its headers has an invalid value"
            raise HookError(text, was_asked=False)
        # `Headers` ignores case; later updates override earlier ones.
        sent = httpx2.Headers({"Accept": "application/json"})
        sent.update(headers)
        sent.update(
            {
                "Accept-Encoding": "identity",
                "Content-Type": "application/json",
                "Idempotency-Key": call.key,
                "User-Agent": self._agent,
            }
        )
        body = compact_json(call.body).encode()
        try:
            return self._opened().build_request("POST", url, headers=sent, content=body)
        except httpx2.InvalidURL:
            text = "the hook cannot be called: its url must be a URL"
            raise HookError(text, was_asked=False) from None

    def _opened(self) -> httpx2.AsyncClient:
        if self._client is None:
            self._client = httpx2.AsyncClient(
                trust_env=False,
                follow_redirects=False,
                # No cookies: the client is shared by all hooks.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                verify=ssl.create_default_context(),
                # The timeout of the whole call is enforced by the caller.
                timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
                # No keep-alive: if a kept connection was closed by the other side, it is unknown
                # whether the request was received. Slots limit the connections of each hook.
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
            )
        return self._client
