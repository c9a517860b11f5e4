"""Sessions and their inboxes."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from application.commands.context import CommandResponse
from application.log.event_log import Reservation
from application.queries import inbox
from application.queries import sessions as queries
from application.queries.access import require_scope, require_session_access
from application.queries.inbox import LedgerState
from application.queries.operation import Body
from application.queries.paging import LIMIT_DEFAULT
from application.queries.runs import run_id_of
from application.queries.session_reference import resolve_session_key
from application.queries.timeline import tree
from application.queries.timeline.tree import LEVELS_MAX, NODES_DEFAULT, NODES_MAX, SessionTreeView
from application.queries.views.inbox import InboxView
from application.queries.views.session import SessionView
from domain.configuration.webhooks import WEBHOOK_ID_CHARACTERS_MAX
from infrastructure.inbound.http.requests.bodies import read_body
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    AnnouncementInPath,
    ByCaller,
    InjectedServices,
    KeyInPath,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import (
    After,
    AsOfParameter,
    LimitParameter,
    Wait,
)
from infrastructure.inbound.http.requests.replies import respond_once
from infrastructure.inbound.http.responses.described import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    endpoint_responses,
    request_body_schema,
)
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.schemas.answers import AcknowledgedAnswer, RedrivenAnswer

router = APIRouter(tags=["sessions"])

REASON_CHARACTERS_MAX = 2000
InState = Annotated[
    LedgerState | None,
    Query(
        description=(
            "`parked`: some webhook has not taken it and is not sent it any more; `due`: some"
            " webhook is to be sent it; `delivered` and `acknowledged`: its session has not taken"
            " it, or has."
        ),
    ),
]


@router.get(
    "/v1/sessions/{key}",
    dependencies=AT_POSITION,
    operation_id="getSession",
    response_model=SessionView,
    summary="One session",
    description=(
        "By its key in any spelling, by its session id, or as `current`. `assertedBy` says on whose"
        " word it was first seen (`spawn` for a child), `assertions` which facts rest on that word"
        " alone, and `depthFrom` where its depth was found. `runs` are those that it asked for,"
        " `ownRuns` those of a child itself, the newest first."
    ),
    responses=endpoint_responses("not_found"),
)
async def get_session(
    services: InjectedServices, caller: ByCaller, key: KeyInPath, at: AsOfParameter = None
) -> Response:
    """One session."""
    return view_response(services, await queries.get_session(services, caller, key, at=at))


@router.get(
    "/v1/sessions/{key}/tree",
    dependencies=AT_POSITION,
    operation_id="getSessionTree",
    response_model=SessionTreeView,
    summary="A session and all below it",
    description=(
        "The session with its own runs and, below it, those that it spawned, each with its runs,"
        " the position and instant of every stage, and how many places it has taken. Level by"
        " level, `limit` nodes at most: `cut` says that some are left out, and `childrenCut` of a"
        " node that they are below that one, whose own tree has them. `refused` of a node are the"
        " spawns that it asked for and that were refused, each with its `rule`; of the whole tree"
        " `limit` at most. `refusedCut` says that the registry has more of them."
    ),
    responses=endpoint_responses("not_found"),
)
async def get_session_tree(
    services: InjectedServices,
    caller: ByCaller,
    key: KeyInPath,
    at: AsOfParameter = None,
    limit: Annotated[int, Query(ge=1, le=NODES_MAX, description="How many nodes at most.")] = (
        NODES_DEFAULT
    ),
    depth: Annotated[
        int, Query(ge=0, le=LEVELS_MAX, description="How many levels below the session at most.")
    ] = LEVELS_MAX,
) -> Response:
    """The tree."""
    found = await tree.get_session_tree(services, caller, key, at=at, limit=limit, levels=depth)
    return view_response(services, found)


@router.get(
    "/v1/sessions/{key}/announcements",
    dependencies=AT_POSITION,
    operation_id="listAnnouncements",
    response_model=InboxView,
    summary="A session's inbox",
    description=(
        "Announcements by position, those behind `after`. With `wait` an empty answer waits for"
        " the first one. `origin` is where the result is to be sent from here, if anybody said."
        " With `at` each is as it was then: `state`, `acknowledgedAt` and `deliveries` too."
    ),
    responses=endpoint_responses("not_found"),
)
async def list_announcements(
    services: InjectedServices,
    caller: ByCaller,
    key: KeyInPath,
    after: After = 0,
    limit: LimitParameter = LIMIT_DEFAULT,
    wait: Wait = None,
    at: AsOfParameter = None,
) -> Response:
    """A page of an inbox."""
    page = await inbox.list_announcements(
        services, caller, key, after=after, limit=limit, wait=wait, at=at
    )
    return view_response(services, page)


class AckBody(Body):
    """The position at which the announcement was read: when a delivery of it was parked since, it
    stands further on, and is not taken."""

    position: Annotated[int, Field(ge=1, le=2**62)] | None = None


@router.post(
    "/v1/sessions/{key}/announcements/{id}/ack",
    operation_id="acknowledgeAnnouncement",
    response_model=AcknowledgedAnswer,
    summary="Take an announcement",
    description="Repeating it changes nothing.",
    responses=endpoint_responses("not_found", "no_announcement", *BODY_PROBLEMS, *KEY_PROBLEMS),
    openapi_extra=request_body_schema(AckBody),
)
async def acknowledge(
    request: Request,
    services: InjectedServices,
    caller: ByCaller,
    key: KeyInPath,
    id: AnnouncementInPath,
) -> Response:
    """Acknowledge."""
    session_key = await resolve_session_key(services, caller, key)
    require_session_access(caller, session_key)
    if caller.run_id is None:
        require_scope(caller, "control")
    body, raw = await read_body(request, AckBody)
    run = await services.work.registry.run(run_id_of(id))
    if run is None or run.requester.session_key != session_key:
        raise HttpProblem("not_found", "there is no such announcement in this inbox")

    async def take(reservation: Reservation | None) -> CommandResponse:
        return CommandResponse(
            await services.announcing.acknowledge(
                run, caller.actor, reservation, position=body.position
            )
        )

    return await respond_once(request, services, caller, raw, take)


@router.get(
    "/v1/announcements",
    dependencies=AT_POSITION,
    operation_id="listLedger",
    response_model=InboxView,
    summary="The ledger of announcements",
    description=(
        "Of all sessions that the token covers, in this `state` or in any, by position, behind"
        " `after`; one that was parked stands where that was recorded last. `deliveries` has the"
        " state, the attempts and the next time of each webhook. One request looks at a bounded"
        " number, so a page may be short or empty: the ledger is over when `nextAfter` is null."
    ),
    responses=endpoint_responses("not_found"),
)
async def list_ledger(
    services: InjectedServices,
    caller: ByCaller,
    state: InState = None,
    after: After = 0,
    limit: LimitParameter = LIMIT_DEFAULT,
    at: AsOfParameter = None,
) -> Response:
    """A page of the ledger."""
    page = await inbox.list_ledger(services, caller, state=state, after=after, limit=limit, at=at)
    return view_response(services, page)


class RedriveBody(Body):
    """Why it is sent again, and to which webhook: without one to each that it is parked for."""

    reason: Annotated[str, Field(min_length=1, max_length=REASON_CHARACTERS_MAX)]
    webhook: Annotated[str, Field(max_length=WEBHOOK_ID_CHARACTERS_MAX)] | None = None


@router.post(
    "/v1/announcements/{id}/redrive",
    operation_id="redriveAnnouncement",
    response_model=RedrivenAnswer,
    summary="Send a parked announcement again",
    description=(
        "To the addresses and with the secrets of the configuration in force, as often as at first."
        " The reason is on record."
    ),
    responses=endpoint_responses(
        "not_found", "no_announcement", "erased", *BODY_PROBLEMS, *KEY_PROBLEMS
    ),
    openapi_extra=request_body_schema(RedriveBody),
)
async def redrive(
    request: Request, services: InjectedServices, caller: ByCaller, id: AnnouncementInPath
) -> Response:
    """Redrive."""
    require_scope(caller, "control")
    body, raw = await read_body(request, RedriveBody)
    run = await services.work.registry.run(run_id_of(id))
    if run is None or not await services.access.covers_run(caller, run):
        raise HttpProblem("not_found", "there is no such announcement")

    async def again(reservation: Reservation | None) -> CommandResponse:
        return CommandResponse(
            await services.sending.redrive(
                run, body.webhook, body.reason, caller.actor, reservation
            )
        )

    return await respond_once(request, services, caller, raw, again)
