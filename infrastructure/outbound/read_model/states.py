"""Batched reads of run and session states; a cached state is not sent again."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from application.projections.fold import FOREVER
from domain.run.state import Run
from infrastructure.outbound.log.read.past_runs import PastRun, PastRuns
from infrastructure.outbound.log.read.state_cache import (
    K,
    Read,
    S,
    StateCache,
    StoredState,
    marks_of,
    stored_state_columns,
)
from infrastructure.outbound.log.schema.connections import LogConnection

# Each key is looked up separately, newest row first. PostgreSQL keeps the plan that it made while
# the tables were small, when scanning an index of all open rows cost no more than finding one. This
# order leaves it only the key's own index.
_NEWEST = "ORDER BY from_position DESC LIMIT 1"


def _open_states_query(table: str, key: str, key_type: str) -> str:
    return (
        "SELECT t.key, one.* FROM"
        f" unnest(%b::{key_type}[], %b::int[], %b::bigint[]) AS t (key, known, since)"
        f" CROSS JOIN LATERAL (SELECT {stored_state_columns(table)} FROM {table}"
        f" WHERE {table}.{key} = t.key AND to_position = {FOREVER} {_NEWEST}) AS one"
    )


OPEN_RUNS = _open_states_query("runs", "run_id", "uuid")
OPEN_SESSIONS = _open_states_query("sessions", "session_key", "text")
RUNS_AS_OF = (
    "SELECT t.run_id, t.at, one.* FROM"
    " unnest(%b::uuid[], %b::bigint[], %b::int[], %b::bigint[]) AS t (run_id, at, known, since)"
    f" CROSS JOIN LATERAL (SELECT version, {stored_state_columns('runs')} FROM runs WHERE "
    "runs.run_id = t.run_id"
    f" AND from_position <= t.at AND to_position > t.at {_NEWEST}) AS one"
)


async def open_states(
    query: str,
    read: Read[S],
    memory: StateCache[K, S],
    connection: LogConnection,
    keys: Sequence[K],
) -> Mapping[K, S]:
    """Return the current states, with the query `OPEN_RUNS` or `OPEN_SESSIONS`."""
    known = memory.known(keys)
    cursor = await connection.execute(query, [list(keys), *marks_of(keys, known), memory.table])
    return {
        key: memory.found(key, StoredState(*row), known, read)
        for key, *row in await cursor.fetchall()
    }


async def runs_as_of(
    memory: StateCache[UUID, Run],
    past: PastRuns,
    connection: LogConnection,
    queries: Sequence[tuple[UUID, int]],
) -> Mapping[tuple[UUID, int], Run]:
    """Return the states of runs, each as of a position: from rows that are still current, from
    memory, or folded."""
    run_ids = [run_id for run_id, _ in queries]
    known = memory.known(run_ids)
    cursor = await connection.execute(
        RUNS_AS_OF,
        [run_ids, [at for _, at in queries], *marks_of(run_ids, known), memory.table],
    )
    found: dict[tuple[UUID, int], Run] = {}
    ended: list[PastRun] = []
    for run_id, at, version, table, since, state in await cursor.fetchall():
        if state is not None:
            found[run_id, at] = Run.from_json(state)
        elif run_id in known and table == memory.table and known[run_id][0] == (version, since):
            found[run_id, at] = known[run_id][1]
        else:
            ended.append(PastRun(run_id, at, version))
    return found | await past.find(connection, ended)
