"""What a request to `/mcp` says beside its message: who asks, and as which session."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import Scope

from application.commands.once import require_usable_key
from application.commands.services import CommandServices
from application.log.event_log import Reservation
from application.queries.access import Caller, require_session_access
from application.queries.errors import QueryError
from application.queries.session_reference import resolve_session_key
from domain.values.session_key import MAIN
from infrastructure.inbound.mcp.tools.call import McpCall, ReportProgress

SESSION_HEADER = b"spawnlog-session"
SESSION_POINTER = "/header/Spawnlog-Session"
SPELLING_CHARS_MAX = 512
IDEMPOTENCY_KEY = "idempotencyKey"
"""In `_meta` of a call: the same call under the same key takes effect once."""
REQUEST = "spawnlog.mcp"
"""Where it stands in the scope of the request that the SDK hands over."""

_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpRequest:
    """A request whose caller is known. `session` is the spelling of the session that it names;
    without one it is that of its token. `name` is the header `Mcp-Name` as it was sent."""

    caller: Caller
    session: str | None
    name: str | None
    idempotency_key: str | None
    trace: str | None
    caller_is_there: Callable[[], bool]

    async def session_key(self, services: CommandServices) -> str:
        """The canonical key of the session that the caller is. A token that acts for many is the
        main session, unless it says another. `QueryError` for one that it does not act for."""
        only = self.caller.only_session
        if self.session is None and only is not None:
            return only
        spelling = self.session or MAIN
        key = await resolve_session_key(services, self.caller, spelling, pointer=SESSION_POINTER)
        if not self.caller.acts_for(key):
            raise QueryError(
                "not_permitted",
                "this token does not act for that session; name one of its own in the header"
                " Spawnlog-Session",
            )
        require_session_access(self.caller, key)
        return key

    async def call(
        self,
        services: CommandServices,
        arguments: Mapping[str, object] | None = None,
        report: ReportProgress | None = None,
    ) -> McpCall:
        """What a tool is given of this request; without `report` nobody is told of a wait."""
        return McpCall(
            services=services,
            caller=self.caller,
            session_key=await self.session_key(services),
            arguments=arguments or {},
            report=report or _tell_nobody,
            caller_is_there=self.caller_is_there,
        )

    def traceparent(self, meta: Mapping[str, Any] | None) -> str | None:
        """The W3C trace context of a call: in its `_meta`, else in the header. One that is
        malformed is left out."""
        given = (meta or {}).get("traceparent") or self.trace
        text = given.strip().lower() if isinstance(given, str) else ""
        return text if _TRACEPARENT.fullmatch(text) else None


async def _tell_nobody(_progress: float, _message: str) -> None:
    """Nobody waits."""


def read_request(scope: Scope, caller: Caller, caller_is_there: Callable[[], bool]) -> McpRequest:
    """The request of a caller. `QueryError` for a session that cannot be one."""
    headers = dict(scope["headers"])
    try:
        session = headers.get(SESSION_HEADER, b"").decode("utf-8").strip() or None
    except UnicodeDecodeError:
        raise QueryError("invalid_request", "Spawnlog-Session must be UTF-8") from None
    if session is not None and len(session) > SPELLING_CHARS_MAX:
        raise QueryError(
            "invalid_request", f"Spawnlog-Session may have {SPELLING_CHARS_MAX} characters"
        )
    key = headers.get(b"idempotency-key")
    trace = headers.get(b"traceparent")
    name = headers.get(b"mcp-name")
    return McpRequest(
        caller=caller,
        session=session,
        name=name.decode("latin-1") if name is not None else None,
        idempotency_key=key.decode("latin-1") if key is not None else None,
        trace=trace.decode("latin-1") if trace is not None else None,
        caller_is_there=caller_is_there,
    )


def request_of(context: Any) -> McpRequest:
    """The request in whose course the SDK asks something."""
    found: McpRequest = context.request.scope[REQUEST]
    return found


def reserved(request: McpRequest, path: str, key: str, asked: object) -> Reservation:
    """The idempotency key of a request that asks for this. `QueryError` for one that cannot be
    kept."""
    require_usable_key(key)
    actor = request.caller.actor
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False)
    return Reservation(
        token=actor.token or actor.kind,
        method="POST",
        path=path,
        key=key,
        fingerprint=hashlib.sha256(text.encode()).digest(),
    )
