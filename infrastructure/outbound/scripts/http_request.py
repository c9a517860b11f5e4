"""Request of a context script at a URL, and its permitted redirects."""

from base64 import b64encode
from dataclasses import dataclass, replace
from importlib.metadata import version
from urllib.parse import quote

import httpx2

from application.ports.scripts import ScriptCall, ScriptRun
from domain.configuration.context_scripts import is_url
from domain.configuration.secrets import without_url_secrets
from domain.context.script_request import URL_BYTES_MAX, request_body, request_url
from domain.values.text import replace_unstorable
from infrastructure.outbound.guarded_http.request import (
    DEFAULT_PORTS,
    GuardedRequest,
    RequestNotSentError,
)

ACCEPT = "application/json, text/plain;q=0.9, */*;q=0.1"
REDIRECTS_MAX = 3
_NO_URL = "Script has a URL that cannot be called"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class ScriptNotCalledError(RequestNotSentError):
    """A script was not called, or a redirect was not followed. The text says why and shows no
    address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRequest(GuardedRequest):
    """Request of a script that can be redirected."""

    def redirected_to(self, status: int, location: str) -> "ScriptRequest | None":
        """Return the request for a redirect; None if the answer is not a redirect.

        Raises:
            ScriptNotCalledError: The redirect leads to another scheme, host or port. Another port
                is another service, and another scheme is other protection.
        """
        if status not in _REDIRECTS or not location:
            return None
        try:
            url = self.url.join(location).copy_with(userinfo=b"", fragment=None)
            target = replace(self, url=url)
            is_same = (url.scheme, target.host, target.port) == (
                self.url.scheme,
                self.host,
                self.port,
            )
        except (httpx2.InvalidURL, KeyError, UnicodeError, ValueError):
            raise ScriptNotCalledError("Script redirects to an invalid URL") from None
        if not is_same:
            raise ScriptNotCalledError(
                "Script redirects to another host; give that address as its uri"
            )
        if len(str(url).encode()) > URL_BYTES_MAX:
            raise ScriptNotCalledError(
                f"Script redirects to a URL of more than {URL_BYTES_MAX} bytes"
            )
        if status == 303 or (status in (301, 302) and self.method == "POST"):
            headers = {name: text for name, text in self.headers.items() if name != "Content-Type"}
            method = self.method if self.method == "HEAD" else "GET"
            return replace(target, method=method, headers=headers, body=None)
        return target


def request_of(run: ScriptRun, uri: str) -> ScriptRequest:
    """Return the first request of a script.

    Args:
        run: The script and its values.
        uri: URI of the script with variables replaced.

    Raises:
        ScriptNotCalledError: The URI is not a valid URL.
        ArgumentsTooLongError: The URL would be too long.
    """
    script = run.script
    if not is_url(uri):
        raise ScriptNotCalledError(
            "Script is not a URL after its variables are replaced; write https:// in uri"
        )
    if replace_unstorable(uri) != uri:
        # An environment variable may hold bytes that are not text.
        raise ScriptNotCalledError(_NO_URL)
    address = request_url(uri, script.method, script.arg_map, run.variables)
    body = request_body(script.method, script.arg_map, run.variables)
    try:
        given = httpx2.URL(address)
        url = given.copy_with(userinfo=b"", fragment=None)
        is_valid = url.host and url.scheme in DEFAULT_PORTS
        if not is_valid or not 0 < (url.port or 1) < 65_536:
            raise ScriptNotCalledError(_NO_URL)
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        raise ScriptNotCalledError(_NO_URL) from None
    headers = {
        "Accept": ACCEPT,
        "Accept-Encoding": "identity",
        "Connection": "close",
        "User-Agent": f"spawnlog/{version('spawnlog')}",
        "Idempotency-Key": _key(run),
        "Spawnlog-Attempt": quote(run.facts.get("SPAWNLOG_ATTEMPT", "1"), safe=""),
    }
    if given.userinfo:
        pair = f"{given.username}:{given.password}".encode()
        headers["Authorization"] = f"Basic {b64encode(pair).decode()}"
    if body is not None:
        headers["Content-Type"] = "application/json"
    return ScriptRequest(
        method=script.method, url=url, headers=headers, body=body.encode() if body else None
    )


def called_words(request: ScriptRequest) -> tuple[ScriptCall, ...]:
    """Return the request for a log, without user name, password and query values named like
    secrets."""
    call = (request.method, without_url_secrets(str(request.url)))
    if request.body is None:
        return (call,)
    return call, ("body:", request.body.decode())


def _key(run: ScriptRun) -> str:
    run_id = run.facts.get("SPAWNLOG_RUN_ID", "")
    return f"{quote(run_id, safe='')}:script:{quote(run.script.id, safe='')}"
