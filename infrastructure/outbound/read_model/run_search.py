"""Search in the rows of runs and the texts of their tasks and errors."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from psycopg_pool import AsyncConnectionPool

from application.ports.registry import RunCondition, RunQuery
from application.ports.run_search import (
    ERROR_CHARACTERS_READ_MAX,
    TEXT_CHARACTERS_SEARCHED_MAX,
    CountedRuns,
    FoundErrors,
    FoundRuns,
    RunCount,
    RunError,
    RunWords,
    ScanWindow,
)
from application.projections.fold import FOREVER
from application.projections.run_rows import COLUMNS_BY_CREATION, RunRow
from domain.run.lifecycle import OVER
from domain.run.state import Run
from infrastructure.outbound.log.read.moments import Moment
from infrastructure.outbound.log.read.past_runs import PastRun
from infrastructure.outbound.log.read.state_cache import StateCaches
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection
from infrastructure.outbound.read_model.contents import PREVIEW
from infrastructure.outbound.read_model.registry import (
    OuterColumn,
    conditions_of_runs,
    page_of_runs,
)

_COLUMNS = (
    "run_id, version, created_position, created_at, stage, outcome, due_kind, agent_id, label,"
    " depth, rule, requester"
)
_LOOKED_AT = (
    "WITH examined AS MATERIALIZED ({page}),"
    " last AS MATERIALIZED (SELECT count(*) AS examined, {farthest}(created_position) AS position"
    " FROM examined)"
)
# A row that has ended holds no state. The task of a run never changes, nor the text of a refusal or
# an error once it is over, so its last row has them too.
_TEXTS = (
    " CROSS JOIN LATERAL (SELECT concat_ws(E'\\n', newest.label, examined.rule,"
    " (SELECT {text} FROM contents WHERE content_id = (facts.task ->> 'id')::uuid),"
    f" CASE WHEN examined.stage = ANY('{{{{{','.join(sorted(OVER))}}}}}') THEN"
    " (SELECT {text} FROM contents WHERE content_id"
    " = (coalesce(facts.refusal -> 'text', facts.error) ->> 'id')::uuid) END) AS text"
    " FROM runs AS newest,"
    " json_to_record(newest.state::json) AS facts (task json, error json, refusal json)"
    " WHERE newest.run_id = examined.run_id"
    f" AND newest.to_position = {FOREVER} ORDER BY newest.from_position DESC LIMIT 1) AS told"
)
# RunEnded sets the error and the time, and nothing changes them.
_ERROR = (
    " CROSS JOIN LATERAL (SELECT (SELECT {text} FROM contents"
    " WHERE content_id = (newest.state::json -> 'error' ->> 'id')::uuid) AS text,"
    " (newest.state::json ->> 'endedAt')::timestamptz AS ended_at"
    " FROM runs AS newest WHERE newest.run_id = examined.run_id"
    f" AND newest.to_position = {FOREVER} ORDER BY newest.from_position DESC LIMIT 1) AS failed"
)
_END_OF_ERROR = f"right(rtrim(body, E' \\n\\r\\t'), {ERROR_CHARACTERS_READ_MAX})"
# RunEnded sets the usage, and nothing changes it. So the last row of a run has it for each position
# at which the run had ended. OFFSET 0 makes the planner read each state once.
_USAGE = (
    " CROSS JOIN LATERAL (SELECT CASE WHEN stage IN ('ended', 'announced', 'archived') THEN"
    " (SELECT newest.state::json -> 'usage' FROM runs AS newest"
    f" WHERE newest.run_id = examined.run_id AND newest.to_position = {FOREVER}"
    " ORDER BY newest.from_position DESC LIMIT 1) END AS usage OFFSET 0) AS used"
)
# The models of a run are one text, because few runs of a count differ in it.
_PRICED = (
    " CROSS JOIN LATERAL (SELECT sum((model ->> 'costUsd')::numeric) AS cost,"
    " json_agg(json_build_array(coalesce(model ->> 'model', ''), model ->> 'costUsd' IS NULL))"
    ' ::text COLLATE "C" AS models'
    " FROM json_array_elements(used.usage -> 'models') AS model) AS priced"
)
_ASKED_ROOT = OuterColumn("asked.root")
_OF_EACH_ROOT = (
    "SELECT asked.place, of_root.* FROM unnest(%s::text[]) WITH ORDINALITY AS asked (root, place)"
    " CROSS JOIN LATERAL ({counts}) AS of_root"
)
_TOKENS = "coalesce(sum((used.usage ->> '{kind}')::bigint), 0)::bigint"
_WHOLE_TEXT = f"left(body, {TEXT_CHARACTERS_SEARCHED_MAX})"
_HAS_WORD = "strpos(lower(told.text), lower(%s)) > 0"


class PostgresRunSearch:
    """Run search in PostgreSQL; implements `RunSearch`."""

    def __init__(
        self, pool: AsyncConnectionPool[LogConnection], remembered: StateCaches | None = None
    ) -> None:
        self._pool = pool
        remembered = remembered or StateCaches()
        self._moments, self._past = remembered.moments, remembered.past_runs

    async def find(
        self, query: RunQuery, words: RunWords | None, examined: ScanWindow, *, limit: int
    ) -> FoundRuns:
        """Return the first runs that match the query and the words."""
        async with borrow_connection(self._pool) as connection:
            moment = await self._moments.find(connection, examined.at)
            sql, values = found_sql(query, words, moment, examined, limit)
            rows = await (await connection.execute(sql, values)).fetchall()
            found = [row[2:] for row in rows if row[2] is not None]
            ended = [PastRun(row[0], moment.end, row[1]) for row in found if row[2] is None]
            folded = await self._past.find(connection, ended)
        runs = [
            folded[run_id, moment.end] if state is None else Run.from_json(state)
            for run_id, _, state in found
        ]
        if len(runs) == limit:
            return FoundRuns(runs, runs[-1].created_position)
        return FoundRuns(runs, _continuation(rows, examined))

    async def errors(
        self, query: RunQuery, words: RunWords | None, examined: ScanWindow, *, whole: bool
    ) -> FoundErrors:
        """Return the errors of the runs that match the query and the words."""
        async with borrow_connection(self._pool) as connection:
            moment = await self._moments.find(connection, examined.at)
            sql, values = errors_sql(query, words, moment, examined, whole=whole)
            rows = await (await connection.execute(sql, values)).fetchall()
        errors = [RunError(*row[2:]) for row in rows if row[2] is not None]
        return FoundErrors(errors, _continuation(rows, examined))

    async def count(
        self,
        query: RunQuery,
        words: RunWords | None,
        examined: ScanWindow,
        *,
        by_requester: bool,
        own: UUID | None = None,
    ) -> CountedRuns:
        """Return the number of runs of each kind."""
        async with borrow_connection(self._pool) as connection:
            moment = await self._moments.find(connection, examined.at)
            sql, values = counts_sql(
                query, words, moment, examined, by_requester=by_requester, own=own
            )
            rows = await (await connection.execute(sql, values)).fetchall()
        return _counted(rows, examined)

    async def count_trees(
        self,
        query: RunQuery,
        roots: Sequence[str],
        examined: ScanWindow,
        *,
        by_requester: bool,
        own: UUID | None = None,
    ) -> Sequence[CountedRuns]:
        """Return the number of runs of each kind in each tree."""
        async with borrow_connection(self._pool) as connection:
            moment = await self._moments.find(connection, examined.at)
            of_tree = RunQuery((*query.conditions, RunCondition("root", "=", _ASKED_ROOT)))
            sql, values = counts_sql(
                of_tree, None, moment, examined, by_requester=by_requester, own=own
            )
            rows = await (
                await connection.execute(_OF_EACH_ROOT.format(counts=sql), [list(roots), *values])
            ).fetchall()
        by_root: list[list[Sequence[Any]]] = [[] for _ in roots]
        for place, *row in rows:
            by_root[place - 1].append(row)
        return [_counted(of_root, examined) for of_root in by_root]


def _counted(rows: Sequence[Sequence[Any]], examined: ScanWindow) -> CountedRuns:
    counts = [_count(*row[2:-1], models=row[-1]) for row in rows if row[2] is not None]
    return CountedRuns(counts, _continuation(rows, examined))


def _count(*fields: Any, models: Sequence[str] | None) -> RunCount:
    """Return a count. Each text of `models` is a list of names, and whether each has no price."""
    used = [model for text in models or () for model in orjson.loads(text)]
    return RunCount(*fields)._replace(
        models=frozenset(name for name, _ in used),
        unpriced_models=frozenset(name for name, is_unpriced in used if is_unpriced),
    )


def _continuation(rows: Sequence[Sequence[Any]], examined: ScanWindow) -> int | None:
    count, position = rows[0][:2]
    return int(position) if count == examined.runs_max else None


def found_sql(
    query: RunQuery, words: RunWords | None, moment: Moment, examined: ScanWindow, limit: int
) -> tuple[str, list[Any]]:
    """Return the query of the first matching runs, and its values.

    Its rows have the number of examined runs, the position of the last one, and a run's id, version
    and state. If none matched, there is one row without an id.
    """
    looked_at, fitting = _parts(query, words, moment, examined, f"{_COLUMNS}, state")
    order = f"ORDER BY created_position {'ASC' if examined.ascending else 'DESC'}"
    sql = (
        f"{looked_at[0]} SELECT last.*, found.run_id, found.version, found.state FROM last"
        f" LEFT JOIN (SELECT examined.* FROM {fitting[0]} {order} LIMIT %s) AS found ON true"
        f" {order}"
    )
    return sql, [*looked_at[1], *fitting[1], limit]


def errors_sql(
    query: RunQuery,
    words: RunWords | None,
    moment: Moment,
    examined: ScanWindow,
    *,
    whole: bool,
) -> tuple[str, list[Any]]:
    """Return the query of the errors of matching runs, and its values.

    Its rows have the number of examined runs, the position of the last one, and the fields of
    `RunError`. If no run matches, there is one row without them.
    """
    beside = _ERROR.format(text=_END_OF_ERROR if whole else PREVIEW)
    looked_at, fitting = _parts(query, words, moment, examined, beside=beside)
    order = f"ORDER BY created_position {'ASC' if examined.ascending else 'DESC'}"
    sql = (
        f"{looked_at[0]} SELECT last.*, found.* FROM last LEFT JOIN (SELECT run_id,"
        " created_position, requester, agent_id, outcome, failed.text, failed.ended_at"
        f" FROM {fitting[0]}) AS found ON true {order}"
    )
    return sql, [*looked_at[1], *fitting[1]]


def counts_sql(
    query: RunQuery,
    words: RunWords | None,
    moment: Moment,
    examined: ScanWindow,
    *,
    by_requester: bool,
    own: UUID | None = None,
) -> tuple[str, list[Any]]:
    """Return the query that counts runs, and its values.

    Its rows have the number of examined runs, the position of the last one, and the fields of
    `RunCount`. If there are no runs, there is one row without a count.
    """
    looked_at, fitting = _parts(query, words, moment, examined, beside=_USAGE + _PRICED)
    requester = "requester" if by_requester else "NULL"
    tokens = (_TOKENS.format(kind=kind) for kind in ("inputTokens", "outputTokens"))
    sql = (
        f"{looked_at[0]} SELECT last.*, counted.* FROM last LEFT JOIN (SELECT count(*), stage,"
        " outcome, due_kind IS NOT DISTINCT FROM 'wait', agent_id, rule,"
        f" CASE WHEN run_id = %s::uuid THEN NULL ELSE {requester} END,"
        f" (created_at AT TIME ZONE 'UTC')::date, {', '.join(tokens)}, sum(priced.cost),"
        " array_agg(DISTINCT priced.models) FILTER (WHERE priced.models IS NOT NULL)"
        f" FROM {fitting[0]} GROUP BY 2, 3, 4, 5, 6, 7, 8) AS counted ON true"
    )
    return sql, [*looked_at[1], own, *fitting[1]]


def _parts(
    query: RunQuery,
    words: RunWords | None,
    moment: Moment,
    examined: ScanWindow,
    columns: str = _COLUMNS,
    beside: str = "",
) -> tuple[tuple[str, list[Any]], tuple[str, list[Any]]]:
    """Return the query of the examined runs, which uses an index, and the filter on them, each with
    its values. The filtered runs are joined with `beside`."""
    indexed, rest = query.split(COLUMNS_BY_CREATION)
    compared = {condition.column for condition in rest.conditions}.difference(columns.split(", "))
    columns = ", ".join([columns, *(name for name in RunRow._fields if name in compared)])
    page, values = page_of_runs(
        indexed,
        moment,
        examined.runs_max,
        examined.after_cursor,
        ascending=examined.ascending,
        columns=columns,
    )
    clauses, rest_values = conditions_of_runs(rest)
    fitting = f"examined{beside}"
    if words is not None:
        fitting += _TEXTS.format(text=_WHOLE_TEXT if words.in_whole_texts else PREVIEW)
        clauses = [*clauses, *(_HAS_WORD for _ in words.words)]
        rest_values = [*rest_values, *words.words]
    if clauses:
        fitting = f"{fitting} WHERE {' AND '.join(clauses)}"
    farthest = "max" if examined.ascending else "min"
    return (_LOOKED_AT.format(page=page, farthest=farthest), values), (fitting, rest_values)
