"""What of a tree waits for other runs, as it is read under the lock of the log."""

from collections.abc import Collection, Sequence
from typing import Any

from psycopg import AsyncCursor

from application.log.event_log import TreeQuery
from application.projections.fold import FOREVER
from application.projections.run_rows import due
from domain.run.state import Run
from infrastructure.outbound.log.read.state_memory import StateCaches
from infrastructure.outbound.log.schema.connections import LogConnection

ROWS_MAX = 2_000
_KINDS = ("prepare", "wait")
# By what is due alone, in all trees: what was ever in a tree is more with every run, and its index
# would be gone through under the lock. An expression is in none.
WAITING = (
    "SELECT run_id, version, from_position, state FROM runs"
    " WHERE due_kind IN ('prepare', 'wait') AND root || '' = %b"
    f" AND to_position = {FOREVER} LIMIT %b"
)

TreeCursors = dict[TreeQuery, AsyncCursor[Any]]


def may_wait(run: Run, root: str) -> bool:
    """Whether the run is of the tree, and waits or may come to wait for another."""
    is_of_tree = run.requester.root_session_key == root
    return is_of_tree and run.dependencies is not None and due(run)[0] in _KINDS


async def query_waiting_runs(
    connection: LogConnection, queries: Collection[TreeQuery]
) -> TreeCursors:
    """Ask for these trees."""
    return {
        query: await connection.execute(WAITING, [query.root, ROWS_MAX + 1]) for query in queries
    }


async def read_waiting_runs(
    cursors: TreeCursors, remembered: StateCaches
) -> tuple[Sequence[Run], frozenset[TreeQuery]]:
    """What was found, and the trees of which there is more than that."""
    runs: list[Run] = []
    crowded: set[TreeQuery] = set()
    for query, cursor in cursors.items():
        rows = await cursor.fetchall()
        if len(rows) > ROWS_MAX:
            crowded.add(query)
        else:
            runs += remembered.runs.states(rows, Run.model_validate_json)
    return runs, frozenset(crowded)
