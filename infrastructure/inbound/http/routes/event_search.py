"""`GET /v1/events/find`: since when something is so."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from application.queries.search.find import (
    BREAKPOINTS_MAX,
    SearchQuestion,
    SearchView,
    find_breakpoints,
)
from domain.values.moments import MOMENT_CHARACTERS_MAX, MOMENT_FORMS
from domain.values.rules import RULE_NAMES
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import (
    TEXT_CHARS_MAX,
    ByCursor,
    RunParameter,
    ToParameter,
    TreeParameter,
    TypesParameter,
)
from infrastructure.inbound.http.responses.described import endpoint_responses

router = APIRouter(tags=["log"])
RULE_SCHEMA: dict[str, Any] = {"enum": [*RULE_NAMES]}
WhenParameter = Annotated[
    str | None,
    Query(
        max_length=TEXT_CHARS_MAX,
        description=(
            "A condition: comparisons (`> >= < <= = !=`) of numbers, with `and`, `or`, `not` and"
            " parentheses."
        ),
        examples=["running > 6 and not config = 2"],
    ),
]
FieldParameter = Annotated[
    str | None,
    Query(
        max_length=64,
        description="A field of a run's state, or of that of `session`, by the view's name.",
    ),
]
BecomesParameter = Annotated[
    str | None, Query(max_length=TEXT_CHARS_MAX, description="The value that it comes to have.")
]
RefusedBy = Annotated[
    str | None,
    Query(max_length=64, description="Refusals by this rule alone.", json_schema_extra=RULE_SCHEMA),
]
SessionParameter = Annotated[
    str | None,
    Query(
        max_length=TEXT_CHARS_MAX,
        description="Of this session and the runs that it asked for: a key, an id, `current`.",
    ),
]
AgentParameter = Annotated[
    str | None,
    Query(alias="agentId", max_length=64, description="Of runs of this agent, as it is then."),
]

BeginParameter = Annotated[
    str | None,
    Query(
        alias="from",
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"Where to begin: {MOMENT_FORMS}. Default: the beginning of the log.",
    ),
]


# Not a plain function: one would be called in a thread of its own for every request.
async def search_question(
    when: WhenParameter = None,
    field: FieldParameter = None,
    becomes: BecomesParameter = None,
    changes: Annotated[bool, Query(description="Any change of the field.")] = False,
    types: TypesParameter = (),
    rule: RefusedBy = None,
    run_id: RunParameter = None,
    session: SessionParameter = None,
    tree: TreeParameter = None,
    agent_id: AgentParameter = None,
    since: BeginParameter = None,
    until: ToParameter = None,
) -> SearchQuestion:
    """What is looked for, as the query says it."""
    return SearchQuestion(
        when=when,
        field=field,
        becomes=becomes,
        changes=changes,
        types=types,
        rule=rule,
        run_id=run_id,
        session=session,
        tree=tree,
        agent_id=agent_id,
        since=since,
        until=until,
    )


SearchParameters = Annotated[SearchQuestion, Depends(search_question)]


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
    question: SearchParameters,
    limit: Annotated[
        int, Query(ge=1, le=BREAKPOINTS_MAX, description="How many positions at most.")
    ] = 1,
    cursor: ByCursor = None,
) -> Response:
    """The breakpoints."""
    found = await find_breakpoints(services, caller, question, limit=limit, cursor=cursor)
    return view_response(services, found)
