"""Cursors: opaque to callers, and bound to a log, a snapshot and a question."""

import base64
import binascii
import hashlib
from dataclasses import dataclass, replace
from typing import Annotated
from uuid import UUID

import orjson
from fastapi import Query

from application.log.envelope import RecordedEvent
from application.log.event_log import EventLog
from application.ports.registry import Registry, RunQuery
from application.queries.access import Access, Caller
from domain.run.state import Run
from infrastructure.inbound.http.responses.problems import HttpProblem

LIMIT_MAX = 500
LIMIT_DEFAULT = 50
POSITION_MAX = 2**62
LimitParameter = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="How many items at most.")]
After = Annotated[
    int,
    Query(
        ge=0, le=POSITION_MAX, description="Only what stands behind this: `nextAfter` of a page."
    ),
]


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next page begins: behind `behind`, in the registry as of `at`."""

    at: int
    behind: int


def fingerprint(*question: object) -> str:
    """By this a cursor knows the question it belongs to."""
    return hashlib.sha256(repr(question).encode()).hexdigest()[:16]


def encode_cursor(cursor: Cursor, log_id: UUID, question: str) -> str:
    """The cursor as callers hold it."""
    parts = [str(log_id), question, cursor.at, cursor.behind]
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def decode_cursor(text: str, log_id: UUID, question: str, head: int) -> Cursor:
    """The cursor again. 410 for one of another log, 422 for what is none of this question."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        log, asked, at, behind = orjson.loads(base64.b64decode(padded, b"-_", validate=True))
    except (UnicodeEncodeError, binascii.Error, ValueError, TypeError):
        raise _invalid_cursor() from None
    if not isinstance(log, str):
        raise _invalid_cursor()
    if log != str(log_id):
        raise HttpProblem("foreign_cursor", "this cursor is of another log; begin again without it")
    if asked != question:
        raise HttpProblem(
            "invalid_request", "this cursor belongs to another question; begin again without it"
        )
    if not _is_position(at, head) or not _is_position(behind, head):
        raise _invalid_cursor()
    return Cursor(at, behind)


def _is_position(value: object, head: int) -> bool:
    return type(value) is int and 0 <= value <= head


def _invalid_cursor() -> HttpProblem:
    return HttpProblem("invalid_request", "this is no cursor; begin again without it")


# Which events of the log are wanted, and a page of them at a cost that is bounded.


EVENTS_EXAMINED_MAX = 5_000
EVENTS_AT_ONCE = 500
POSITIONS_PASSED_MAX = 100_000


"""So far the database looks for events that it can leave out by itself, which is cheap."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are wanted, and whose the caller may see."""

    types: tuple[str, ...]
    run_id: UUID | None
    tree: str | None
    caller: Caller

    @property
    def takes_everything(self) -> bool:
        """Whether nothing is left out."""
        narrowed = self.types or self.run_id or self.tree
        return not narrowed and self.caller.sees_everything

    @property
    def trees(self) -> tuple[str, ...] | None:
        """The trees to which all that is wanted belongs; None when that is not known."""
        if self.tree is not None:
            return (self.tree,)
        own = self.caller.only_session if self.run_id is None else None
        return (own,) if own is not None else None

    def takes(self, recorded: RecordedEvent) -> bool:
        """Whether an event is wanted and may be seen."""
        source = recorded.envelope.provenance
        if self.types and recorded.envelope.type not in self.types:
            return False
        if self.run_id is not None and source.run_id != self.run_id:
            return False
        if self.tree is not None and source.correlation != self.tree:
            return False
        if self.caller.sees_everything or self.run_id is not None:
            return True
        return source.correlation is not None and self.caller.acts_for(source.correlation)


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events, and the position up to which the log was looked through."""

    events: list[RecordedEvent]
    position: int


async def page_of_events(
    log: EventLog,
    wanted: EventFilter,
    *,
    after: int,
    limit: int,
    head: int,
    examined_max: int = EVENTS_EXAMINED_MAX,
    passed_max: int = POSITIONS_PASSED_MAX,
) -> EventPage:
    """Up to `limit` events behind `after`, out of at most `examined_max`, no further than
    `passed_max` positions on. A question that few events answer goes on from where it ends.

    The events of a run stand in an index of their own, so these are looked for up to the head.
    """
    end = head if wanted.run_id is not None else min(head, after + passed_max)
    events: list[RecordedEvent] = []
    position = after
    examined = 0
    while position < end and examined < examined_max:
        asked = min(EVENTS_AT_ONCE, examined_max - examined)
        found = await log.read(
            after=position,
            limit=asked,
            until=end,
            types=wanted.types,
            run_id=wanted.run_id,
            correlations=wanted.trees,
        )
        for recorded in found:
            position = recorded.envelope.position
            if wanted.takes(recorded):
                events.append(recorded)
                if len(events) == limit:
                    return EventPage(events, position)
        if len(found) < asked:
            return EventPage(events, end)
        examined += len(found)
    return EventPage(events, position)


# A page of the registry as one caller may see it, at a cost that is bounded.


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
