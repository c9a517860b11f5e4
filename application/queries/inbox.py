"""A session's inbox, and the ledger of announcements over all of them."""

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
"""`parked` and `due` are about webhooks: one of them is not sent it any more, or is to be; the
others about the inbox."""


ANNOUNCEMENTS_EXAMINED_MAX = 1_000
ANNOUNCEMENTS_AT_ONCE = 200
ANNOUNCING = ("RunAnnounced", "SpawnRefused", "EffectParked")
"""The events that may put something into an inbox."""


class ListAnnouncements(ReadAsOf, PageAfter):
    """Parameters of `list_announcements`."""

    wait: str | None = WAIT


@operation(
    "GET",
    "/v1/sessions/{key}/announcements",
    name="listAnnouncements",
    tag="announcements",
    scope="read",
    summary="A session's inbox",
    description=(
        "Announcements by position, those behind `after`. With `wait` an empty answer waits for"
        " the first one. `origin` is where the result is to be sent from here, if anybody said."
        " With `at` each is as it was then: `state`, `acknowledgedAt` and `deliveries` too."
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
            Column("TEXT", "text", elastic=True, cells_min=20),
        ),
    ),
)
async def list_announcements(
    services: QueryServices, caller: Caller, key: str, query: ListAnnouncements
) -> Answer[InboxView]:
    """Return a page of the inbox of a session, as it was then; if it is empty now, after `wait`."""
    at, after, limit, wait = query.at, query.after, query.limit, query.wait
    seconds = wait_seconds(wait)
    if wait is not None and at is not None:
        raise QueryError("invalid_request", "wait and at speak of different times: use one")
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
            "`parked`: some webhook has not taken it and is not sent it any more; `due`: some"
            " webhook is to be sent it; `delivered` and `acknowledged`: its session has not taken"
            " it, or has."
        ),
    )


@operation(
    "GET",
    "/v1/announcements",
    name="listLedger",
    tag="announcements",
    scope="read",
    summary="The ledger of announcements",
    description=(
        "Of all sessions that the token covers, in this `state` or in any, by position, behind"
        " `after`; one that was parked stands where that was recorded last. `deliveries` has the"
        " state, the attempts and the next time of each webhook. One request looks at a bounded"
        " number, so a page may be short or empty: the ledger is over when `nextAfter` is null."
    ),
    errors=("not_found",),
    command=Command(
        "announcement list",
        by_hand=True,
        options={"state": Option(help="Of all sessions: those in this state.")},
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
    state, after, limit = query.state, query.after, query.limit
    moment = await resolve_as_of(services, caller, query.at)
    ledger = InboxQuery(is_parked=state == "parked")
    takes_each = caller.sees_everything and state in (None, "parked")
    found: list[Run] = []
    known: dict[str, bool] = {}
    following: int | None = None
    examined = 0
    while examined < ANNOUNCEMENTS_EXAMINED_MAX:
        count = limit + 1 if takes_each else max(limit + 1, ANNOUNCEMENTS_AT_ONCE)
        count = min(count, ANNOUNCEMENTS_EXAMINED_MAX - examined)
        page = await services.work.registry.inbox(
            ledger, at=moment.position, after=after, limit=count
        )
        for run in page:
            if len(found) == limit:
                following = after
                break
            assert run.inbox is not None
            after = run.inbox.position
            if _is_in(run, state) and await services.access.covers_run(caller, run, known):
                found.append(run)
        examined += len(page)
        if following is not None or len(page) < count:
            break
    else:
        following = after
    items = await announcement_views(services.work.contents, found, with_text=caller.may("content"))
    return Answer(InboxView(items=items, next_after=following), moment.position)


def _is_in(run: Run, state: LedgerState | None) -> bool:
    if state in (None, "parked"):
        return True
    if state == "due":
        return any(one.phase == "due" for one in run.effects_of("webhook"))
    return announcement_state(run).state == state
