"""HTTP context of a request to `/mcp`: its caller and the session that it names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope

from application.commands.context import CommandContext
from application.commands.services import CommandServices
from application.queries.access import Caller, require_session_access
from application.queries.errors import QueryError
from application.queries.session_reference import resolve_session_key
from domain.values.session_key import MAIN
from infrastructure.inbound.mcp.tools.call import McpCall, ReportProgress

SESSION_HEADER = "spawnlog-session"
SESSION_POINTER = "/header/Spawnlog-Session"
SPELLING_CHARS_MAX = 512
IDEMPOTENCY_KEY = "idempotencyKey"
"""Member of `_meta` in a call: the same call with the same key takes effect once."""
REQUEST = "spawnlog.mcp"
"""Member of the ASGI scope that holds the request while the SDK calls a handler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpRequest:
    """A request with a known caller.

    Attributes:
        session: The session as the header spells it. None means the token's session.
        caller_is_there: Returns False once the caller has disconnected.
    """

    caller: Caller
    session: str | None
    headers: Headers
    caller_is_there: Callable[[], bool]

    async def session_key(self, services: CommandServices) -> str:
        """Return the canonical key of the session named by the header.

        Without the header, return the token's only session, or the main session if the token acts
        for several.

        Raises:
            QueryError: The token does not act for the session.
        """
        only = self.caller.only_session
        if self.session is None and only is not None:
            return only
        spelling = self.session or MAIN
        key = await resolve_session_key(services, self.caller, spelling, pointer=SESSION_POINTER)
        if not self.caller.acts_for(key):
            raise QueryError(
                "not_permitted",
                "this token does not act for that session; set the header Spawnlog-Session to"
                " one of its own",
            )
        require_session_access(self.caller, key)
        return key

    async def call(
        self,
        services: CommandServices,
        arguments: Mapping[str, object] | None = None,
        report: ReportProgress | None = None,
    ) -> McpCall:
        """Return a tool call. If given, `report` is called with the progress of a wait."""
        return McpCall(
            services=services,
            caller=self.caller,
            session_key=await self.session_key(services),
            arguments=arguments or {},
            report=report or _ignore_progress,
            command=CommandContext(is_there=self.caller_is_there),
        )


async def _ignore_progress(_progress: float, _message: str) -> None:
    """Do nothing with the progress."""


def read_request(scope: Scope, caller: Caller, caller_is_there: Callable[[], bool]) -> McpRequest:
    """Return the request of a caller. Refuse a malformed session header."""
    headers = Headers(scope=scope)
    try:
        # ASGI decodes headers as Latin-1.
        session = headers.get(SESSION_HEADER, "").encode("latin-1").decode().strip() or None
    except UnicodeDecodeError:
        raise QueryError("invalid_request", "Spawnlog-Session must be UTF-8") from None
    if session is not None and len(session) > SPELLING_CHARS_MAX:
        raise QueryError(
            "invalid_request", f"Spawnlog-Session must have at most {SPELLING_CHARS_MAX} characters"
        )
    return McpRequest(
        caller=caller, session=session, headers=headers, caller_is_there=caller_is_there
    )


def request_of(context: Any) -> McpRequest:
    """Return the request for which the SDK calls a handler."""
    request: McpRequest = context.request.scope[REQUEST]
    return request
