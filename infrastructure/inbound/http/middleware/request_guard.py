"""Guards before anything is read: whose host and origin, how large, how a response is marked."""

import logging
import re
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from infrastructure.inbound.http.middleware.body_limits import BodyBudget, BodyIntake
from infrastructure.inbound.http.middleware.disconnects import uses_reserved_file
from infrastructure.inbound.http.middleware.positions import PositionHeaders
from infrastructure.inbound.http.responses.path_encoding import protect_encoded_slashes
from infrastructure.inbound.http.responses.problems import HttpProblem, problem_response

TARGET_BYTES_MAX = 16 * 1024
HEADERS_BYTES_MAX = 64 * 1024
AUTHORITIES_MAX = 64
"""So many names of hosts are known from one request to the next."""


FILES_PREFIX = "/ui/"
"""Below it are files, which are as of no position of a log."""
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
OnAnswer = Callable[[str, str | None, int, float], None]
"""Hears of each answer that begins: method, template of its route, status, and after how long."""

ProblemOf = Callable[[Scope, Exception], HttpProblem | None]
"""Gives the problem that an error is answered with; None for an error that nobody foresaw."""

_CONTROL = re.compile(rb"%[01]")
_log = logging.getLogger("spawnlog.http")


@lru_cache(maxsize=AUTHORITIES_MAX)
def host_of(authority: str) -> str:
    """The host of `host:port`, in lower case and without brackets; empty when it is none."""
    try:
        return (urlsplit(f"//{authority}").hostname or "").lower()
    except ValueError:
        return ""


METHOD_NOT_ALLOWED = 405


def _own_problem(_: Scope, error: Exception) -> HttpProblem | None:
    return error if isinstance(error, HttpProblem) else None


class RequestGuard:
    """Refuses what comes under a foreign name (a page in a browser that was lured here), bodies
    over the limit, declared or not, and texts that cannot be kept. Answers what failed inside.
    Every answer but a file of the page is marked with its log and a position. Past the limit of
    open files only requests that `is_essential` are answered.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Iterable[str],
        marks: PositionHeaders,
        budget: BodyBudget | None = None,
        on_answer: OnAnswer = lambda *_: None,
        is_essential: Callable[[Scope], bool] = lambda _: False,
        problem_of: ProblemOf = _own_problem,
    ) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._marks = marks
        self._budget = budget or BodyBudget()
        self._on_answer = on_answer
        self._is_essential = is_essential
        self._problem_of = problem_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = {**scope, "path": protect_encoded_slashes(scope)}
        intake = BodyIntake(receive, self._budget)
        intake.offer_in(scope)
        started = False
        began = time.monotonic()

        async def marked(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = list(message.get("headers", ()))
                if not scope["path"].startswith(FILES_PREFIX):
                    headers = await self._marks.with_position(message["status"], headers)
                # Two policies would both be enforced, so what a response says itself counts.
                named = {name for name, _ in headers}
                headers += [one for one in SECURITY_HEADERS if one[0] not in named]
                message["headers"] = headers
                self._tell_answer(scope, message["status"], time.monotonic() - began)
            await intake.answer(message, send)

        try:
            self._check_request(scope, intake)
            await self._app(scope, intake.receive, marked)
        except Exception as error:
            problem = self._problem_of(scope, error)
            if problem is None or started:
                # Said once, and answered, so that the connection lives on for what comes next.
                _log.error("%s %s failed", scope["method"], _path_for_log(scope), exc_info=error)
            if not started:
                response = problem_response(problem or _internal_problem(), scope)
                await response(scope, receive, marked)
        finally:
            intake.release()

    def _tell_answer(self, scope: Scope, status: int, seconds: float) -> None:
        # A method that a route has not is said before it is known who asks: such answers are
        # counted together, so that nobody uses up the room for others.
        route = _route_of(scope) if status != METHOD_NOT_ALLOWED else None
        self._on_answer(scope["method"], route, status, seconds)

    def _check_request(self, scope: Scope, intake: BodyIntake) -> None:
        if uses_reserved_file(scope) and not self._is_essential(scope):
            raise HttpProblem(
                "unavailable",
                "nearly all files that the server may open are in use; ask again in a moment",
                headers={"Connection": "close"},
            )
        hosts: list[bytes] = []
        origins: list[bytes] = []
        lengths: list[bytes] = []
        size_bytes = 0
        for name, value in scope["headers"]:
            size_bytes += len(name) + len(value)
            if name == b"host":
                hosts.append(value)
            elif name == b"origin":
                origins.append(value)
            elif name == b"content-length":
                lengths.append(value)
        if size_bytes > HEADERS_BYTES_MAX:
            raise HttpProblem(
                "headers_too_large", f"all headers may have {HEADERS_BYTES_MAX} bytes at most"
            )
        if len(hosts) != 1 or host_of(hosts[0].decode("latin-1")) not in self._hosts:
            raise HttpProblem(
                "foreign_host",
                "this server is not addressed by that name; use its own address or list the name"
                " in spawnlog.allowedHosts",
            )
        for origin in origins:
            if host_of(authority_of(origin.decode("latin-1"))) not in self._hosts:
                raise HttpProblem(
                    "foreign_origin", "requests from pages of other sites are refused"
                )
        for length in lengths:
            intake.declare(length.decode("latin-1"))
        _require_usable_path(scope)


def _route_of(scope: Scope) -> str | None:
    """The template of the route that took the request; None when none did. A route that the
    framework does not tell of, and that has no parameters, is its path."""
    if "route" in scope:
        return getattr(scope["route"], "path", None)
    return scope["path"] if "endpoint" in scope and not scope.get("path_params") else None


def authority_of(origin: str) -> str:
    """The authority of an origin; empty for `null` and what is no URL."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _require_usable_path(scope: Scope) -> None:
    query = scope["query_string"]
    if len(scope["raw_path"]) + len(query) > TARGET_BYTES_MAX:
        raise HttpProblem("target_too_long", f"a URL may have {TARGET_BYTES_MAX} bytes at most")
    if _CONTROL.search(scope["raw_path"]) or b"%00" in query:
        raise HttpProblem("invalid_request", "a URL must not contain NUL or control characters")


def _path_for_log(scope: Scope) -> str:
    return str(scope["raw_path"][:200].decode("latin-1"))


def _internal_problem() -> HttpProblem:
    return HttpProblem("internal", "an internal error; the server's log has the details")
