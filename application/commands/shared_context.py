"""Change a session's shared context by a merge patch."""

from pydantic import BaseModel, ConfigDict

from application.commands.context import CommandContext
from application.commands.services import CommandServices
from application.commands.shared_values import literals, pointer_of
from application.queries.access import Caller
from application.queries.errors import QueryError, invalid_value
from application.queries.operation import operation
from application.queries.session_reference import resolve_target_session
from application.queries.views.shared_context import (
    SharedContextView,
    SharedSizesView,
    shared_context_etag,
    shared_context_view,
    shared_sizes_view,
)
from application.queries.views.view import Answer
from application.session.shared_context import ContextPatch, ContextPatcher
from domain.session.shared_context import KEY_RULE, is_key


class SharedContextPatch(BaseModel):
    """`PATCH …/shared-context`: a JSON merge patch. Keys have their new values; null removes a
    key."""

    model_config = ConfigDict(extra="allow")


@operation(
    "PATCH",
    "/v1/sessions/{key}/shared-context",
    name="patchSharedContext",
    tag="shared context",
    scope="spawn",
    summary="Change the context that a session shares",
    description=(
        "A JSON merge patch (RFC 7396). Needs a token that acts for the session, and `If-Match`"
        " with the `ETag` that was read, or `*`. Active children keep the context that they"
        " started with. A patch without changes records nothing. Without scope `content`, the"
        " response has only `sessionKey`, `version`, `position` and `sizes`."
    ),
    errors=("not_found", "session_closed", "precondition_failed", "erased"),
    repeat="once",
    etag=shared_context_etag,
    if_match=True,
    media_types=("application/json", "application/merge-patch+json"),
    body_required=True,
    command="needs If-Match: use the client",
)
async def patch_shared_context(
    services: CommandServices,
    caller: Caller,
    key: str,
    body: SharedContextPatch,
    command: CommandContext,
) -> Answer[SharedContextView | SharedSizesView]:
    """Patch the shared context of a session.

    A caller without scope `content` may write values but not read them, so it gets sizes only.
    """
    session = await resolve_target_session(services, caller, key)
    patch = ContextPatch(
        session_key=session.session_key,
        display_key=session.display_key,
        values=_values(body),
        expected=command.if_match,
    )
    patched = await ContextPatcher(services.work).patch(patch, caller.actor)
    position = patched.position
    if patched.session is None:
        raise QueryError("not_found", "session not found, and the patch has nothing to record")
    if not caller.may("content"):
        return Answer(shared_sizes_view(patched.session, position), position)
    return Answer(await shared_context_view(services.work, patched.session, position), position)


def _values(body: SharedContextPatch) -> dict[str, object]:
    """Return the members of the patch. Refuse invalid keys and values."""
    values = dict(body.model_extra or {})
    for key in values:
        if not is_key(key):
            raise invalid_value(pointer_of(key, ""), KEY_RULE)
    literals({key: value for key, value in values.items() if value is not None}, "")
    return values
