"""Respawn an earlier run with changes to its request."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from application.commands.context import CommandContext, CommandResponse
from application.commands.control import require_service
from application.commands.resolve_request import REQUESTER_KEY, resolve_request
from application.commands.services import CommandServices
from application.context.recorded_scripts import NothingRecorded
from application.log.answers import AcceptedSpawn
from application.log.unit_of_work import provenance_of
from application.ports.configurations import PinnedConfiguration
from application.queries.access import (
    Caller,
    require_agent_access,
    require_scope,
    require_session_access,
)
from application.queries.as_of import resolve_as_of
from application.queries.command import Command, Option
from application.queries.errors import QueryError, invalid_value, validation_problem
from application.queries.operation import operation
from application.queries.runs import readable_run
from application.queries.session_reference import canonical_key, resolve_session_reference
from application.spawn.respawn import (
    CannotRespawn,
    EarlierRequest,
    read_chosen_revision,
    read_earlier_request,
    require_transcript,
)
from domain.configuration.configuration import Configuration
from domain.run.facts import RespawnFacts
from domain.run.state import Run
from domain.spawn.request import ResolvedSpawn, SpawnRequest
from domain.values.body import Body

NUMBER_MAX = 2**31 - 1
CHANGES = "/changes"


class TranscriptChoice(Body):
    """The part of the earlier run's transcript that the child begins with."""

    up_to: Annotated[
        int, Field(ge=1, le=NUMBER_MAX, description="The `sequence` of the last entry to copy.")
    ]


class RespawnBody(Body):
    """Options of a respawn."""

    changes: Annotated[
        dict[str, Any],
        Field(
            description=(
                "A JSON merge patch (RFC 7396) over the request of the earlier run, in the form"
                " of `POST /v1/spawns`; null removes a member."
            )
        ),
    ] = Field(default_factory=dict)
    scripts: Annotated[
        Literal["again", "recorded"],
        Field(
            description=(
                "`recorded`: no context script runs; the recorded outputs of the earlier run"
                " are reused. Refused if an output is not recorded or a script has changed."
            )
        ),
    ] = "again"
    transcript: Annotated[
        TranscriptChoice | None,
        Field(description="Start the child with the earlier run's transcript up to an entry."),
    ] = None
    config_revision: Annotated[
        int | None,
        Field(
            ge=1,
            le=NUMBER_MAX,
            description=(
                "Decide under this earlier configuration revision. Needs a token for the"
                " sessions `*`, or the scope `admin`."
            ),
        ),
    ] = None


@operation(
    "POST",
    "/v1/runs/{runId}/respawn",
    name="respawn",
    tag="spawns",
    scope="spawn",
    summary="Spawn again from an earlier run, with changes",
    description=(
        "Spawns with the request of an earlier run and with changes, whatever the outcome of"
        " that run. It is decided and answered like any other spawn. The new run refers to the"
        " earlier one as `respawnedFrom`; the earlier run lists it in `respawns`. The requester"
        " is the same session, unless the changes name another one that the token acts for."
        " Another requester, and `transcript`, also need the scope `content`."
    ),
    errors=(
        "not_found",
        "spawn_forbidden",
        "spawn_error",
        "session_closed",
        "cannot_respawn",
        "erased",
    ),
    answer=AcceptedSpawn,
    status=201,
    status_description="Accepted and durable",
    repeat="key",
    location="/v1/runs/{runId}",
    command=Command(
        "run respawn",
        by_hand=True,
        options={
            "changes": None,
            "scripts": Option(
                help="recorded: reuse the recorded output of context scripts. Default: run them"
                " again."
            ),
            "transcript.upTo": Option(
                metavar="N", help="Start with the earlier run's transcript up to entry N."
            ),
            "configRevision": Option(
                metavar="N",
                help="Decide under this configuration revision. Default: the active one.",
            ),
        },
    ),
)
async def respawn(
    services: CommandServices,
    caller: Caller,
    run_id: str,
    body: RespawnBody,
    command: CommandContext,
) -> CommandResponse:
    """Spawn again with the request of an earlier run and with changes."""
    require_service(services)
    earlier = await readable_run(
        services, caller, run_id, await resolve_as_of(services, caller, None)
    )
    if body.config_revision is not None and not (caller.sees_everything or caller.may("admin")):
        raise QueryError(
            "not_permitted",
            'naming a configuration revision needs a token for all sessions, or the scope "admin"',
        )
    if body.transcript is not None:
        require_scope(caller, "content")
    requester = await _requester_key(services, caller, body, earlier)
    require_session_access(caller, requester)
    try:
        spawn, pinned = await _requested(services, earlier, body, requester)
        if spawn.asserts_agent:
            require_agent_access(caller, spawn.requester_agent_id, pinned.configuration)
        spawned = await services.spawning.spawn(
            spawn,
            caller.actor,
            command.reservation,
            command.is_there,
            command.traceparent,
            pinned=pinned,
        )
    except (CannotRespawn, NothingRecorded) as why:
        provenance = provenance_of(earlier, caller.actor)
        await services.work.require_new(provenance, command.reservation, why)
        raise
    return CommandResponse(spawned.answer, spawned.position)


