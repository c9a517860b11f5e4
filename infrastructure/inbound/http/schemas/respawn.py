"""The body of a respawn: what is to be another thing than in the earlier run's request."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from application.queries.errors import QueryError, invalid_value
from application.queries.operation import Body
from application.spawn.request import SpawnRequest
from application.spawn.respawn import EarlierRequest
from domain.configuration.configuration import Configuration
from domain.run.facts import RespawnFacts
from infrastructure.inbound.http.requests.bodies import validation_problem
from infrastructure.inbound.http.schemas.spawn import SpawnBody, spawn_request

NUMBER_MAX = 2**31 - 1
CHANGES = "/changes"


class TranscriptChoice(Body):
    """How much of the earlier run's transcript the child begins with."""

    up_to: Annotated[
        int, Field(ge=1, le=NUMBER_MAX, description="The `sequence` of the last entry taken over.")
    ]


class RespawnBody(Body):
    """`POST /v1/runs/{runId}/respawn`."""

    changes: Annotated[
        dict[str, Any],
        Field(
            description=(
                "A JSON merge patch (RFC 7386) over the request of the earlier run, in the shape of"
                " `POST /v1/spawns`: null takes a member away."
            )
        ),
    ] = Field(default_factory=dict)
    scripts: Annotated[
        Literal["again", "recorded"],
        Field(
            description=(
                "`recorded`: no context script runs; what each said for the earlier run is read"
                " once more. Refused where that is not on record, or the script is another one."
            )
        ),
    ] = "again"
    transcript: Annotated[
        TranscriptChoice | None,
        Field(description="The child begins with the earlier run's transcript up to an entry."),
    ] = None
    config_revision: Annotated[
        int | None,
        Field(
            ge=1,
            le=NUMBER_MAX,
            description=(
                "Decide under this earlier revision of the configuration. Only for a token with"
                " the pattern `*`, or the scope `admin`."
            ),
        ),
    ] = None


def requester_named_in(body: RespawnBody) -> str | None:
    """The session that is to ask in the place of the one that did; None when none is named."""
    requester = body.changes.get("requester")
    named = requester.get("sessionKey") if isinstance(requester, dict) else None
    return named if isinstance(named, str) else None


def respawn_request(
    earlier: EarlierRequest, body: RespawnBody, configuration: Configuration, requester_key: str
) -> SpawnRequest:
    """The request for the new spawn, by the session of that canonical key. 422 for changes that
    make none of it, with pointers into the changes."""
    if body.transcript is not None and body.changes.get("context") is not None:
        raise invalid_value(
            f"{CHANGES}/context", "a child begins with one conversation: leave this or transcript"
        )
    members, replaced = earlier.changed_by(
        body.changes, requester_key, with_transcript=body.transcript is not None
    )
    try:
        spawn = SpawnBody.model_validate(_with_unknown(members, body.changes, SpawnBody))
        if spawn.parallel or isinstance(spawn.task, list):
            pointer = "/task" if isinstance(spawn.task, list) else "/parallel"
            text = "a respawn is of one run: give one task, or spawn the batch anew"
            raise invalid_value(pointer, text)
        request = spawn_request(spawn, configuration, requester_key)
    except ValidationError as failure:
        raise _in_changes(validation_problem(failure)) from None
    except QueryError as problem:
        raise _in_changes(problem) from None
    return replace(
        request,
        respawn=RespawnFacts(
            run_id=earlier.run.run_id,
            replaced=replaced,
            scripts=body.scripts,
            transcript_up_to=body.transcript.up_to if body.transcript is not None else None,
            is_revision_chosen=body.config_revision is not None,
        ),
    )


def _with_unknown(
    members: dict[str, Any], changes: Mapping[str, Any], shape: type[Body]
) -> dict[str, Any]:
    """The members with those of the changes that no request has. One that is taken away is not
    among them any more, and was not meant when there is no such member."""
    known = {field.alias or name: field.annotation for name, field in shape.model_fields.items()}
    whole = {**members, **{name: None for name in changes if name not in known}}
    for name, changed in changes.items():
        inner, annotation = whole.get(name), known.get(name)
        if not isinstance(changed, dict) or not isinstance(inner, dict):
            continue
        if isinstance(annotation, type) and issubclass(annotation, Body):
            whole[name] = _with_unknown(inner, changed, annotation)
    return whole


def _in_changes(problem: QueryError) -> QueryError:
    """The same problem where it stands in the body of a respawn."""
    detail = f"{CHANGES}{problem.detail}" if problem.detail.startswith("/") else problem.detail
    errors = [{**one, "pointer": f"{CHANGES}{one['pointer']}"} for one in problem.errors]
    return QueryError(problem.code, detail, errors=errors)
