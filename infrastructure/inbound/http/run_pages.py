"""A page of the registry as one caller may see it, at a cost that is bounded."""

from dataclasses import dataclass, replace

from application.ports.registry import Registry, RunQuery
from application.queries.access import Access, Caller
from domain.run.state import Run
from infrastructure.inbound.http.requests.paging import Cursor

RUNS_EXAMINED_MAX = 5_000
RUNS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class RunPage:
    """The runs of a page, and the position behind which the next one begins; None at the end."""

    runs: list[Run]
    behind: int | None


async def visible_runs(
    registry: Registry,
    access: Access,
    caller: Caller,
    query: RunQuery,
    place: Cursor,
    *,
    limit: int,
    ascending: bool,
    examined_max: int = RUNS_EXAMINED_MAX,
) -> RunPage:
    """Up to `limit` runs that the caller may see, out of at most `examined_max`.

    Who may see few of many runs gets a short or empty page, and goes on where it ends.
    """
    query = await _narrow_to_tree(registry, caller, query)
    found: list[Run] = []
    known: dict[str, bool] = {}
    behind = place.behind if place.behind >= 0 else None
    examined = 0
    at_once = limit + 1 if caller.sees_everything else max(limit + 1, RUNS_AT_ONCE)
    while examined < examined_max:
        asked = min(at_once, examined_max - examined)
        page = await registry.runs(
            query, at=place.at, limit=asked, behind=behind, ascending=ascending
        )
        for run in page:
            if len(found) == limit:
                return RunPage(found, behind)
            if await access.covers_run(caller, run, known):
                found.append(run)
            behind = run.created_position
        if len(page) < asked:
            return RunPage(found, None)
        examined += len(page)
    return RunPage(found, behind)


async def _narrow_to_tree(registry: Registry, caller: Caller, query: RunQuery) -> RunQuery:
    """Who acts for one session sees runs of one tree alone: the others need not be looked at."""
    if caller.only_session is None or query.tree is not None:
        return query
    session = await registry.session(caller.only_session)
    return replace(query, tree=session.root_session_key if session else caller.only_session)
