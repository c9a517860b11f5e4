"""`GET /v1/events/find`: since when something is so."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import Field

from application.queries.search.find import (
    BREAKPOINTS_MAX,
    SearchQuestion,
    SearchView,
    find_breakpoints,
)
from domain.values.rules import RULE_NAMES
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    RUN_ID_SCHEMA,
    ByCaller,
    InjectedServices,
    view_response,
)
from infrastructure.inbound.http.responses.described import endpoint_responses
from infrastructure.inbound.http.routes.events import TYPE_SCHEMA

router = APIRouter(tags=["log"])
TEXT_CHARS_MAX = 2048
CURSOR_CHARS_MAX = 2048
RULE_SCHEMA: dict[str, Any] = {"enum": [*RULE_NAMES]}


@router.get(
    "/v1/events/find",
    dependencies=AT_POSITION,
    operation_id="findEvents",
    response_model=SearchView,
    summary="Since when something is so",
    description=(
        "The first positions, between `from` and `to`, at which a condition begins to hold"
        " (`when`), a field of a run's or a session's state becomes a value (`field` with `becomes`"
        " or `changes`), or an event was recorded (`types`, `rule`). Numbers of a condition count"
        " runs by status, `spawned` and `archived` ones, `active` places, the revision of the"
        " configuration (`config`) and the `position`; `runId`, `session`, `tree`, `agentId` and"
        " `rule` say of which runs. One request looks at a bounded number of events: as long as"
        " there is a `nextCursor` there may be more. Without `runId`, `session` or `tree` it needs"
        " a token for the sessions `*`."
    ),
    responses=endpoint_responses("not_found", "foreign_cursor"),
)
async def find_events(
    services: InjectedServices,
    caller: ByCaller,
    when: Annotated[
        str | None,
        Query(
            max_length=TEXT_CHARS_MAX,
            description=(
                "A condition: comparisons (`> >= < <= = !=`) of numbers, with `and`, `or`, `not`"
                " and parentheses."
            ),
            examples=["running > 6 and not config = 2"],
        ),
    ] = None,
    field: Annotated[
        str | None,
        Query(
            max_length=64,
            description="A field of a run's state, or of that of `session`, by the view's name.",
        ),
    ] = None,
    becomes: Annotated[
        str | None, Query(max_length=TEXT_CHARS_MAX, description="The value that it comes to have.")
    ] = None,
    changes: Annotated[bool, Query(description="Any change of the field.")] = False,
    types: Annotated[
        tuple[Annotated[str, Field(max_length=2000, json_schema_extra=TYPE_SCHEMA)], ...],
        Query(description="Events of any of these types: one each time, or names by commas."),
    ] = (),
    rule: Annotated[
        str | None,
        Query(
            max_length=64,
            description="Refusals by this rule alone.",
            json_schema_extra=RULE_SCHEMA,
        ),
    ] = None,
    runId: Annotated[
        str | None,
        Query(max_length=64, description="Of this run.", json_schema_extra=RUN_ID_SCHEMA),
    ] = None,
    session: Annotated[
        str | None,
        Query(
            max_length=TEXT_CHARS_MAX,
            description="Of this session and the runs that it asked for: a key, an id, `current`.",
        ),
    ] = None,
    tree: Annotated[
        str | None,
        Query(
            max_length=TEXT_CHARS_MAX,
            description="Of the tree below this root session: a key, a session id, or `current`.",
        ),
    ] = None,
    agentId: Annotated[
        str | None, Query(max_length=64, description="Of runs of this agent, as it is then.")
    ] = None,
    since: Annotated[
        str | None,
        Query(
            alias="from",
            max_length=64,
            description="Where to begin: `pos:N` or an RFC 3339 instant; else the log's beginning.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        Query(
            alias="to",
            max_length=64,
            description="Where to end: `pos:N` or an RFC 3339 instant; now when left out.",
        ),
    ] = None,
    limit: Annotated[
        int, Query(ge=1, le=BREAKPOINTS_MAX, description="How many positions at most.")
    ] = 1,
    cursor: Annotated[
        str | None,
        Query(max_length=CURSOR_CHARS_MAX, description="`nextCursor` of the answer before."),
    ] = None,
) -> Response:
    """The breakpoints."""
    question = SearchQuestion(
        when=when,
        field=field,
        becomes=becomes,
        changes=changes,
        types=types,
        rule=rule,
        run_id=runId,
        session=session,
        tree=tree,
        agent_id=agentId,
        since=since,
        until=until,
    )
    found = await find_breakpoints(services, caller, question, limit=limit, cursor=cursor)
    return view_response(services, found)
