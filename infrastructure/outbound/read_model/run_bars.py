"""Reads of runs as bars: columns of their rows, and their stages from their events."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from application.ports.registry import RunQuery
from application.ports.run_bars import ReachedStage, RunBar, RunDetails, SessionBar
from application.projections.fold import FOREVER
from domain.run.lifecycle import OVER, STAGE_REACHED_BY
from domain.values.record import ContentRef, run_stream
from infrastructure.outbound.log.read.coalesced_reads import CoalescedReads
from infrastructure.outbound.log.read.fold_input import sessions_folded
from infrastructure.outbound.log.read.moments import Moment
from infrastructure.outbound.log.read.state_cache import StateCaches
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection
from infrastructure.outbound.read_model.event_counts import READ_EVENTS_MAX, live_runs_at
from infrastructure.outbound.read_model.registry import conditions_of_runs, sources_of_runs

# A row that has ended holds no state. The requesting run never changes, so the last row has it too.
_BAR = (
    "SELECT one.run_id, one.version, one.created_position, one.created_at, one.stage, one.outcome,"
    " one.due_kind IS NOT DISTINCT FROM 'wait', one.requester,"
    " (newest.requester ->> 'runId')::uuid, one.child_session_key,"
    " one.agent_id, one.label, one.depth, one.respawned_from, one.rule"
    " FROM ({found}) AS one CROSS JOIN LATERAL (SELECT facts.* FROM runs,"
    " json_to_record(state::json) AS facts (requester json)"
    f" WHERE runs.run_id = one.run_id AND to_position = {FOREVER}"
    " ORDER BY from_position DESC LIMIT 1) AS newest"
    " {order}"
)
_COLUMNS = (
    "run_id, version, created_position, created_at, stage, outcome, due_kind, requester,"
    " child_session_key, agent_id, label, depth, respawned_from, rule"
)
STAGES = (
    "SELECT t.run_id, t.until, one.type, one.position, one.recorded_at"
    " FROM unnest(%s::uuid[], %s::text[], %s::int[]) WITH ORDINALITY"
    " AS t (run_id, stream, until, place)"
    " CROSS JOIN LATERAL (SELECT version, type, position, recorded_at FROM events"
    " WHERE events.stream = t.stream AND version <= t.until AND type = ANY(%s::text[])"
    " ORDER BY version) AS one ORDER BY t.place, one.version"
)
# The event that ends a run sets its error and usage, and nothing changes them or its task. So the
# last row of a run has them for each position at which it was over.
DETAILS = (
    "SELECT t.run_id, facts.task, coalesce(facts.refusal -> 'text', facts.error), facts.usage"
    " FROM unnest(%s::uuid[]) AS t (run_id) CROSS JOIN LATERAL"
    f" (SELECT state FROM runs WHERE runs.run_id = t.run_id AND to_position = {FOREVER}"
    " ORDER BY from_position DESC LIMIT 1) AS newest, json_to_record(newest.state::json)"
    " AS facts (task json, error json, refusal json, usage json)"
)
RUNS_OF_A_SESSION = (
    f"SELECT run_id FROM runs WHERE child_session_key = %s AND to_position = {FOREVER}"
    " AND created_position + 0 <= %s ORDER BY created_position + 0 LIMIT %s"
)
_FIELDS = attrgetter(*SessionBar._fields)
_MOVING = sorted(STAGE_REACHED_BY)
KnownStages = Callable[[UUID, int], Sequence[ReachedStage] | None]
"""Returns the cached stages of a run after its first events, or None if they must be read."""


class PostgresRunBars:
    """Run bars in PostgreSQL; implements `RunBars`."""

    def __init__(
        self,
        pool: AsyncConnectionPool[LogConnection],
        remembered: StateCaches | None = None,
        known_stages: KnownStages = lambda *_: None,
    ) -> None:
        self._pool = pool
        remembered = remembered or StateCaches()
        self._moments = remembered.moments
        self._known_stages = known_stages, remembered.past_runs.stages, remembered.moments.stages
        self._stages = CoalescedReads(pool, _stages_of)

    async def overlapping(
        self,
        query: RunQuery,
        *,
        after: int,
        until: int,
        at: int,
        limit: int,
        after_cursor: int | None = None,
    ) -> Sequence[RunBar]:
        """Return the runs created within the range, by the index of creation, then the runs that
        were at work before it, by their ids."""
        # Runs created after `at` would be scanned and discarded.
        last = min(until, at) if after_cursor is None else min(until, at, after_cursor - 1)
        async with borrow_connection(self._pool) as connection:
            moment = await self._moments.find(connection, at)
            within = {"created_position > %s": after, "created_position <= %s": last}
            found = await _page(connection, query, moment, within, limit)
            if len(found) < limit and after > 0:
                live = await live_runs_at(connection, after, READ_EVENTS_MAX)
                before = {
                    "created_position <= %s": min(after, last),
                    "run_id = ANY(%s::uuid[])": sorted(live),
                }
                found += await _page(
                    connection, query, moment, before, limit - len(found), by_id=True
                )
        return found

    async def spawned_by(
        self, session_keys: Sequence[str], *, at: int, limit: int, refused: bool = False
    ) -> Sequence[RunBar]:
        """Return the runs that these sessions requested, each session by the index of
        requesters."""
        async with borrow_connection(self._pool) as connection:
            moment = await self._moments.find(connection, at)
            query = spawned_bars(session_keys, moment, limit, refused=refused)
            cursor = await connection.execute(*query)
            return [RunBar(*row) for row in await cursor.fetchall()]

    async def details(self, bars: Sequence[RunBar]) -> Mapping[UUID, RunDetails]:
        """Return the details of runs, from their last rows."""
        stages = {bar.run_id: bar.stage for bar in bars}
        async with borrow_connection(self._pool) as connection:
            cursor = await connection.execute(DETAILS, [list(stages)])
            rows = await cursor.fetchall()
        return {
            run_id: _details(task, error, usage)
            if stages[run_id] in OVER
            else RunDetails(_content_ref(task))
            for run_id, task, error, usage in rows
        }

    async def own_runs(self, session_key: str, *, at: int, limit: int) -> Sequence[RunBar]:
        """Return the runs of a child session, by the index of children's keys."""
        async with borrow_connection(self._pool) as connection:
            moment = await self._moments.find(connection, at)
            cursor = await connection.execute(RUNS_OF_A_SESSION, [session_key, at, limit])
            run_ids = [row[0] for row in await cursor.fetchall()]
            # A run refused after `at` was not refused yet at `at`.
            named = {"run_id = ANY(%s::uuid[])": run_ids, "stage <> %s": "refused"}
            found = await _page(connection, RunQuery(), moment, named, limit, by_id=True)
        return found[::-1]

    async def sessions(self, session_keys: Sequence[str], *, at: int) -> Mapping[str, SessionBar]:
        """Return the sessions by key."""
        async with borrow_connection(self._pool) as connection:
            moment = await self._moments.find(connection, at)
            unchanged = [(key, moment.end) for key in session_keys if key not in moment.sessions]
            found = list((await sessions_folded(connection, unchanged)).values())
        found += [moment.sessions[key] for key in session_keys if key in moment.sessions]
        return {session.session_key: SessionBar(*_FIELDS(session)) for session in found}

    async def stages(self, versions: Mapping[UUID, int]) -> Mapping[UUID, Sequence[ReachedStage]]:
        """Return the stages of runs up to a version each. They are read from the events, of which
        nothing is decoded, or from memory if this process has followed or just folded the run."""
        known: dict[UUID, Sequence[ReachedStage] | None] = {}
        for run_id, until in versions.items():
            cached = (look(run_id, until) for look in self._known_stages)
            known[run_id] = next((stages for stages in cached if stages is not None), None)
        found = await self._stages.get_all(
            (run_id, versions[run_id]) for run_id, stages in known.items() if stages is None
        )
        return {
            run_id: stages if stages is not None else found.get((run_id, versions[run_id]), ())
            for run_id, stages in known.items()
        }


