"""Every read that takes `at`, by its operation, and its answers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from application.log.envelope import SYSTEM
from application.queries import agents, events, explain, inbox, lanes, revisions, runs, sessions
from application.queries.access import ALL_SCOPES, Caller
from application.queries.agents import ListAgents
from application.queries.changes import compare, history
from application.queries.changes.compare import CompareRuns
from application.queries.changes.history import GetRunHistory
from application.queries.errors import QueryError
from application.queries.events import ListEvents
from application.queries.inbox import ListAnnouncements, ListLedger
from application.queries.lanes import ListLanes
from application.queries.operation import ReadAsOf
from application.queries.paging import LIMIT_MAX
from application.queries.revisions import ListRevisions
from application.queries.runs import GetRun, GetRunTranscript, ListRunEvents, ListRuns
from application.queries.services import QueryServices
from application.queries.timeline import bars, tree, usage
from application.queries.timeline.bars import ListTimeline
from application.queries.timeline.tree import GetSessionTree
from application.queries.timeline.usage import ListTreeUsage
from application.queries.views.view import Answer, View

EVERYTHING = Caller(actor=SYSTEM, scopes=ALL_SCOPES, patterns=("*",))
Question = Callable[[QueryServices, Caller, str, str | None], Awaitable[Answer[View]]]
"""A read: services, caller, subject, and moment."""


EVENTS_ASKED = 5


OF_ALL: Mapping[str, Question] = {
    "listRuns": lambda to, by, _, at: runs.list_runs(to, by, ListRuns(at=at, limit=LIMIT_MAX)),
    "listLanes": lambda to, by, _, at: lanes.list_lanes(to, by, ListLanes(at=at)),
    "listEvents": lambda to, by, _, at: events.list_events(
        to, by, ListEvents(at=at, order="desc", limit=EVENTS_ASKED)
    ),
    "listTimeline": lambda to, by, _, at: bars.list_timeline(to, by, ListTimeline(at=at)),
    "listLedger": lambda to, by, _, at: inbox.list_ledger(
        to, by, ListLedger(at=at, limit=LIMIT_MAX)
    ),
}
OF_REVISIONS: Mapping[str, Question] = {
    "listRevisions": lambda to, by, _, at: revisions.list_revisions(
        to, by, ListRevisions(at=at, limit=LIMIT_MAX)
    ),
    "getRevision": lambda to, by, number, at: revisions.get_revision(
        to, by, int(number), ReadAsOf(at=at)
    ),
}
OF_SESSIONS: Mapping[str, Question] = {
    "getSession": lambda to, by, key, at: sessions.get_session(to, by, key, ReadAsOf(at=at)),
    "getSessionTree": lambda to, by, key, at: tree.get_session_tree(
        to, by, key, GetSessionTree(at=at)
    ),
    "listTreeUsage": lambda to, by, key, at: usage.list_tree_usage(
        to, by, ListTreeUsage(trees=(key,), at=at)
    ),
    "listAnnouncements": lambda to, by, key, at: inbox.list_announcements(
        to, by, key, ListAnnouncements(at=at)
    ),
    "getSharedContext": lambda to, by, key, at: sessions.get_shared_context(
        to, by, key, ReadAsOf(at=at)
    ),
    "listAgents": lambda to, by, key, at: agents.list_agents(
        to, by, ListAgents(requester=key, at=at)
    ),
}
OF_RUNS: Mapping[str, Question] = {
    "getRun": lambda to, by, run, at: runs.get_run(to, by, run, GetRun(at=at)),
    "getRunHistory": lambda to, by, run, at: history.get_run_history(
        to, by, run, GetRunHistory(at=at)
    ),
    "compareRuns": lambda to, by, run, at: compare.compare_runs(
        to, by, run, CompareRuns(other=run, at=at)
    ),
    "explainRun": lambda to, by, run, at: explain.explain_run(to, by, run, ReadAsOf(at=at)),
    "listRunEvents": lambda to, by, run, at: runs.list_run_events(
        to, by, run, ListRunEvents(at=at)
    ),
    "getRunPrompt": lambda to, by, run, at: runs.get_run_prompt(to, by, run, ReadAsOf(at=at)),
    "getRunTranscript": lambda to, by, run, at: runs.get_run_transcript(
        to, by, run, GetRunTranscript(tools=True, limit=LIMIT_MAX, at=at)
    ),
    "getRunSharedContext": lambda to, by, run, at: sessions.get_run_shared_context(
        to, by, run, ReadAsOf(at=at)
    ),
}
QUESTIONS = {**OF_ALL, **OF_REVISIONS, **OF_SESSIONS, **OF_RUNS}


class Read(NamedTuple):
    """A question by its operation, and the session or run that it is about."""

    operation: str
    about: str = ""


def reads_about(session_keys: Iterable[str], run_ids: Iterable[UUID]) -> list[Read]:
    """Return every read of the whole registry, of these sessions and of these runs."""
    return [
        *map(Read, OF_ALL),
        *(Read(name, key) for key in session_keys for name in OF_SESSIONS),
        *(Read(name, str(run_id)) for run_id in run_ids for name in OF_RUNS),
    ]


def reads_about_revisions(revisions_max: int) -> list[Read]:
    """Return every read of all revisions, and of each up to a number."""
    numbers = range(1, revisions_max + 1)
    return [Read("listRevisions"), *(Read("getRevision", str(number)) for number in numbers)]


class GivenAnswer(NamedTuple):
    """An answer, or why there is none, and its position."""

    position: int | None
    content: bytes


NOW_ONLY: Mapping[str, object] = {
    "runtimeMs": None,
    "usage": None,
    "estimatedCostUsd": None,
    "transcriptEntries": None,
    "progress": None,
}
"""Fields of a running run that only an answer about now has."""


async def ask(services: QueryServices, read: Read, at: int | None, caller: Caller) -> GivenAnswer:
    """Return the answer as of a position, or now without the values that only that has."""
    when = None if at is None else f"pos:{at}"
    try:
        answer = await QUESTIONS[read.operation](services, caller, read.about, when)
    except QueryError as error:
        return GivenAnswer(error.position, f"{error.code}: {error.detail}".encode())
    content = answer.view.json_bytes()
    if at is None and read.operation in ("getRun", "listRuns"):
        content = orjson.dumps(_as_on_record(orjson.loads(content)))
    return GivenAnswer(answer.position, content)


def _as_on_record(value: Any) -> Any:
    if "items" in value:
        return {**value, "items": [_as_on_record(item) for item in value["items"]]}
    if value["status"] != "running":
        return value
    return value | {name: empty for name, empty in NOW_ONLY.items() if name in value}
