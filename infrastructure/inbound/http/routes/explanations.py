"""`GET /v1/runs/{runId}/explain`: how a spawn was decided."""

from fastapi import APIRouter, Response

from application.queries import explain
from application.queries.explain import ExplanationView
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    RunInPath,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import AsOfParameter
from infrastructure.inbound.http.responses.described import endpoint_responses

router = APIRouter(tags=["runs"])


@router.get(
    "/v1/runs/{runId}/explain",
    dependencies=AT_POSITION,
    operation_id="explainRun",
    response_model=ExplanationView,
    summary="How a spawn, or a message, was decided",
    description=(
        "Every rule in the order in which they are judged: what it compared (`compared`, and in"
        " words `text`), its `result`, and the position and configuration revision under which that"
        " was recorded. `passed` did not refuse the spawn, `refused` did; `not_judged` stands for"
        " rules to which the decision did not come, or not yet, and `not_recorded` for what the"
        " release that decided did not record. A step that made something for the child stands at"
        " the event that says so. `refused` is the rule that refused, with the text"
        " that the caller was told, or null. `given` holds what was asked for and is kept beside"
        " the log: a workspace, and words that are no name. `configured` of the tools and"
        " `workspaceRoots` are what the revision says, as its file wrote it; null when it cannot"
        " be read any more. Of a run that goes on with a session after a message the only rule of"
        " admission is `active_children`, no script runs, and the workspace is `kept`. Nothing is"
        " judged again."
    ),
    responses=endpoint_responses("not_found"),
)
async def explain_run(
    services: InjectedServices, caller: ByCaller, runId: RunInPath, at: AsOfParameter = None
) -> Response:
    """The decisions about one run, as far as they were made then."""
    return view_response(services, await explain.explain_run(services, caller, runId, at=at))