def _details(
    task: Mapping[str, Any], error: Mapping[str, Any] | None, usage: Mapping[str, Any] | None
) -> RunDetails:
    details = RunDetails(_content_ref(task), _content_ref(error) if error is not None else None)
    if usage is None:
        return details
    costs = [(model.get("model") or "", model.get("costUsd")) for model in usage["models"]]
    priced = [Decimal(str(cost)) for _, cost in costs if cost is not None]
    return details._replace(
        input_tokens=usage.get("inputTokens", 0),
        output_tokens=usage.get("outputTokens", 0),
        cost_usd=sum(priced, Decimal()) if priced else None,
        models=frozenset(name for name, _ in costs),
        unpriced_models=frozenset(name for name, cost in costs if cost is None),
    )


def _content_ref(members: Mapping[str, Any]) -> ContentRef:
    return ContentRef(id=UUID(members["id"]), bytes=members["bytes"], hmac=members["hmac"])


async def _stages_of(
    connection: LogConnection, wanted: Sequence[tuple[UUID, int]]
) -> Mapping[tuple[UUID, int], Sequence[ReachedStage]]:
    run_ids, versions = [run_id for run_id, _ in wanted], [version for _, version in wanted]
    streams = [run_stream(run_id) for run_id in run_ids]
    cursor = await connection.execute(STAGES, [run_ids, streams, versions, _MOVING], prepare=True)
    found: dict[tuple[UUID, int], list[ReachedStage]] = {}
    for run_id, until, name, position, recorded_at in await cursor.fetchall():
        reached = ReachedStage(STAGE_REACHED_BY[name], position, recorded_at)
        found.setdefault((run_id, until), []).append(reached)
    return found


