"""Failures grouped by cause, and the runs of one cause."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from application.ports.registry import Registry, RunCondition, RunQuery
from application.ports.run_search import RunError, RunSearch, RunWords, ScanWindow
from application.queries.access import Access, Caller
from application.queries.paging import Cursor
from application.queries.search.run_totals import runs_counted_max
from application.queries.views.run import ROWS_BY_STATUS, STATUS_BY_OUTCOME, RunStatus
from application.queries.views.summary import FailuresView
from domain.run.error_cause import error_cause, error_line
from domain.run.state import Run

CAUSES_MAX = 50
RUNS_OF_CAUSE_MAX = 5
FAILED: tuple[RunStatus, ...] = ("failed", "timeout", "unknown")
"""Statuses of failed runs. A stopped run did not fail: its end was requested."""
_FAILED = RunCondition("status", "any of", tuple(ROWS_BY_STATUS[status] for status in FAILED))


@dataclass(slots=True)
class _Failures:
    """Failures with the same cause, newest first.

    `is_alike` is False once their lines have different numbers of words.
    """

    error: str
    newest_at: datetime
    is_alike: bool = True
    runs: int = 0
    agents: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    run_ids: list[UUID] = field(default_factory=list)


async def failures_by_cause(
    search: RunSearch, access: Access, caller: Caller, query: RunQuery, at: int
) -> tuple[list[FailuresView], int]:
    """Return the failed runs that match a query and that the caller may see, grouped by cause, most
    first, and the number of further causes.

    As many runs are scanned as for totals.
    """
    window = ScanWindow(at, runs_counted_max(caller, None))
    found = await search.errors(_failed(query), None, window, whole=caller.may("content"))
    causes: dict[str, _Failures] = {}
    known: dict[str, bool] = {}
    for error in found.errors:
        if not await access.covers_child(caller, error.run_id, error.requester, known):
            continue
        line = error_line(error.text or "")
        cause = error_cause(line)
        failures = causes.setdefault(cause, _Failures(line, error.ended_at))
        if failures.is_alike and line != failures.error:
            common = _common_words(failures.error, line)
            failures.is_alike = common is not None
            failures.error = cause if common is None else common
        failures.newest_at = max(failures.newest_at, error.ended_at)
        failures.runs += 1
        failures.statuses[STATUS_BY_OUTCOME[error.outcome]] += 1
        if error.agent_id is not None:
            failures.agents[error.agent_id] += 1
        if len(failures.run_ids) < RUNS_OF_CAUSE_MAX:
            failures.run_ids.append(error.run_id)
    most_first = sorted(causes.items(), key=lambda item: (-item[1].runs, item[0]))
    views = [
        FailuresView(cause=cause, **_members(failures))
        for cause, failures in most_first[:CAUSES_MAX]
    ]
    return views, max(0, len(causes) - CAUSES_MAX)


def _common_words(line: str, other: str) -> str | None:
    """Return the words that two lines share, with `…` where they differ; None if their numbers of
    words differ."""
    words, others = line.split(" "), other.split(" ")
    if len(words) != len(others):
        return None
    return " ".join(word if word == same else "…" for word, same in zip(words, others, strict=True))


def _members(failures: _Failures) -> dict[str, Any]:
    return {
        "error": failures.error,
        "newest_at": failures.newest_at,
        "runs": failures.runs,
        "agents": dict(failures.agents.most_common()),
        "statuses": dict(failures.statuses.most_common()),
        "run_ids": failures.run_ids,
    }


async def runs_with_cause(
    search: RunSearch,
    registry: Registry,
    access: Access,
    caller: Caller,
    query: RunQuery,
    words: RunWords | None,
    cause: str,
    place: Cursor,
    *,
    limit: int,
    ascending: bool,
) -> tuple[list[Run], int | None]:
    """Return failed runs of this cause that match the query and that the caller may see, and the
    position after which the next page begins."""
    after_cursor = place.after if place.after >= 0 else None
    window = ScanWindow(place.at, runs_counted_max(caller, words), after_cursor, ascending)
    errors, following = await errors_of_cause(search, caller, query, words, cause, window)
    if len(errors) > limit:
        errors = errors[:limit]
        following = errors[-1].created_position
    (states,) = await registry.states([error.run_id for error in errors], (), at=[place.at])
    known: dict[str, bool] = {}
    runs = [
        states.runs[error.run_id]
        for error in errors
        if await access.covers_child(caller, error.run_id, error.requester, known)
    ]
    return runs, following


async def errors_of_cause(
    search: RunSearch,
    caller: Caller,
    query: RunQuery,
    words: RunWords | None,
    cause: str,
    window: ScanWindow,
) -> tuple[Sequence[RunError], int | None]:
    """Return the errors of a window that have this cause, and the cursor at which to continue."""
    cause = error_cause(cause)
    found = await search.errors(_failed(query), words, window, whole=caller.may("content"))
    errors = [error for error in found.errors if error_cause(error_line(error.text or "")) == cause]
    return errors, found.after_cursor


def _failed(query: RunQuery) -> RunQuery:
    return RunQuery((*query.conditions, _FAILED))
