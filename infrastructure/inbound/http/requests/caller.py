"""What every endpoint asks of a request: its doors, its caller, what it is about."""

import hashlib
import re
from typing import Annotated, Any, NamedTuple, get_origin
from uuid import UUID

import orjson
from fastapi import Depends, Path, Request, Response
from pydantic import AfterValidator

from application.log.envelope import Actor
from application.log.event_log import Reservation
from application.queries.access import ALL_SCOPES, AccessScope, Caller
from domain.configuration.configuration import Configuration
from domain.run.state import Run
from domain.values.session_key import InvalidSessionKey, render_session_key
from infrastructure.inbound.http.requests.as_of import AsOf
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.path_encoding import restore_slashes
from infrastructure.inbound.http.responses.problems import HttpProblem

IDEMPOTENCY_KEY_CHARS_MAX = 255
SESSION_KEY_CHARS_MAX = 512
CURRENT = "current"


"""Stands for the one session that the caller acts for."""


_NO_CURRENT = "current stands for the session of a token that acts for one; give the session's key"
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
ANONYMOUS_CALLER = Caller(actor=Actor(kind="anybody"), scopes=ALL_SCOPES, patterns=("*",))


"""Who asks when authentication is switched off."""


def services_of(request: Request) -> Services:
    """What the endpoints work with."""
    doors: Services = request.app.state.doors
    return doors


async def caller_of(request: Request) -> Caller:
    """Who asks; 401 without a good token."""
    doors = services_of(request)
    if doors.tokens is None:
        return ANONYMOUS_CALLER
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise HttpProblem("unauthorized", "send a token as Authorization: Bearer …")
    caller = await doors.tokens.caller_of(token.strip())
    if caller is None:
        raise HttpProblem("unauthorized", "this token is unknown, or its run is over")
    return caller


async def caller_with_known_parameters(request: Request) -> Caller:
    """Who asks; 422 when it asks with parameters that the endpoint does not have, or says twice
    what may be said once. A parameter that may be repeated is declared as a tuple."""
    caller = await caller_of(request)
    declared = {one.alias: one for one in request.scope["route"].dependant.query_params}
    for name in request.query_params:
        if name not in declared:
            raise HttpProblem(
                "invalid_request",
                f"there is no parameter {name[:100]} here; there is"
                f" {', '.join(declared) or 'none'}",
                errors=({"pointer": f"/query/{name[:100]}", "detail": "unknown parameter"},),
            )
        is_repeated = len(request.query_params.getlist(name)) > 1
        if is_repeated and get_origin(declared[name].field_info.annotation) is not tuple:
            raise invalid_value(f"/query/{name}", "may be given once only")
    return caller


async def _request_services(request: Request) -> Services:
    """Not a plain function: one would be called in a thread of its own for every request."""
    return services_of(request)


InjectedServices = Annotated[Services, Depends(_request_services)]
ByCaller = Annotated[Caller, Depends(caller_with_known_parameters)]
RUN_ID_SCHEMA: dict[str, Any] = {"format": "uuid", "minLength": 36, "maxLength": 36}


"""What `run_id_of` takes: told and not declared, for another text is the id of no run, and 404."""


RunInPath = Annotated[str, Path(description="The run's id.", json_schema_extra=RUN_ID_SCHEMA)]
AnnouncementInPath = Annotated[
    str,
    Path(
        description="The announcement's id: that of its run.",
        json_schema_extra=RUN_ID_SCHEMA,
    ),
]
KeyInPath = Annotated[
    str,
    Path(
        max_length=SESSION_KEY_CHARS_MAX,
        description=(
            "The session's key in any spelling, its id, or `current` for the one session that the"
            " token acts for. A slash in it goes as `%2F`."
        ),
    ),
    AfterValidator(restore_slashes),
]


def require_scope(caller: Caller, scope: AccessScope) -> None:
    """403 unless the caller has the scope."""
    if not caller.may(scope):
        raise HttpProblem("not_permitted", f'this token lacks the scope "{scope}"')


def require_session_access(caller: Caller, session_key: str) -> None:
    """403 unless the caller may act for the session."""
    if not caller.acts_for(session_key):
        raise HttpProblem(
            "not_permitted", "this token does not act for that session; use the session's own"
        )


async def resolve_session_key(
    doors: Services, caller: Caller, spelling: str, *, pointer: str = "/path/key"
) -> str:
    """The canonical key of the session that is meant: by its id, as `current`, or by any spelling
    of its key. 422 with `pointer` for what means none."""
    configuration = doors.work.configurations.current().configuration
    named = await resolve_session_reference(doors, caller, spelling, pointer)
    return named or canonical_key(spelling, configuration, pointer)


