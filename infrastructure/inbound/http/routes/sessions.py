"""Sessions and their inboxes."""

import time
from typing import Any

from fastapi import APIRouter, Request, Response

from application.log.event_log import AlreadyReserved, StoredAnswer
from application.ports.registry import RunQuery
from application.queries.access import Caller
from domain.session.state import Session
from domain.values.refusals import Rejected
from infrastructure.inbound.http.examples import sessions, spawns_and_runs
from infrastructure.inbound.http.requests.as_of import AsOf, AsOfParameter, resolve_as_of
from infrastructure.inbound.http.requests.bodies import Body, read_body
from infrastructure.inbound.http.requests.caller import (
    AnnouncementInPath,
    ByCaller,
    InjectedServices,
    KeyInPath,
    json_response,
    position_headers,
    require_scope,
    require_session_access,
    reservation_of,
    resolve_session_key,
    run_id_of,
)
from infrastructure.inbound.http.requests.long_poll import Wait, wait_for_growth, wait_seconds
from infrastructure.inbound.http.requests.paging import LIMIT_DEFAULT, After, LimitParameter
from infrastructure.inbound.http.requests.replies import replay_answer
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    problem_responses,
    request_body_schema,
    success_response,
)
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.schemas.inbox import inbox_items

ANNOUNCING = ("RunAnnounced", "SpawnRefused")


"""The events that may put something into an inbox."""


router = APIRouter(tags=["sessions"])
RUNS_SHOWN_MAX = 500
OWN_RUNS_SHOWN_MAX = 50


@router.get(
    "/v1/sessions/{key}",
    operation_id="getSession",
    summary="One session",
    description=(
        "By its key in any spelling, by its session id, or as `current`. `assertedBy` says on whose"
        " word it was first seen (`spawn` for a child), `assertions` which facts rest on that word"
        " alone, and `depthFrom` where its depth was found. `runs` are those that it asked for,"
        " `ownRuns` those of a child itself, the newest first."
    ),
    responses={
        **success_response(sessions.SESSION),
        **problem_responses("not_found"),
    },
)
async def get_session(
    doors: InjectedServices, caller: ByCaller, key: KeyInPath, at: AsOfParameter = None
) -> Response:
    """One session."""
    require_scope(caller, "read")
    moment = await resolve_as_of(doors, at)
    session = await _session(doors, caller, key, moment)
    position = moment.position
    registry = doors.work.registry
    pending, running = await registry.descendants(session.session_key, at=position)
    runs = await registry.runs(
        RunQuery(requester=session.session_key), at=position, limit=RUNS_SHOWN_MAX
    )
    configuration = doors.work.configurations.current().configuration
    body: dict[str, Any] = {
        "sessionKey": session.session_key,
        "displayKey": session.display_key,
        "sessionId": session.session_id,
        "agentId": session.agent_id,
        "depth": session.depth,
        "role": session.role,
        "controlScope": session.control_scope,
        "sandboxed": session.sandboxed,
        "workspaceDir": session.workspace_dir,
        "spawnedBy": session.spawned_by,
        "rootSessionKey": session.root_session_key,
        "runId": session.run_id,
        "stage": session.stage,
        "createdAt": session.created_at,
        "closedAt": session.closed_at,
        "assertedBy": session.asserted_by,
        "assertions": session.assertions,
        "depthFrom": session.depth_from,
        "activeChildren": session.active_children,
        "activeRuns": session.counted,
        "maxChildren": configuration.subagent_defaults.max_children_per_agent,
        "pendingDescendants": pending,
        "runningDescendants": running,
        "runs": [
            {"runId": run.run_id, "label": run.label, "stage": run.stage, "agentId": run.agent_id}
            for run in runs
        ],
        "ownRuns": await _own_runs(doors, session, moment),
        "version": session.version,
    }
    return json_response(doors, body, position)


