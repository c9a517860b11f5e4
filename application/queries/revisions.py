"""Revisions of the configuration: when each was active, and its content."""

from collections.abc import Sequence
from datetime import datetime

import orjson
from pydantic import Field

from application.log.envelope import RecordedEvent
from application.log.event_log import EventLog
from application.queries.access import Caller, require_scope, require_whole_log
from application.queries.as_of import resolve_as_of
from application.queries.command import Column, Command
from application.queries.errors import QueryError
from application.queries.operation import Page, ReadAsOf, operation
from application.queries.paging import (
    Cursor,
    decode_cursor,
    encode_cursor,
    fingerprint,
)
from application.queries.services import QueryServices
from application.queries.views.view import Answer, RecordedJson, View
from domain.event_types import ConfigurationActivated
from domain.values.record import CONFIG_STREAM


class RevisionSummary(View):
    """A revision, and the positions and instants between which it was active. `untilPosition` and
    `untilAt` are those at which the next revision replaced it; null for the active one. `source` is
    the absolute path of its file, or `built-in`. `erased` is true if its text was erased."""

    revision: int
    position: int
    activated_at: datetime
    activated_by: str
    source: str
    until_position: int | None
    until_at: datetime | None
    bytes: int
    erased: bool


class RevisionView(RevisionSummary):
    """A revision with its stored content, in which secrets are references. `content` is null if it
    was erased."""

    content: RecordedJson


class RevisionListView(View):
    """A page of revisions, newest first; `nextCursor` is null on the last page."""

    items: list[RevisionSummary]
    next_cursor: str | None


class ListRevisions(ReadAsOf, Page):
    """Parameters of `list_revisions`."""

    cursor: str | None = Field(
        None, max_length=1024, description="`nextCursor` of the previous page."
    )


@operation(
    "GET",
    "/v1/config/revisions",
    name="listRevisions",
    tag="configuration",
    scope="read",
    summary="List the configuration revisions, newest first",
    description=(
        "Returns the revisions of the configuration, newest first, with the times between which"
        " each was active. The first one is the active revision, now or as of `at`. Requires a"
        " token for all sessions (`*`)."
    ),
    errors=("foreign_cursor",),
    command=Command(
        "config history",
        "List the configuration revisions, newest first.\n\nEach with the times between which it"
        " was active, and its file.",
        columns=(
            Column("REVISION", "revision", right=True),
            Column("POSITION", "position", right=True),
            Column("ACTIVE FROM", "activatedAt", "instant"),
            Column("UNTIL", "untilAt", "instant", empty="now"),
            Column("UNTIL POSITION", "untilPosition", right=True),
            Column("BY", "activatedBy"),
            Column("FILE", "source", marked="erased", folds=True),
        ),
    ),
)
async def list_revisions(
    services: QueryServices, caller: Caller, query: ListRevisions
) -> Answer[RevisionListView]:
    """Return a page of revisions, newest first, beginning with the active one."""
    require_whole_log(caller)
    at, cursor, limit = query.at, query.cursor, query.limit
    log = services.work.log
    question = fingerprint("revisions", at)
    if cursor is None:
        place = Cursor((await resolve_as_of(services, caller, at)).position, -1)
        first = await revision_at(log, place.at)
    else:
        head = (await resolve_as_of(services, caller, None)).position
        place = decode_cursor(cursor, log.log_id, question, head)
        first = place.after - 1
    # One extra revision before the page says when its first one ended; one after it, whether more
    # follow.
    found = list(await _revisions(log, up_to=first + 1, limit=limit + 2)) if first > 0 else []
    following = _take_following(found, first, place.at)
    items = await _summaries(services, found[:limit], following)
    more = len(found) > limit
    following_cursor = Cursor(place.at, items[-1].revision) if more else None
    view = RevisionListView(
        items=items,
        next_cursor=encode_cursor(following_cursor, log.log_id, question)
        if following_cursor
        else None,
    )
    return Answer(view, place.at)


@operation(
    "GET",
    "/v1/config/revisions/{revision}",
    name="getRevision",
    tag="configuration",
    scope="read",
    summary="Get a configuration revision with its content",
    description=(
        "Returns a revision with its stored content, in which secrets are references. Requires"
        " scope `content` for all sessions (`*`)."
    ),
    errors=("not_found",),
    command=Command("config revision", "Show one configuration revision with its content."),
)
async def get_revision(
    services: QueryServices, caller: Caller, revision: int, query: ReadAsOf
) -> Answer[RevisionView]:
    require_whole_log(caller)
    require_scope(caller, "content")
    log = services.work.log
    moment = await resolve_as_of(services, caller, query.at)
    found = list(await _revisions(log, up_to=revision + 1, limit=2))
    following = _take_following(found, revision, moment.position)
    if not found or found[0].envelope.position > moment.position or _number(found[0]) != revision:
        last = await revision_at(log, moment.position)
        detail = f"there is no revision {revision}; the latest is {last}"
        raise QueryError("not_found", detail, position=moment.position)
    (summary,) = await _summaries(services, found[:1], following)
    text = await services.work.contents.text(_activation(found[0]).content)
    content = orjson.Fragment(text) if text is not None else None
    view = RevisionView.from_source(summary, erased=text is None, content=content)
    return Answer(view, moment.position)


async def revision_at(log: EventLog, position: int) -> int:
    """Return the revision that was active at a position; 0 before the first one.

    Uses binary search, so it reads few revisions even if there are many.
    """
    newest = await _revisions(log, up_to=None, limit=1)
    last = _number(newest[0]) if newest else 0
    if not newest or newest[0].envelope.position <= position:
        return last
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        (found,) = await _revisions(log, up_to=middle, limit=1)
        if found.envelope.position <= position:
            low = middle
        else:
            high = middle
    return low


async def _revisions(log: EventLog, *, up_to: int | None, limit: int) -> Sequence[RecordedEvent]:
    """Return revisions, newest first."""
    # A revision's number is the version of its event in the stream.
    return await log.newest_of_stream(CONFIG_STREAM, version_max=up_to, limit=limit)


def _take_following(found: list[RecordedEvent], first: int, at: int) -> RecordedEvent | None:
    """Remove and return the revision after `first`, or None if it was not active by position
    `at`."""
    if not found or _number(found[0]) <= first:
        return None
    following = found.pop(0)
    return following if following.envelope.position <= at else None


async def _summaries(
    services: QueryServices, found: Sequence[RecordedEvent], following: RecordedEvent | None
) -> list[RevisionSummary]:
    previews = await services.work.contents.previews(
        [_activation(revision).content for revision in found]
    )
    items = []
    for recorded in found:
        event, envelope = _activation(recorded), recorded.envelope
        items.append(
            RevisionSummary.from_source(
                event,
                position=envelope.position,
                activated_at=envelope.recorded_at,
                until_position=following.envelope.position if following is not None else None,
                until_at=following.envelope.recorded_at if following is not None else None,
                bytes=event.content.bytes,
                erased=event.content.id not in previews,
            )
        )
        following = recorded
    return items


def _activation(recorded: RecordedEvent) -> ConfigurationActivated:
    assert isinstance(recorded.event, ConfigurationActivated)
    return recorded.event


def _number(recorded: RecordedEvent) -> int:
    return recorded.envelope.version
