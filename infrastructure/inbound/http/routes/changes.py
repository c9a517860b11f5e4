"""`GET /v1/runs/{runId}/history`, `GET /v1/runs/{runId}/compare` and `GET /v1/diff`."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from application.queries.changes import compare, diff, history
from application.queries.changes.compare import RunComparisonView
from application.queries.changes.diff import DiffView
from application.queries.changes.history import RunHistoryView
from application.queries.paging import LIMIT_DEFAULT
from application.queries.runs import VERSION_MAX
from domain.values.moments import MOMENT_CHARACTERS_MAX, MOMENT_FORMS
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    RunInPath,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import (
    RUN_ID_SCHEMA,
    TEXT_CHARS_MAX,
    AsOfParameter,
    ByCursor,
    LimitParameter,
)
from infrastructure.inbound.http.responses.described import endpoint_responses

FIELD_CHARS_MAX = 256
FIELDS_MAX = 50
AfterVersion = Annotated[
    int,
    Query(ge=0, le=VERSION_MAX, description="Only states behind this version: `nextAfter`."),
]
ByField = Annotated[
    tuple[Annotated[str, Field(max_length=FIELD_CHARS_MAX)], ...],
    Query(
        alias="field",
        description=(
            "Only what changed this field of a run, by its name or by a JSON pointer such as"
            " `/announcement/state`; or any of several."
        ),
    ),
]
OtherRun = Annotated[
    str,
    Query(
        alias="with",
        max_length=RUN_ID_SCHEMA["maxLength"],
        description="The id of the run on the right.",
    ),
]
FromMoment = Annotated[
    str,
    Query(
        alias="from",
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"The left side: {MOMENT_FORMS}.",
        examples=["pos:18000"],
    ),
]
ToMoment = Annotated[
    str,
    Query(
        alias="to",
        max_length=MOMENT_CHARACTERS_MAX,
        description="The right side, which may be the earlier one.",
        examples=["pos:18342"],
    ),
]
OfRun = Annotated[
    str | None,
    Query(alias="runId", max_length=RUN_ID_SCHEMA["maxLength"], description="Of this run alone."),
]
OfSession = Annotated[
    str | None,
    Query(
        max_length=TEXT_CHARS_MAX,
        description="Of this session as it reads: a key, a session id, or `current`.",
    ),
]
OfTree = Annotated[
    str | None,
    Query(
        max_length=TEXT_CHARS_MAX,
        description="Of the runs and sessions below this root session, and of itself.",
    ),
]

router = APIRouter()


@router.get(
    "/v1/runs/{runId}/history",
    tags=["runs"],
    dependencies=AT_POSITION,
    operation_id="getRunHistory",
    response_model=RunHistoryView,
    summary="The states of a run one after the other",
    description=(
        "For each event of the run what it changed, as a patch (RFC 6902) from the run as it read"
        " before to how it read then; the first begins with `{}`. All in order give what `version`"
        " of the run shows. `setBy` has for each field of the newest state, or of that as of `at`,"
        " the event that set it last; with `field` for those fields alone. A text that was erased"
        " is null, and who set it is known still. The run is read with its texts by a token with"
        " the scope `content`, else as a summary."
    ),
    responses=endpoint_responses("not_found"),
)
async def get_run_history(
    services: InjectedServices,
    caller: ByCaller,
    runId: RunInPath,
    at: AsOfParameter = None,
    after: AfterVersion = 0,
    limit: LimitParameter = LIMIT_DEFAULT,
    fields: ByField = (),
) -> Response:
    """A page of the states of a run."""
    page = await history.get_run_history(
        services, caller, runId, at=at, after=after, limit=limit, fields=fields
    )
    return view_response(services, page)


@router.get(
    "/v1/runs/{runId}/compare",
    tags=["runs"],
    dependencies=AT_POSITION,
    operation_id="compareRuns",
    response_model=RunComparisonView,
    summary="Two runs side by side",
    description=(
        "As they are or were as of `at`: what was asked for, each rule that was decided, the plan,"
        " the prompts by their parts, the transcripts up to the first entry that differs, and what"
        " came of both. What names a run itself would differ always: its id, its session's id and"
        " its child key read as `{runId}`, `{sessionId}` and `{childSessionKey}`. How long each"
        " took is shown and does not count for `same`. Prompts and transcripts are for the scope"
        " `content`."
    ),
    responses=endpoint_responses("not_found"),
)
async def compare_runs(
    services: InjectedServices,
    caller: ByCaller,
    runId: RunInPath,
    other: OtherRun,
    at: AsOfParameter = None,
) -> Response:
    """Two runs side by side."""
    compared = await compare.compare_runs(services, caller, runId, other, at=at)
    return view_response(services, compared)


@router.get(
    "/v1/diff",
    tags=["log"],
    dependencies=AT_POSITION,
    operation_id="getDiff",
    response_model=DiffView,
    summary="What changed between two moments",
    description=(
        "Of a run, a session, a tree, or, for a token with the pattern `*`, of the whole registry:"
        " who came to be, who is not there, and who changed, each with a patch (RFC 6902) that"
        " makes the left into the right, where `null` stands for one that was not there. Items are"
        " in the order of their first events between the two. One request looks at a bounded"
        " number of events, so a page may be short or empty: the diff is over when `nextCursor` is"
        " null; `counts` are those of the page. A session in the diff of a tree or of the"
        " registry is what its own events say; with `session` it is all that"
        " `GET /v1/sessions/{key}` shows."
    ),
    responses=endpoint_responses("not_found", "foreign_cursor"),
)
async def get_diff(
    services: InjectedServices,
    caller: ByCaller,
    left: FromMoment,
    right: ToMoment,
    run_id: OfRun = None,
    session: OfSession = None,
    tree: OfTree = None,
    limit: LimitParameter = LIMIT_DEFAULT,
    cursor: ByCursor = None,
) -> Response:
    """A page of what changed."""
    page = await diff.get_diff(
        services,
        caller,
        left=left,
        right=right,
        run_id=run_id,
        session=session,
        tree=tree,
        limit=limit,
        cursor=cursor,
    )
    return view_response(services, page)
