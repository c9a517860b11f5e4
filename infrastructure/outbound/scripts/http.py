"""Context scripts that are URLs, called at checked addresses."""

import asyncio
import ssl
import time

import httpx2

from application.ports.scripts import ScriptCall, ScriptFinished, ScriptRun
from domain.configuration.problems import ConfigurationError
from domain.context.script_request import ArgumentsTooLongError
from infrastructure.outbound.guarded_http.address_guard import NameLookups, ResolveHost
from infrastructure.outbound.guarded_http.request import (
    RequestNotSentError,
    new_transport,
    send_guarded,
)
from infrastructure.outbound.scripts.failures import status_failure
from infrastructure.outbound.scripts.http_request import (
    REDIRECTS_MAX,
    ScriptNotCalledError,
    ScriptRequest,
    called_words,
    request_of,
)
from infrastructure.outbound.scripts.secrets import SourceOf

CALLS_AT_ONCE_MAX = 100


class HttpScripts:
    """Implementation of `ScriptRunner` for scripts at a URL.

    The host is resolved once per request. All of its addresses are checked, and the connection goes
    to one of them.

    Args:
        source_of: Returns the file of a revision.
        resolve: DNS lookup. Default: `NameLookups`.
        tls: Trusted certificates. Default: those of the system.
    """

    def __init__(
        self,
        source_of: SourceOf,
        *,
        resolve: ResolveHost | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._source_of = source_of
        self._resolve = resolve or NameLookups().resolve
        self._tls = tls
        self._room = asyncio.Semaphore(CALLS_AT_ONCE_MAX)

    async def run(self, request: ScriptRun) -> ScriptFinished:
        """Call the URL. The timeout of the script includes DNS lookups and redirects.

        Returns:
            The answer or the failure; this does not raise for failed scripts.
        """
        answer = _Answer(request.output_bytes_max)
        began = time.monotonic()
        call: tuple[ScriptCall, ...] = ()
        error: str | None = None
        try:
            uri = self._source_of(request.pinned).resolve(request.script.uri)
            first = request_of(request, uri)
            call = called_words(first) if request.script.log == "verbose" else ()
            async with asyncio.timeout(request.timeout_seconds):
                async with self._room:
                    await self._follow(first, answer)
            error = answer.failure()
        except TimeoutError:
            error = answer.failed_status() or (
                f"Script execution timed out after {request.timeout_seconds:g} seconds"
            )
        except (ArgumentsTooLongError, ConfigurationError) as failure:
            error = f"Script was not called: {failure}"
        except RequestNotSentError as failure:
            error = str(failure)
        except httpx2.TransportError:
            error = answer.failed_status() or "Script closed the connection"
        return ScriptFinished(
            raw=bytes(answer.data),
            status_code=answer.status,
            error=error,
            duration_ms=round((time.monotonic() - began) * 1000),
            called=call,
        )

    async def _follow(self, first: ScriptRequest, answer: "_Answer") -> None:
        request: ScriptRequest | None = first
        for _ in range(REDIRECTS_MAX + 1):
            assert request is not None
            request = await self._call(request, answer)
            if request is None:
                return
        raise ScriptNotCalledError(f"Script redirects more than {REDIRECTS_MAX} times")

    async def _call(self, request: ScriptRequest, answer: "_Answer") -> ScriptRequest | None:
        """Send one request. Return the request for its redirect, or None."""
        async with new_transport(self._trusted()) as transport:
            response = await send_guarded(transport, request, self._resolve, "Script")
            try:
                return await answer.take(request, response)
            finally:
                await response.aclose()

    def _trusted(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


class _Answer:
    """The answer received so far."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.data = bytearray()
        self.status: int | None = None
        self._reason = ""
        self._overflowed = self._encoded = self._is_last = False

    async def take(self, request: ScriptRequest, response: httpx2.Response) -> ScriptRequest | None:
        """Read the answer. If it is a redirect, return the request for it instead."""
        self.status = response.status_code
        self._reason = response.reason_phrase
        self._is_last = False
        redirect = request.redirected_to(self.status, response.headers.get("Location", ""))
        if redirect is not None:
            return redirect
        self._is_last = True
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        self._encoded = encoding not in ("", "identity")
        if not self._encoded:
            await self._read(response)
        return None

    async def _read(self, response: httpx2.Response) -> None:
        async for piece in response.aiter_raw():
            self.data += piece[: self._bytes_max - len(self.data) + 1]
            if len(self.data) > self._bytes_max:
                del self.data[self._bytes_max :]
                self._overflowed = True
                return

    def failed_status(self) -> str | None:
        """Return the failure for the status of the last answer, whatever happened to its body; else
        None."""
        if self.status is None or not self._is_last:
            return None
        return status_failure(self.status, self._reason)

    def failure(self) -> str | None:
        """Return why the answer is unusable, or None."""
        failure = self.failed_status()
        if failure is not None:
            return failure
        if self._encoded:
            return "Script answers in an encoding that was not requested; let it send identity"
        if self._overflowed:
            return (
                f"Script answered more than {self._bytes_max} bytes and was stopped; reduce its"
                " answer"
            )
        return None