async def _requester_key(
    services: CommandServices, caller: Caller, body: RespawnBody, earlier: Run
) -> str:
    """Return the key of the requester: the earlier one, unless the changes name another."""
    named = requester_named_in(body)
    if named is None:
        return earlier.requester.session_key
    pointer = f"{CHANGES}{REQUESTER_KEY}"
    configuration = services.work.configurations.current().configuration
    key = await resolve_session_reference(services, caller, named, pointer)
    key = key or canonical_key(named, configuration, pointer)
    if key != earlier.requester.session_key:
        # The new requester gets content that was given to another session.
        require_scope(caller, "content")
    return key


async def _requested(
    services: CommandServices, earlier: Run, body: RespawnBody, requester_key: str
) -> tuple[ResolvedSpawn, PinnedConfiguration]:
    """Return the request, and the revision to decide it under."""
    work, revision = services.work, body.config_revision
    pinned = work.configurations.current()
    if revision is not None:
        pinned = await read_chosen_revision(work, revision)
    recorded = await read_earlier_request(work, earlier)
    if body.transcript is not None:
        await require_transcript(work, services.transcripts, earlier, body.transcript.up_to)
    return respawn_request(recorded, body, pinned.configuration, requester_key), pinned


def requester_named_in(body: RespawnBody) -> str | None:
    """Return the requester that the changes name; None if they name none."""
    requester = body.changes.get("requester")
    named = requester.get("sessionKey") if isinstance(requester, dict) else None
    return named if isinstance(named, str) else None


def respawn_request(
    earlier: EarlierRequest, body: RespawnBody, configuration: Configuration, requester_key: str
) -> ResolvedSpawn:
    """Return the request of the new spawn.

    Args:
        earlier: The recorded request of the earlier run.
        requester_key: Canonical key of the session that requests the respawn.

    Raises:
        QueryError: If the changes make an invalid request. Its pointers are into the changes.
    """
    if body.transcript is not None and body.changes.get("context") is not None:
        raise invalid_value(
            f"{CHANGES}/context", "cannot be combined with transcript; omit one of the two"
        )
    members, replaced = earlier.changed_by(
        body.changes, requester_key, with_transcript=body.transcript is not None
    )
    members = _with_unknown(members, body.changes, SpawnRequest)
    try:
        spawn = SpawnRequest.model_validate(members)
        if spawn.parallel or isinstance(spawn.task, list):
            pointer = "/task" if isinstance(spawn.task, list) else "/parallel"
            text = (
                "must be a single task, because a respawn makes one run; or spawn the batch again"
            )
            raise invalid_value(pointer, text)
        respawn = RespawnFacts(
            run_id=earlier.run.run_id,
            replaced=replaced,
            scripts=body.scripts,
            transcript_up_to=body.transcript.up_to if body.transcript is not None else None,
            is_revision_chosen=body.config_revision is not None,
        )
        return resolve_request(spawn, configuration, requester_key, respawn)
    except ValidationError as failure:
        raise _in_changes(validation_problem(failure, members)) from None
    except QueryError as problem:
        raise _in_changes(problem) from None


def _with_unknown(
    members: dict[str, Any], changes: Mapping[str, Any], shape: type[Body]
) -> dict[str, Any]:
    """Add the unknown members of the changes, so that validation refuses them.

    Merging has dropped unknown members that are null.
    """
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
    """Return the problem with its pointers in the body of a respawn."""
    detail = f"{CHANGES}{problem.detail}" if problem.detail.startswith("/") else problem.detail
    errors = [{**error, "pointer": f"{CHANGES}{error['pointer']}"} for error in problem.errors]
    return QueryError(problem.code, detail, errors=errors)
