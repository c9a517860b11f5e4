"""Checks before a request is read (host, origin, sizes), and headers of every response."""

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
"""Size of the cache of parsed host names."""


FILES_PREFIX = "/ui/"
"""Prefix of files, which have no position of a log."""
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
OnAnswer = Callable[[str, str | None, int, float], None]
"""Called when an answer begins: method, route template, status, and seconds since the request."""

ProblemOf = Callable[[Scope, Exception], HttpProblem | None]
"""Returns the problem for an error, or None if the error is unexpected."""

_CONTROL = re.compile(rb"%[01]")
_log = logging.getLogger("spawnlog.http")


@lru_cache(maxsize=AUTHORITIES_MAX)
def host_of(authority: str) -> str:
    """Return the host of `host:port` in lower case, without brackets. Empty if it is malformed."""
    try:
        return (urlsplit(f"//{authority}").hostname or "").lower()
    except ValueError:
        return ""


METHOD_NOT_ALLOWED = 405


def _own_problem(_: Scope, error: Exception) -> HttpProblem | None:
    return error if isinstance(error, HttpProblem) else None


class RequestGuard:
    """Outermost middleware of the HTTP application.

    It refuses foreign hosts and origins (a page of another site in a browser), oversized bodies and
    unusable paths, and answers errors of the application. Every answer except a file of the page
    gets the log and a position. Past the limit of open files only requests that `is_essential`
    accepts are answered.
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
        """Pass the request to the application, or answer it."""
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
                # Browsers enforce all policies together, so one that the response sets replaces
                # this one.
                named = {name for name, _ in headers}
                headers += [header for header in SECURITY_HEADERS if header[0] not in named]
                message["headers"] = headers
                self._report_answer(scope, message["status"], time.monotonic() - began)
            await intake.answer(message, send)

        try:
            self._check_request(scope, intake)
            await self._app(scope, intake.receive, marked)
        except Exception as error:
            problem = self._problem_of(scope, error)
            if problem is None or started:
                # Log and answer the error, so that the connection survives for later requests.
                _log.error("%s %s failed", scope["method"], _path_for_log(scope), exc_info=error)
            if not started:
                response = problem_response(problem or _internal_problem(), scope)
                await response(scope, receive, marked)
        finally:
            intake.release()

    def _report_answer(self, scope: Scope, status: int, seconds: float) -> None:
        # A 405 is answered before the caller is known. Such answers are counted together, so that
        # strangers cannot use up the labels.
        route = _route_of(scope) if status != METHOD_NOT_ALLOWED else None
        self._on_answer(scope["method"], route, status, seconds)

    def _check_request(self, scope: Scope, intake: BodyIntake) -> None:
        if uses_reserved_file(scope) and not self._is_essential(scope):
            raise HttpProblem(
                "unavailable",
                "the server has too many open files; retry in a moment",
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
                "headers_too_large",
                f"the headers may have at most {HEADERS_BYTES_MAX} bytes in total",
            )
        if len(hosts) != 1 or host_of(hosts[0].decode("latin-1")) not in self._hosts:
            raise HttpProblem(
                "foreign_host",
                "unknown host name; use the server's address, or add the name to"
                " spawnlog.allowedHosts",
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
    """Return the template of the route that matched, or None.

    The path replaces the template of a route without parameters that the framework does not report.
    """
    if "route" in scope:
        return getattr(scope["route"], "path", None)
    return scope["path"] if "endpoint" in scope and not scope.get("path_params") else None


def authority_of(origin: str) -> str:
    """Return the authority of an origin. Empty for `null` and for a malformed URL."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _require_usable_path(scope: Scope) -> None:
    query = scope["query_string"]
    if len(scope["raw_path"]) + len(query) > TARGET_BYTES_MAX:
        raise HttpProblem("target_too_long", f"a URL may have at most {TARGET_BYTES_MAX} bytes")
    if _CONTROL.search(scope["raw_path"]) or b"%00" in query:
        raise HttpProblem("invalid_request", "a URL must not contain NUL or control characters")


def _path_for_log(scope: Scope) -> str:
    return str(scope["raw_path"][:200].decode("latin-1"))


def _internal_problem() -> HttpProblem:
    return HttpProblem("internal", "an internal error; the server's log has the details")
