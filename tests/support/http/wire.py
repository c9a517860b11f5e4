"""HTTP by hand: requests that no client library would send, and callers that disconnect."""

import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from email.message import Message
from http.client import HTTPResponse
from urllib.parse import urlsplit

import httpx2

from tests.support.http.described_answers import check_answer

SECONDS_MAX = 20.0
ANSWER_SECONDS_MAX = 70.0
"""Longer than the longest wait that a request may ask for."""


@dataclass(frozen=True)
class Authority:
    """Host and port of a server."""

    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> "Authority":
        """Return the authority of a server's URL."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        return cls(parts.hostname, parts.port)

    def connect(self) -> socket.socket:
        """Return a new connection."""
        return socket.create_connection((self.host, self.port), timeout=SECONDS_MAX)


def client_of(url: str, token: str | None = None, **headers: str) -> httpx2.Client:
    """Return a client with a token, or without one. It loads no certificates, which takes 30 ms."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        given["Authorization"] = f"Bearer {token}"
    return httpx2.Client(
        base_url=url,
        headers=given,
        timeout=httpx2.Timeout(ANSWER_SECONDS_MAX),
        verify=False,
        trust_env=False,
        event_hooks={"response": [check_answer]},
    )


def head(
    method: str, target: str, headers: Mapping[str, str] | Iterable[tuple[str, str]] = ()
) -> bytes:
    """Return the head of a request exactly as given; nothing is added."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def exchange(url: str, *sent: bytes) -> httpx2.Response:
    """Send these bytes and read one answer. A server may answer before it has read all."""
    with Authority.of(url).connect() as connection:
        began = time.monotonic()
        try:
            for part in sent:
                connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return answer_on(connection, began)


def answer_on(connection: socket.socket, began: float | None = None) -> httpx2.Response:
    """Return the next response on a connection, to a request that began then or now."""
    since = time.monotonic() if began is None else began
    response = HTTPResponse(connection)
    try:
        response.begin()
        answer = httpx2.Response(
            response.status, headers=_pairs(response.headers), content=response.read()
        )
        answer.elapsed = timedelta(seconds=time.monotonic() - since)
        return answer
    finally:
        response.close()


def _pairs(message: Message) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in message.items()]
