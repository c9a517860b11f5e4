"""What a session shares with its family, and what of it a run was given."""

import re

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict

from application.commands.shared_values import literals, pointer_of
from application.queries.access import require_scope
from application.queries.errors import invalid_value
from application.queries.session_reference import resolve_target_session
from application.queries.views.shared_context import (
    SharedContextView,
    SharedSizesView,
    shared_context_view,
    shared_sizes_view,
)
from application.queries.views.view import Answer
from application.session.shared_context import (
    ContextPatch,
    ContextPatcher,
)
from domain.session.shared_context import KEY_RULE, is_key
from infrastructure.inbound.http.requests.bodies import JSON, read_body
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    KeyInPath,
    view_response,
)
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import (
    BODY_PROBLEMS,
    endpoint_responses,
    request_body_schema,
)
from infrastructure.inbound.http.responses.problems import HttpProblem

router = APIRouter(tags=["shared context"])
PATH = "/v1/sessions/{key}/shared-context"
IF_MATCH = "/headers/If-Match"
MEDIA_TYPES = (JSON, "application/merge-patch+json")
_VERSION = re.compile(r'"(0|[1-9][0-9]{0,18})"')
IF_MATCH_PARAMETER = {
    "name": "If-Match",
    "in": "header",
    "required": True,
    "description": "The `ETag` of what was read, or `*`.",
    "schema": {"type": "string", "maxLength": 21, "pattern": rf"^(\*|{_VERSION.pattern})$"},
    "example": '"52"',
}


class SharedContextPatch(BaseModel):
    """`PATCH …/shared-context`: a JSON merge patch; keys with their values, null takes one away."""

    model_config = ConfigDict(extra="allow")


@router.patch(
    PATH,
    operation_id="patchSharedContext",
    response_model=SharedContextView | SharedSizesView,
    summary="Write into what a session shares",
    description=(
        "A JSON merge patch (RFC 7396) by a token that acts for the session, with the `ETag` that"
        " it was made for in `If-Match`, or `*`. Children that are at work keep what they started"
        " with. A patch that changes nothing records nothing. A token without scope `content` is"
        " answered with `sessionKey`, `version`, `position` and `sizes` alone."
    ),
    responses=endpoint_responses(
        "not_found", "session_closed", "precondition_failed", "erased", *BODY_PROBLEMS
    ),
    openapi_extra={
        **request_body_schema(SharedContextPatch, required=True),
        "parameters": [IF_MATCH_PARAMETER],
    },
)
async def patch_session_context(
    request: Request, services: InjectedServices, caller: ByCaller, key: KeyInPath
) -> Response:
    """Patch the context of a session."""
    require_scope(caller, "spawn")
    session = await resolve_target_session(services, caller, key)
    body, _ = await read_body(request, SharedContextPatch, media_types=MEDIA_TYPES)
    patch = ContextPatch(
        session_key=session.session_key,
        display_key=session.display_key,
        values=_values(body),
        expected=_expected_version(request),
    )
    patched = await ContextPatcher(services.work).patch(patch, caller.actor)
    if patched.session is None:
        raise HttpProblem("not_found", "there is no such session on record, and nothing to record")
    session_now, position = patched.session, patched.position
    if not caller.may("content"):
        # For those who may write what they may not read.
        return _response(services, Answer(shared_sizes_view(session_now, position), position))
    view = await shared_context_view(services.work, session_now, position)
    return _response(services, Answer(view, position))


def _response(services: Services, answer: Answer[SharedSizesView]) -> Response:
    return view_response(services, answer, headers={"ETag": f'"{answer.view.version}"'})


def _values(body: SharedContextPatch) -> dict[str, object]:
    """The members of the patch; what they say has to be right by itself already."""
    values = dict(body.model_extra or {})
    for key in values:
        if not is_key(key):
            raise invalid_value(pointer_of(key, ""), KEY_RULE)
    literals({key: value for key, value in values.items() if value is not None}, "")
    return values


def _expected_version(request: Request) -> int | None:
    """The version that the patch was made for; None for any."""
    given = request.headers.get("if-match", "").strip()
    if given == "*":
        return None
    version = _VERSION.fullmatch(given)
    if version is None:
        raise invalid_value(IF_MATCH, 'must be the ETag that was read, such as "52", or *')
    return int(version[1])
