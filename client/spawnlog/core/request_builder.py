"""HTTP requests of both clients, and the errors for failed connections."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import httpx2

from spawnlog.core.errors import (
    InvalidSettingError,
    ServerUnreachableError,
    SpawnlogError,
    UnexpectedResponseError,
)
from spawnlog.core.location import ServerAddress, validate_token
from spawnlog.core.request import Request

H = TypeVar("H")

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
SILENCE_SECONDS_MAX = 45.0
"""Read timeout of a live stream. The server sends a heartbeat every 15 seconds; after three missed
heartbeats the connection is lost."""

NO_HTTP = "the answer is not HTTP"
_CUT_SHORT = ("peer closed connection", "Server disconnected", "no response line")
"""Prefixes of httpx2 messages for a connection that ended within an answer."""

CONNECTIONS_MAX = 100
CONNECTIONS_IDLE_MAX = 20


class RequestBuilder:
    """Builder of HTTP requests to one server. No text or error contains its token."""

    def __init__(self, address: ServerAddress, answer_seconds: float, agent: str) -> None:
        if not (agent.isascii() and agent.isprintable()):
            raise InvalidSettingError("agent must be printable ASCII characters")
        self.address = address
        if not answer_seconds > 0:
            raise InvalidSettingError("answer_seconds must be more than 0")
        self._answer_seconds = answer_seconds
        self._headers = {
            "Host": address.url.partition("://")[2],
            "User-Agent": agent,
            "Accept": "application/json",
        }
        if address.token is not None:
            validate_token(address.token, "the address")
            self._headers["Authorization"] = f"Bearer {address.token}"

    def opened(self, kind: Callable[..., H]) -> H:
        """Return an httpx2 client with the settings of this server.

        Args:
            kind: `httpx2.Client` or `httpx2.AsyncClient`.

        Raises:
            InvalidSettingError: The proxy or the certificates of the environment cannot be used.
        """
        try:
            return kind(**self._settings())
        except (ValueError, ImportError, OSError) as error:
            raise InvalidSettingError(f"cannot speak to {self.address.url}: {error}") from None

    @property
    def is_plain(self) -> bool:
        """True if the server is on this machine and the connection is not encrypted."""
        return self.address.is_on_this_machine and self.address.url.startswith("http:")

    def _settings(self) -> dict[str, Any]:
        return {
            # Loading certificates takes a tenth of a second, and plain HTTP uses none.
            "verify": not self.is_plain,
            # Never use a proxy between two programs on the same machine.
            "trust_env": not self.address.is_on_this_machine,
            "limits": httpx2.Limits(
                max_connections=CONNECTIONS_MAX,
                max_keepalive_connections=CONNECTIONS_IDLE_MAX,
            ),
        }

    def request(self, request: Request[Any], *, streams: bool = False) -> httpx2.Request:
        """Return the httpx2 request.

        Args:
            request: The request to send.
            streams: If True, limit only the silence between two chunks, not the whole answer.

        Raises:
            InvalidSettingError: A header value is not one printable line.
        """
        seconds = SILENCE_SECONDS_MAX if streams else self.silence_seconds_max(request)
        # No pool timeout: waiting for a free connection delays sending, not the answer.
        timeout = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds), pool=None)
        return httpx2.Request(
            request.method,
            _url(self.address.url + request.target),
            headers=[
                (name.encode(), value.encode())
                for name, value in self._all_headers(request).items()
            ],
            content=request.content or (b"" if request.method in ("POST", "PUT") else None),
            extensions={"timeout": timeout.as_dict()},
        )

    def silence_seconds_max(self, request: Request[Any]) -> float:
        """Return the maximum seconds without a byte until the answer is complete."""
        return min(self._answer_seconds, request.answer_seconds_max) + request.wait_seconds

    def _all_headers(self, request: Request[Any]) -> dict[str, str]:
        for name, value in request.headers.items():
            if not value.isprintable():
                raise InvalidSettingError(f"{name} must be one line of printable characters")
        return {**self._headers, **request.headers}

    def failure(self, error: Exception, request: Request[Any]) -> SpawnlogError:
        """Return the client's error for an httpx2 error."""
        url, key = self.address.url, request.idempotency_key
        done = "" if request.method == "GET" else "; the request may have been executed"
        match error:
            case httpx2.SSEError():
                return UnexpectedResponseError(f"{url} sends no event stream: {error}")
            case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
                return ServerUnreachableError(f"{url} did not answer in time", key, is_sent=False)
            case httpx2.TimeoutException():
                return ServerUnreachableError(f"{url} did not answer in time{done}", key)
            case httpx2.ConnectError() | httpx2.ProxyError():
                origin = f", {self.address.origin}" if self.address.origin else ""
                return ServerUnreachableError(
                    f"no server answers at {url} ({_reason(error)}){origin}: start one with"
                    f" `spawnlog serve`, or set its address ({self.address.settings})",
                    key,
                    is_sent=False,
                )
            case httpx2.LocalProtocolError():
                # The text of the error may quote the request.
                return InvalidSettingError(f"the request to {url} is not valid HTTP")
            case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
                return InvalidSettingError(f"cannot speak to {url}: {error}")
            case httpx2.RemoteProtocolError():
                # The text of the error may quote the other side.
                is_cut = str(error).startswith(_CUT_SHORT)
                reason = "it ended before the answer was complete" if is_cut else NO_HTTP
            case _:
                reason = _reason(error)
        return ServerUnreachableError(f"the connection to {url} was lost: {reason}{done}", key)


def _reason(error: BaseException) -> str:
    """Return the message of the operating system about a connection, else that of the library."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None:
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


@lru_cache(maxsize=64)
def _url(text: str) -> httpx2.URL:
    """Return a parsed address. Cached, because parsing takes longer than sending."""
    return httpx2.URL(text)


FAILURES = (httpx2.HTTPError, httpx2.InvalidURL)
"""Errors of httpx2 for a request that got no answer."""
