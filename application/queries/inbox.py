"""A session's inbox, and what is parked on its way out of any."""

import time

from application.queries.access import Caller, require_scope, require_session_access
from application.queries.paging import LIMIT_DEFAULT
from application.queries.services import QueryServices
from application.queries.session_reference import resolve_session_key
from application.queries.views.inbox import InboxView, announcement_views
from application.queries.views.view import Answer
from application.queries.wait import wait_for_growth, wait_seconds

ANNOUNCING = ("RunAnnounced", "SpawnRefused", "DeliveryParked")
"""The events that may put something into an inbox."""


async def list_announcements(
    services: QueryServices,
    caller: Caller,
    session: str,
    *,
    after: int = 0,
    limit: int = LIMIT_DEFAULT,
    wait: str | None = None,
) -> Answer[InboxView]:
    """A page of the inbox of a session in any spelling; an empty one waits for as long as `wait`
    says."""
    require_scope(caller, "read")
    session_key = await resolve_session_key(services, caller, session)
    require_session_access(caller, session_key)
    deadline = time.monotonic() + wait_seconds(wait)
    registry, tail = services.work.registry, services.tail
    while True:
        known = tail.position
        position, runs = await registry.inbox(session_key, after=after, limit=limit + 1)
        if runs or not await wait_for_growth(
            services, None, after=known, deadline=deadline, types=ANNOUNCING
        ):
            break
    items = await announcement_views(
        services.work.contents, runs[:limit], with_text=caller.may("content")
    )
    following = items[-1].position if len(runs) > limit else None
    return Answer(InboxView(items=items, next_after=following), position)


async def list_parked(
    services: QueryServices, caller: Caller, *, after: int = 0, limit: int = LIMIT_DEFAULT
) -> Answer[InboxView]:
    """A page of the announcements that are not sent to a webhook any more, of all sessions that the
    caller may see, by the position at which that was recorded last."""
    require_scope(caller, "read")
    position, runs = await services.work.registry.parked(after=after, limit=limit + 1)
    seen = [one for one in runs[:limit] if await services.access.covers_run(caller, one)]
    items = await announcement_views(services.work.contents, seen, with_text=caller.may("content"))
    last = runs[limit - 1].inbox if len(runs) > limit else None
    return Answer(
        InboxView(items=items, next_after=last.position if last is not None else None), position
    )