async def _page(
    connection: LogConnection,
    query: RunQuery,
    moment: Moment,
    within: Mapping[str, Any],
    limit: int,
    *,
    by_id: bool = False,
) -> list[RunBar]:
    cursor = await connection.execute(*page_of_bars(query, moment, within, limit, by_id=by_id))
    return [RunBar(*row) for row in await cursor.fetchall()]


def page_of_bars(
    query: RunQuery,
    moment: Moment,
    within: Mapping[str, Any],
    limit: int,
    *,
    by_id: bool = False,
) -> tuple[str, list[Any]]:
    """Return the query of the newest runs that match a query and the conditions of `within`, and
    its values.

    With `by_id`, `within` names the runs: each is looked up, and the index of creation is not used.
    Otherwise that index is read up to the end of a page.
    """
    clauses, values = conditions_of_runs(query)
    sources = sources_of_runs(moment)
    newest_first = "ORDER BY created_position DESC LIMIT %s"
    end, last = ("OFFSET 0", []) if by_id else (newest_first, [limit])
    found = " UNION ALL ".join(
        f"(SELECT {_COLUMNS} FROM {source} AND {' AND '.join((*within, *clauses))} {end})"
        for source, _ in sources
    )
    sql = _BAR.format(
        found=f"SELECT * FROM ({found}) AS found {newest_first}",
        order="ORDER BY one.created_position DESC",
    )
    all_values = [
        value
        for _, source_values in sources
        for value in (*source_values, *within.values(), *values, *last)
    ]
    return sql, [*all_values, limit]


def spawned_bars(
    session_keys: Sequence[str], moment: Moment, limit: int, *, refused: bool = False
) -> tuple[str, list[Any]]:
    """Return the query of the runs that sessions requested, and its values: the refused runs, or
    all others. Each session is looked up separately by the index of requesters."""
    stage = "= 'refused'" if refused else "<> 'refused'"
    sources = sources_of_runs(moment)
    found = " UNION ALL ".join(
        f"SELECT {_COLUMNS} FROM {source} AND requester = t.key AND stage {stage}"
        for source, _ in sources
    )
    sql = (
        "SELECT t.place, found.* FROM unnest(%s::text[]) WITH ORDINALITY AS t (key, place)"
        f" CROSS JOIN LATERAL ({found} ORDER BY created_position LIMIT %s) AS found"
        " ORDER BY t.place, found.created_position LIMIT %s"
    )
    values = [
        list(session_keys),
        *(value for _, source_values in sources for value in source_values),
    ]
    order = "ORDER BY one.place, one.created_position"
    return _BAR.format(found=sql, order=order), [*values, limit, limit]