async def resolve_session_reference(
    doors: Services, caller: Caller, spelling: str, pointer: str
) -> str | None:
    """The key of the session that `current` or a session id stands for; None for anything else,
    which is the spelling of a key. Only what looks like an id is looked up."""
    parts = [part for part in map(str.strip, spelling.split(":")) if part]
    if len(parts) != 1:
        return None
    word = parts[0].lower()
    if word == CURRENT:
        if caller.only_session is None:
            raise invalid_value(pointer, _NO_CURRENT)
        return caller.only_session
    if not _UUID.fullmatch(word):
        return None
    session = await doors.work.registry.session(word)
    return session.session_key if session is not None else None


def canonical_key(spelling: str, configuration: Configuration, pointer: str) -> str:
    """The canonical form of a session key; 422 with `pointer` for a text that is none."""
    try:
        return configuration.canonical_key(spelling)
    except InvalidSessionKey as error:
        raise invalid_value(pointer, str(error)) from None


def invalid_value(pointer: str, detail: str) -> HttpProblem:
    """422 for one value of a request."""
    return HttpProblem(
        "invalid_request",
        f"{pointer}: {detail}",
        errors=({"pointer": pointer, "detail": detail},),
    )


def require_agent_access(caller: Caller, agent_id: str, configuration: Configuration) -> None:
    """403 unless the caller may act for the agent's main session: whose agent a session is decides
    what it may spawn, so it is not to be had for the asking."""
    # Not `main`: under scope `global` that is one session of all agents, and tells of none.
    own = configuration.canonical_key(f"agent:{agent_id}:{configuration.session.main_key}")
    if not caller.acts_for(own):
        raise HttpProblem(
            "not_permitted",
            f'this token does not act for agent "{agent_id}"; leave agentIdOverride out',
        )


def run_id_of(text: str) -> UUID:
    """A run's id out of a path; 404 for what is none."""
    if not _UUID.fullmatch(text):
        raise HttpProblem("not_found", "there is no such run")
    return UUID(text)


async def visible_run(doors: Services, caller: Caller, text: str, at: AsOf) -> Run:
    """A run that the caller may see; 404 when there is none, or none for this caller."""
    run_id = run_id_of(text)
    run = await doors.work.registry.run(run_id, at=at.position)
    if run is None or not (
        await doors.access.covers_run(caller, run) or await doors.access.is_sibling(caller, run)
    ):
        headers = position_headers(doors, at.position)
        raise HttpProblem("not_found", "there is no such run", headers=headers, runId=str(run_id))
    return run


async def readable_run(doors: Services, caller: Caller, text: str, at: AsOf) -> Run:
    """A run whose contents the caller may see: not a sibling's. A child that goes on sees what it
    did before."""
    run = await visible_run(doors, caller, text, at)
    went_on = caller.run_id is not None and run.child_session_key == caller.only_session
    if not went_on and not await doors.access.covers_run(caller, run):
        headers = position_headers(doors, at.position)
        detail = "a sibling's texts are not shown to this token"
        raise HttpProblem("not_permitted", detail, headers=headers)
    return run


def json_response(
    doors: Services,
    body: Any,
    position: int,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """A JSON answer, marked with the log and the position it is true at."""
    return Response(
        orjson.dumps(body, option=orjson.OPT_UTC_Z),
        status_code=status,
        media_type="application/json",
        headers={**position_headers(doors, position), **(headers or {})},
    )


def position_headers(doors: Services, position: int) -> dict[str, str]:
    """The headers that every answer carries."""
    return {
        "Spawnlog-Log": str(doors.work.log.log_id),
        "Spawnlog-Position": str(position),
    }


def reservation_of(request: Request, caller: Caller, raw: bytes) -> Reservation | None:
    """The idempotency key of a request, if it sent one."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not key or len(key) > IDEMPOTENCY_KEY_CHARS_MAX or not key.isprintable():
        raise HttpProblem(
            "invalid_request",
            f"Idempotency-Key must have 1 to {IDEMPOTENCY_KEY_CHARS_MAX} printable characters",
        )
    return Reservation(
        token=caller.actor.token or caller.actor.kind,
        method=request.method,
        path=request.url.path,
        key=key,
        fingerprint=hashlib.sha256(raw).digest(),
    )


def traceparent_of(request: Request) -> str | None:
    """The W3C trace context of a request; one that is malformed is left out."""
    value = request.headers.get("traceparent", "").strip().lower()
    return value if _TRACEPARENT.fullmatch(value) else None


# The session that a request writes something about, which may be one that nobody has seen yet.


KEY_POINTER = "/path/key"


class TargetSession(NamedTuple):
    """Its canonical key, and how it is shown to people."""

    session_key: str
    display_key: str


async def resolve_target_session(doors: Services, caller: Caller, spelling: str) -> TargetSession:
    """The session that a path names in any spelling; 422 for what names none, 403 unless the caller
    acts for it."""
    named = await resolve_session_reference(doors, caller, spelling, KEY_POINTER)
    configuration = doors.work.configurations.current().configuration
    session_key = named or canonical_key(spelling, configuration, KEY_POINTER)
    require_session_access(caller, session_key)
    naming = configuration.session
    shown = render_session_key(named or spelling, main_key=naming.main_key, scope=naming.scope)
    return TargetSession(session_key, shown)
