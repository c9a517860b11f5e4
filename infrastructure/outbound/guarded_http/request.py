"""HTTP requests to addresses that the guard has checked."""

import asyncio
import os
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import httpx2

from infrastructure.outbound.guarded_http.address_guard import (
    ADDRESSES_MAX,
    ResolveHost,
    address_complaint,
)

CONNECT_SECONDS = 5.0
PREFIX_BYTES_MAX = 64 * 1024
PREFIX_SECONDS_MAX = 1.0
DISTRUSTED = "its certificate is not trusted here"
DEFAULT_PORTS = {"http": 80, "https": 443}


class RequestNotSentError(Exception):
    """The address was not called, or the call failed. The text says why and shows no address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedRequest:
    """One request. The URL has no user name and password; these are in the headers."""

    method: str
    url: httpx2.URL
    headers: dict[str, str]
    body: bytes | None = None

    @property
    def host(self) -> str:
        """Return the host in ASCII."""
        return self.url.raw_host.decode("ascii")

    @property
    def port(self) -> int:
        """Return the port, by default the scheme's."""
        return self.url.port or DEFAULT_PORTS[self.url.scheme]

    def to(self, address: str, seconds: float) -> httpx2.Request:
        """Return the request to one address of the host. TLS still verifies the name of the
        host."""
        return httpx2.Request(
            self.method,
            self.url.copy_with(host=address),
            headers={**self.headers, "Host": self.url.netloc.decode("ascii")},
            content=self.body,
            extensions={
                "sni_hostname": self.host.rstrip("."),
                "timeout": httpx2.Timeout(None, connect=seconds).as_dict(),
            },
        )


def new_transport(tls: ssl.SSLContext) -> httpx2.AsyncHTTPTransport:
    """Return a transport for one request.

    It keeps no connection: a kept one is found by address, and may have been made to another name.
    """
    return httpx2.AsyncHTTPTransport(
        verify=tls,
        trust_env=False,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
    )


async def send_guarded(
    transport: httpx2.AsyncHTTPTransport, request: GuardedRequest, resolve: ResolveHost, whom: str
) -> httpx2.Response:
    """Send the request to the first reachable address of its host, and return the response.

    All addresses of the host must be allowed.

    Args:
        transport: Transport for this request.
        request: The request.
        resolve: Resolves the host.
        whom: Name of the callee in errors.

    Returns:
        The response, with its body unread.

    Raises:
        RequestNotSentError: The host is not found, forbidden, unreachable, or its certificate is
            not trusted.
    """
    addresses = await resolve(request.host, request.port)
    if not addresses:
        raise RequestNotSentError(f"{whom} host cannot be found")
    for address in addresses:
        complaint = address_complaint(address)
        if complaint is not None:
            raise RequestNotSentError(f"{whom} {complaint}")
    return await _first_reachable(transport, request, addresses[:ADDRESSES_MAX], whom)


async def _first_reachable(
    transport: httpx2.AsyncHTTPTransport,
    request: GuardedRequest,
    addresses: Sequence[str],
    whom: str,
) -> httpx2.Response:
    why = ""
    for address in addresses:
        try:
            return await transport.handle_async_request(request.to(address, CONNECT_SECONDS))
        except httpx2.ConnectTimeout:
            why = f"no connection in {CONNECT_SECONDS:g} s"
        except httpx2.ConnectError as error:
            why = reason_of_no_connection(error)
            if why == DISTRUSTED:
                break
    raise RequestNotSentError(f"{whom} cannot be reached: {why}")


async def body_prefix(response: httpx2.Response, deadline: float) -> bytes:
    """Return the beginning of the body of a response.

    Use it if the status decides: a body that is cut off, slow or long is not an error. It reads at
    most 64 KiB and one second.

    Args:
        response: The response.
        deadline: Latest time, by the clock of the event loop.
    """
    latest = min(deadline, asyncio.get_running_loop().time() + PREFIX_SECONDS_MAX)
    prefix = bytearray()
    with suppress(TimeoutError, httpx2.RequestError):
        async with asyncio.timeout_at(latest):
            async for part in response.aiter_raw():
                prefix += part[: PREFIX_BYTES_MAX - len(prefix)]
                if len(prefix) == PREFIX_BYTES_MAX:
                    break
    return bytes(prefix)


def reason_of_no_connection(error: BaseException) -> str:
    """Return why there is no connection, without the address."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return DISTRUSTED
        if isinstance(cause, ssl.SSLError):
            return "TLS failed"
        if isinstance(cause, socket.gaierror):
            return "its host cannot be found"
        if isinstance(cause, OSError) and cause.errno is not None:
            return os.strerror(cause.errno)
        if isinstance(cause, BaseExceptionGroup):
            # One error for each address of the host.
            cause = cause.exceptions[0]
        else:
            cause = cause.__cause__ or cause.__context__
    return "no connection"
