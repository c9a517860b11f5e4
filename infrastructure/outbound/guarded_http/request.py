"""Requests to addresses that were looked at before: what is sent, and to whom it may go."""

import asyncio
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
DEFAULT_PORTS = {"http": 80, "https": 443}


class NotCalled(Exception):
    """Nobody was called, or not any further; the text says why, and shows no address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedRequest:
    """One request. The URL is without a user name and a password: they are in the headers."""

    method: str
    url: httpx2.URL
    headers: dict[str, str]
    body: bytes | None = None

    @property
    def host(self) -> str:
        """The host in ASCII."""
        return self.url.raw_host.decode("ascii")

    @property
    def port(self) -> int:
        """The port, that of the scheme where none is named."""
        return self.url.port or DEFAULT_PORTS[self.url.scheme]

    def to(self, address: str, seconds: float) -> httpx2.Request:
        """The request at one address of the host: whoever answers there has to be the host."""
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
    """For one request. A connection that is kept is found by its address, and may have been made to
    another name: none is kept."""
    return httpx2.AsyncHTTPTransport(
        verify=tls,
        trust_env=False,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
    )


async def called(
    transport: httpx2.AsyncHTTPTransport, request: GuardedRequest, resolve: ResolveHost, whom: str
) -> httpx2.Response:
    """The beginning of the answer of the first address of the host at which somebody is, when every
    one of them may be called. Raises `NotCalled`; `whom` is how its text calls who is called."""
    addresses = await resolve(request.host, request.port)
    if not addresses:
        raise NotCalled(f"{whom} host cannot be found")
    for address in addresses:
        complaint = address_complaint(address)
        if complaint is not None:
            raise NotCalled(f"{whom} {complaint}")
    return await _first_reachable(transport, request, addresses[:ADDRESSES_MAX], whom)


async def _first_reachable(
    transport: httpx2.AsyncHTTPTransport,
    request: GuardedRequest,
    addresses: Sequence[str],
    whom: str,
) -> httpx2.Response:
    for address in addresses:
        try:
            return await transport.handle_async_request(request.to(address, CONNECT_SECONDS))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if _is_distrusted(error):
                text = f"{whom} cannot be reached: its certificate is not trusted here"
                raise NotCalled(text) from None
    raise NotCalled(f"{whom} cannot be reached")


async def body_prefix(response: httpx2.Response, deadline: float) -> bytes:
    """Return the beginning of the body of an answer whose status decides. A body that is cut off,
    slow or long is no failure. `deadline` is a time of the event loop."""
    latest = min(deadline, asyncio.get_running_loop().time() + PREFIX_SECONDS_MAX)
    prefix = bytearray()
    with suppress(TimeoutError, httpx2.RequestError):
        async with asyncio.timeout_at(latest):
            async for part in response.aiter_raw():
                prefix += part[: PREFIX_BYTES_MAX - len(prefix)]
                if len(prefix) == PREFIX_BYTES_MAX:
                    break
    return bytes(prefix)


def _is_distrusted(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
