"""The inbox of a session, and the ledger of all announcements."""

import time
from typing import Literal

from pydantic import Field

from application.ports.registry import InboxQuery
from application.queries.access import Caller, require_session_access
from application.queries.as_of import resolve_as_of
from application.queries.command import Column, Command, Option
from application.queries.errors import QueryError
from application.queries.operation import WAIT, PageAfter, ReadAsOf, operation
from application.queries.services import QueryServices
from application.queries.session_reference import resolve_session_key
from application.queries.views.inbox import InboxView, announcement_views
from application.queries.views.run import announcement_state
from application.queries.views.view import Answer
from application.queries.wait import wait_for_growth, wait_seconds
from domain.run.state import Run

LedgerState = Literal["parked", "due", "delivered", "acknowledged"]
"""`parked` and `due` refer to webhooks: delivery to one was abandoned, or is still to come. The
others refer to the inbox."""


ANNOUNCEMENTS_EXAMINED_MAX = 1_000
ANNOUNCEMENTS_AT_ONCE = 200
ANNOUNCING = ("RunAnnounced", "SpawnRefused", "EffectParked")
"""Events that may add an announcement to an inbox."""


class ListAnnouncements(ReadAsOf, PageAfter):
    """Parameters of `list_announcements`."""

    wait: str | None = WAIT


@operation(
    "GET",
    "/v1/sessions/{key}/announcements",
    name="listAnnouncements",
    tag="announcements",
    scope="read",
    summary="List the announcements in a session's inbox, or wait for one",
    description=(
        "Returns announcements after `after`, by position. With `wait`, an empty response waits"
        " for the first one. `origin` says where to send the result, if known. With `at`, each"
        " announcement is shown as of then, including `state`, `acknowledgedAt` and `deliveries`."
    ),
    errors=("not_found",),
    command=Command(
        None,
        columns=(
            Column("POSITION", "position", right=True),
            Column("ID", "id"),
            Column("LABEL", "label", elastic=True),
            Column("STATUS", "status", coloured=True),
            Column("STATE", "state"),
            Column("DELIVERIES", "deliveries", "deliveries", if_any=True),
            Column("TEXT", "text", elastic=True, cells_min=20),
        ),
    ),
)
async def list_announcements(
    services: QueryServices, caller: Caller, key: str, query: ListAnnouncements
) -> Answer[InboxView]:
    """Return a page of a session's inbox as of `at`; with `wait`, wait while it is empty."""
    at, after, limit, wait = query.at, query.after, query.limit, query.wait
    seconds = wait_seconds(wait)
    if wait is not None and at is not None:
        raise QueryError("invalid_request", "wait cannot be combined with at")
    moment = await resolve_as_of(services, caller, at)
    session_key = await resolve_session_key(services, caller, key, at=moment.position)
    require_session_access(caller, session_key)
    deadline = time.monotonic() + seconds
    registry, tail = services.work.registry, services.tail
    inbox = InboxQuery(session_key)
    while True:
        known = tail.position
        runs = await registry.inbox(inbox, at=moment.position, after=after, limit=limit + 1)
        if runs or not await wait_for_growth(
            services, (), after=known, deadline=deadline, types=ANNOUNCING
        ):
            break
        moment = await resolve_as_of(services, caller, None)
    items = await announcement_views(
        services.work.contents, runs[:limit], with_text=caller.may("content")
    )
    following = items[-1].position if len(runs) > limit else None
    return Answer(InboxView(items=items, next_after=following), moment.position)


class ListLedger(ReadAsOf, PageAfter):
    """Parameters of `list_ledger`."""

    state: LedgerState | None = Field(
        None,
        description=(
            "Only announcements in this state. `parked`: delivery to some webhook was abandoned;"
            " `due`: delivery to some webhook is still to come; `delivered`: in the inbox, not"
            " acknowledged; `acknowledged`: acknowledged by its session."
        ),
    )


@operation(
    "GET",
    "/v1/announcements",
    name="listLedger",
    tag="announcements",
    scope="read",
    summary="List the announcements to all sessions, with their deliveries",
    description=(
        "Returns the announcements of all sessions that the token covers, in this `state` or in"
        " any, by position, after `after`. A parked announcement is listed at the position where"
        " it was last parked. `deliveries` has the state, attempts and next attempt for each"
        " webhook. Each request scans a bounded number of announcements, so a page may be short"
        " or empty: the ledger is complete only when `nextAfter` is null."
    ),
    errors=("not_found",),
    command=Command(
        "announcement list",
        by_hand=True,
        options={"state": Option(help="Only announcements in this state. Not with SESSION.")},
        columns=(
            Column("POSITION", "position", right=True),
            Column("ID", "id"),
            Column("REQUESTER", "requester", elastic=True),
            Column("STATUS", "status", coloured=True),
            Column("STATE", "state"),
            Column("DELIVERIES", "deliveries", "deliveries", folds=True),
        ),
    ),
)
async def list_ledger(
    services: QueryServices, caller: Caller, query: ListLedger
) -> Answer[InboxView]:
    """Return a page of the announcements of all sessions that the caller may see, by position."""
    moment = await resolve_as_of(services, caller, query.at)
    found, following = await find_announced_runs(
        services, caller, query.state, at=moment.position, after=query.after, limit=query.limit
    )
    items = await announcement_views(services.work.contents, found, with_text=caller.may("content"))
    return Answer(InboxView(items=items, next_after=following), moment.position)


async def find_announced_runs(
    services: QueryServices,
    caller: Caller,
    state: LedgerState | None,
    *,
    at: int,
    after: int,
    limit: int,
    until: int | None = None,
    webhook: str | None = None,
) -> tuple[list[Run], int | None]:
    """Return runs that the caller may see, by the position of their announcement.

    Args:
        until: Only announcements up to this position.
        webhook: Only runs with a parked delivery to this webhook.

    Returns:
        The runs, and the position after which to continue; None if there are no more.
    """
    ledger = InboxQuery(is_parked=state == "parked")
    takes_each = caller.sees_everything and state in (None, "parked") and webhook is None
    found: list[Run] = []
    known: dict[str, bool] = {}
    following: int | None = None
    examined = 0
    while examined < ANNOUNCEMENTS_EXAMINED_MAX:
        count = limit + 1 if takes_each else max(limit + 1, ANNOUNCEMENTS_AT_ONCE)
        count = min(count, ANNOUNCEMENTS_EXAMINED_MAX - examined)
        page = await services.work.registry.inbox(ledger, at=at, after=after, limit=count)
        for run in page:
            if len(found) == limit:
                following = after
                break
            assert run.inbox is not None
            if until is not None and run.inbox.position > until:
                return found, None
            after = run.inbox.position
            if _is_in(run, state, webhook) and await services.access.covers_run(caller, run, known):
                found.append(run)
        examined += len(page)
        if following is not None or len(page) < count:
            break
    else:
        following = after
    return found, following


def _is_in(run: Run, state: LedgerState | None, webhook: str | None) -> bool:
    if webhook is not None:
        delivery = run.effect("webhook", webhook)
        return delivery is not None and delivery.phase == "parked"
    if state in (None, "parked"):
        return True
    if state == "due":
        return any(delivery.phase == "due" for delivery in run.effects_of("webhook"))
    return announcement_state(run).state == state