async def _own_runs(doors: Services, session: Session, moment: AsOf) -> list[dict[str, Any]]:
    """The runs of a child itself, the newest first: from the one that was the newest then, each
    leads to the one before it."""
    then: list[dict[str, Any]] = []
    run_id = session.run_id
    while run_id is not None and len(then) < OWN_RUNS_SHOWN_MAX:
        run = await doors.work.registry.run(run_id, at=moment.position)
        if run is None:
            break
        then.append({"runId": run.run_id, "stage": run.stage, "continues": run.continues})
        run_id = run.continues
    return then


async def _session(doors: Services, caller: Caller, key: str, moment: AsOf) -> Session:
    session_key = await resolve_session_key(doors, caller, key)
    session = await doors.work.registry.session(session_key, at=moment.position)
    if session is None or not await doors.access.covers_session(caller, session.session_key):
        headers = position_headers(doors, moment.position)
        raise HttpProblem("not_found", "there is no such session on record", headers=headers)
    return session


@router.get(
    "/v1/sessions/{key}/announcements",
    operation_id="listAnnouncements",
    summary="A session's inbox",
    description=(
        "Announcements by position, those behind `after`. With `wait` an empty answer waits for"
        " the first one. `origin` is where the result is to be sent from here, if anybody said."
    ),
    responses={
        **success_response(spawns_and_runs.ANNOUNCEMENTS),
        **problem_responses(),
    },
)
async def list_announcements(
    doors: InjectedServices,
    caller: ByCaller,
    key: KeyInPath,
    after: After = 0,
    limit: LimitParameter = LIMIT_DEFAULT,
    wait: Wait = None,
) -> Response:
    """A page of an inbox."""
    require_scope(caller, "read")
    session_key = await resolve_session_key(doors, caller, key)
    require_session_access(caller, session_key)
    deadline = time.monotonic() + wait_seconds(wait)
    while True:
        seen = doors.tail.position
        position, runs = await doors.work.registry.inbox(session_key, after=after, limit=limit + 1)
        if runs or not await wait_for_growth(
            doors, None, after=seen, deadline=deadline, types=ANNOUNCING
        ):
            break
    items = await inbox_items(doors.work.contents, runs[:limit], with_text=caller.may("content"))
    following = items[-1]["position"] if len(runs) > limit else None
    return json_response(doors, {"items": items, "nextAfter": following}, position)


class AckBody(Body):
    """Nothing is asked."""


@router.post(
    "/v1/sessions/{key}/announcements/{id}/ack",
    operation_id="acknowledgeAnnouncement",
    summary="Take an announcement",
    description="Repeating it changes nothing.",
    responses={
        **success_response(spawns_and_runs.ACKNOWLEDGED),
        **problem_responses("not_found", "no_announcement", *BODY_PROBLEMS, *KEY_PROBLEMS),
    },
    openapi_extra=request_body_schema(AckBody, {}),
)
async def acknowledge(
    request: Request,
    doors: InjectedServices,
    caller: ByCaller,
    key: KeyInPath,
    id: AnnouncementInPath,
) -> Response:
    """Acknowledge."""
    session_key = await resolve_session_key(doors, caller, key)
    require_session_access(caller, session_key)
    if caller.run_id is None:
        require_scope(caller, "control")
    _, raw = await read_body(request, AckBody)
    run = await doors.work.registry.run(run_id_of(id))
    if run is None or run.requester.session_key != session_key:
        raise HttpProblem("not_found", "there is no such announcement in this inbox")
    reservation = reservation_of(request, caller, raw)
    try:
        told = await doors.announcing.acknowledge(run, caller.actor, reservation)
    except AlreadyReserved as reserved:
        assert reservation is not None
        return await replay_answer(
            reserved, reservation, lambda one, _: _acknowledge_response(doors, one)
        )
    except Rejected as rejected:
        raise HttpProblem("no_announcement", str(rejected)) from None
    return await _acknowledge_response(doors, told)


async def _acknowledge_response(doors: Services, told: StoredAnswer) -> Response:
    return json_response(doors, told.body, await doors.work.log.head())
