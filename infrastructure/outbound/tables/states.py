"""States of many runs and sessions with one question each; what is remembered is not sent again."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from application.projections.fold import FOREVER
from domain.run.state import Run
from domain.session.state import Session
from infrastructure.outbound.log.connections import Connection
from infrastructure.outbound.log.state_memory import StateMemory, versions_of

_OPEN_RUNS = (
    "SELECT run_id, CASE WHEN version = known THEN NULL ELSE state END"
    " FROM runs JOIN unnest(%s::uuid[], %s::int[]) AS t (run_id, known) USING (run_id)"
    f" WHERE to_position = {FOREVER}"
)
_RUNS_AS_OF = (
    "SELECT t.run_id, t.at, CASE WHEN version = known THEN NULL ELSE state END"
    " FROM unnest(%s::uuid[], %s::bigint[], %s::int[]) AS t (run_id, at, known)"
    " JOIN runs ON runs.run_id = t.run_id AND from_position <= t.at AND to_position > t.at"
)
_OPEN_SESSIONS = (
    "SELECT session_key, CASE WHEN version = known THEN NULL ELSE state END FROM sessions"
    " JOIN unnest(%s::text[], %s::int[]) AS t (session_key, known) USING (session_key)"
    f" WHERE to_position = {FOREVER}"
)


async def open_runs(
    memory: StateMemory[UUID, Run], connection: Connection, run_ids: Sequence[UUID]
) -> Mapping[UUID, Run]:
    """The newest states."""
    known = memory.known(run_ids)
    cursor = await connection.execute(_OPEN_RUNS, [run_ids, versions_of(run_ids, known)])
    return {
        run_id: known[run_id] if state is None else _kept(memory, state)
        for run_id, state in await cursor.fetchall()
    }


async def runs_as_of(
    memory: StateMemory[UUID, Run], connection: Connection, asked: Sequence[tuple[UUID, int]]
) -> Mapping[tuple[UUID, int], Run]:
    """The states as of a position each."""
    run_ids = [run_id for run_id, _ in asked]
    known = memory.known(run_ids)
    cursor = await connection.execute(
        _RUNS_AS_OF, [run_ids, [at for _, at in asked], versions_of(run_ids, known)]
    )
    return {
        (run_id, at): known[run_id] if state is None else Run.model_validate_json(state)
        for run_id, at, state in await cursor.fetchall()
    }


async def open_sessions(
    memory: StateMemory[str, Session], connection: Connection, keys: Sequence[str]
) -> Mapping[str, Session]:
    """The newest states."""
    known = memory.known(keys)
    cursor = await connection.execute(_OPEN_SESSIONS, [keys, versions_of(keys, known)])
    return {
        key: known[key] if state is None else Session.model_validate_json(state)
        for key, state in await cursor.fetchall()
    }


def _kept(memory: StateMemory[UUID, Run], state: str) -> Run:
    run = Run.model_validate_json(state)
    memory.keep(run.run_id, run)
    return run
