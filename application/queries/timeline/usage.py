"""Tokens and cost of several trees at once, now or as of an earlier moment."""

from typing import Annotated

from pydantic import Field

from application.ports.registry import RunCondition, RunQuery
from application.queries.access import Caller
from application.queries.as_of import resolve_as_of
from application.queries.operation import ReadAsOf, operation
from application.queries.paging import Cursor
from application.queries.run_filter import TEXT_CHARACTERS_MAX, narrow_to_tree
from application.queries.runs import running_so_far
from application.queries.search.run_totals import totals_of_trees
from application.queries.services import QueryServices
from application.queries.session_reference import resolve_session_key
from application.queries.views.run_totals import UsageTotalsView
from application.queries.views.view import Answer, View

TREES_MAX = 50


class TreeUsageView(UsageTotalsView):
    """Runs, tokens and cost of the tree below one root session, `tree`. `runningNotSummed` and
    `countedTo` are as in totals of runs."""

    tree: str
    running_not_summed: int
    counted_to: int | None


class TreeUsageListView(View):
    """Usage of trees, in the order of the request. Trees without runs that the token may see are
    omitted."""

    items: list[TreeUsageView]


class ListTreeUsage(ReadAsOf):
    """Parameters of `list_tree_usage`."""

    trees: tuple[Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS_MAX)], ...] = Field(
        alias="tree",
        max_length=TREES_MAX,
        description=(
            "Root session of a tree: a session key, a session id, or `current` (repeatable,"
            f" {TREES_MAX} at most)."
        ),
        examples=[["agent:main:main"]],
    )


@operation(
    "GET",
    "/v1/trees/usage",
    name="listTreeUsage",
    tag="sessions",
    scope="read",
    summary="Sum tokens and cost of several trees",
    description=(
        "Returns the number of runs that the token may see in each tree, with their tokens and"
        " cost. Of each tree the newest 10,000 runs are counted (5,000 for a token that may not see"
        " all sessions). Running runs count with their usage so far: the newest 500 of all these"
        " trees. A session that was spawned is not a root and has no runs of a tree."
    ),
    errors=("not_found",),
    command="of the page",
)
async def list_tree_usage(
    services: QueryServices, caller: Caller, query: ListTreeUsage
) -> Answer[TreeUsageListView]:
    """Return the sums of the runs of each tree."""
    moment = await resolve_as_of(services, caller, query.at)
    at = moment.position
    keys = {
        await resolve_session_key(services, caller, tree, pointer="/query/tree", at=at): None
        for tree in query.trees
    }
    own = await narrow_to_tree(services.work.registry, caller, RunQuery())
    place = Cursor.first(at, services.work.log.now())
    running = await running_so_far(
        services,
        caller,
        RunQuery((*own.conditions, RunCondition("root", "any of", tuple(sorted(keys))))),
        place,
        moment=moment,
    )
    roots = tuple(keys)
    totals = await totals_of_trees(
        services.run_search, services.access, caller, own, roots, at, running=running
    )
    items = [
        TreeUsageView.from_source(of_tree, tree=root)
        for root, of_tree in zip(roots, totals, strict=True)
        if of_tree.runs
    ]
    return Answer(TreeUsageListView(items=items), at)
