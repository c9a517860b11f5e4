"""Guards before anything is read: whose host and origin, how large, how a response is marked."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from infrastructure.inbound.http.problems import Problem, problem_response

BODY_BYTES_MAX = 16 * 1024 * 1024
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)


def host_of(authority: str) -> str:
    """The host of `host:port`, in lower case and without brackets; empty when it is none."""
    try:
        return (urlsplit(f"//{authority}").hostname or "").lower()
    except ValueError:
        return ""


class Guard:
    """Refuses what comes under a foreign name (a page in a browser that was lured here), and
    bodies over the limit, declared or not."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
            await send(message)

        problem = self._problem(scope)
        if problem is not None:
            await problem_response(problem, scope["path"])(scope, receive, marked)
            return
        await self._app(scope, limited(receive), marked)

    def _problem(self, scope: Scope) -> Problem | None:
        headers = [(name.lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or host_of(hosts[0]) not in self._hosts:
            return Problem(
                "foreign_host",
                "this server is not addressed by that name; use its own address or list the name"
                " in spawnlog.allowedHosts",
            )
        for name, value in headers:
            if name == b"origin" and host_of(urlsplit_netloc(value)) not in self._hosts:
                return Problem("foreign_origin", "requests from pages of other sites are refused")
            if name == b"content-length" and (not value.isdigit() or int(value) > BODY_BYTES_MAX):
                return _too_large()
        return None


def urlsplit_netloc(origin: str) -> str:
    """The authority of an origin; empty for `null` and what is no URL."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def limited(receive: Receive) -> Receive:
    """The same body, up to the limit: a length that was not declared is counted as it comes."""
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > BODY_BYTES_MAX:
                raise _too_large()
        return message

    return counted


def _too_large() -> Problem:
    return Problem(
        "too_large", f"a request body may have {BODY_BYTES_MAX} bytes at most; send less"
    )
