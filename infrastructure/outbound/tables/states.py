"""States of many runs and sessions with one question each; what is remembered is not sent again."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from application.projections.fold import FOREVER
from domain.run.state import Run
from domain.session.state import Session
from infrastructure.outbound.log.connections import Connection
from infrastructure.outbound.log.state_memory import StateMemory, Stored, marks_of, stored

_OPEN_RUNS = (
    f"SELECT run_id, {stored('runs')} FROM runs"
    " JOIN unnest(%b::uuid[], %b::int[], %b::bigint[]) AS t (run_id, known, since) USING (run_id)"
    f" WHERE to_position = {FOREVER}"
)
_RUNS_AS_OF = (
    f"SELECT t.run_id, t.at, {stored('runs')} FROM"
    " unnest(%b::uuid[], %b::bigint[], %b::int[], %b::bigint[]) AS t (run_id, at, known, since)"
    " JOIN runs ON runs.run_id = t.run_id AND from_position <= t.at AND to_position > t.at"
)
_OPEN_SESSIONS = (
    f"SELECT session_key, {stored('sessions')} FROM sessions"
    " JOIN unnest(%b::text[], %b::int[], %b::bigint[]) AS t (session_key, known, since)"
    " USING (session_key)"
    f" WHERE to_position = {FOREVER}"
)


async def open_runs(
    memory: StateMemory[UUID, Run], connection: Connection, run_ids: Sequence[UUID]
) -> Mapping[UUID, Run]:
    """The newest states."""
    known = memory.known(run_ids)
    cursor = await connection.execute(
        _OPEN_RUNS, [memory.table, list(run_ids), *marks_of(run_ids, known)]
    )
    return {
        run_id: memory.found(run_id, Stored(*row), known, Run.model_validate_json)
        for run_id, *row in await cursor.fetchall()
    }


async def runs_as_of(
    memory: StateMemory[UUID, Run], connection: Connection, asked: Sequence[tuple[UUID, int]]
) -> Mapping[tuple[UUID, int], Run]:
    """The states as of a position each."""
    run_ids = [run_id for run_id, _ in asked]
    known = memory.known(run_ids)
    cursor = await connection.execute(
        _RUNS_AS_OF,
        [memory.table, run_ids, [at for _, at in asked], *marks_of(run_ids, known)],
    )
    return {
        (run_id, at): known[run_id][1] if state is None else Run.model_validate_json(state)
        for run_id, at, _, _, state in await cursor.fetchall()
    }


async def open_sessions(
    memory: StateMemory[str, Session], connection: Connection, keys: Sequence[str]
) -> Mapping[str, Session]:
    """The newest states."""
    known = memory.known(keys)
    cursor = await connection.execute(
        _OPEN_SESSIONS, [memory.table, list(keys), *marks_of(keys, known)]
    )
    return {
        key: memory.found(key, Stored(*row), known, Session.model_validate_json)
        for key, *row in await cursor.fetchall()
    }
