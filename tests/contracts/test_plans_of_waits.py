"""What runs that wait cost, with very many of them in one tree: they are found along indexes."""

import re
from typing import Any

import pytest

from infrastructure.outbound.log.append.load import ROWS_MAX, WAITING
from infrastructure.outbound.log.schema.connections import PLANNING, LogConnection
from infrastructure.outbound.read_model.coordination import CLAIM_WAITS

RUNS, WAITS = 10_000, 1_000
TREE = "agent:main:r"
STATE_BYTES = 3_000

# The first ones wait, each for the run that is as far behind all of those.
_FILL = (
    "INSERT INTO runs (run_id, version, created_position, created_at, from_position, to_position,"
    " stage, session_id, requester, root, epoch, due_kind, due_at, state)"
    " SELECT md5(n::text)::uuid, 1, n, now(), n, 4611686018427387904,"
    f" CASE WHEN n <= {WAITS} THEN 'session-created' ELSE 'started' END, md5(n::text)::uuid,"
    f" '{TREE}', '{TREE}', 1, CASE WHEN n <= {WAITS} THEN 'wait' ELSE 'run' END, now(),"
    f" json_build_object('waitsFor', json_build_array(md5((n + {WAITS})::text)::uuid),"
    f" 'more', repeat('x', {STATE_BYTES}))"
    f" FROM generate_series(1, {RUNS}) AS n"
)
_DONE = "UPDATE runs SET stage = 'announced', due_kind = NULL WHERE run_id = md5(%s)::uuid"
_CLAIM = {"holder": "server-1", "seconds": 60, "kind": "wait", "limit": 50}


async def explained(connection: LogConnection, sql: str, values: Any) -> str:
    """The plan, with what came of it."""
    rows = await (await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", values)).fetchall()
    return "\n".join(row[0] for row in rows)


@pytest.mark.server
@pytest.mark.parametrize("done", [0, 3])
async def test_a_look_at_a_thousand_that_wait_goes_along_indexes(
    connection: LogConnection, done: int
) -> None:
    await connection.execute(PLANNING)
    await connection.execute(_FILL)
    for number in range(1, done + 1):
        await connection.execute(_DONE, [str(WAITS + number)])
    plan = await explained(connection, CLAIM_WAITS, _CLAIM)
    assert "runs_due" in plan
    assert "runs_pkey" in plan
    assert not re.search("Seq Scan on runs|Rows Removed by Join Filter", plan), plan
    assert re.search(rf"Tuples Inserted: {done}\b", plan), plan


@pytest.mark.server
async def test_what_waits_in_a_tree_is_read_without_its_other_runs(
    connection: LogConnection,
) -> None:
    await connection.execute(PLANNING)
    await connection.execute(_FILL)
    plan = await explained(connection, WAITING.replace("%b", "%s"), [TREE, ROWS_MAX + 1])
    assert "runs_due" in plan
    # All that was ever in the tree is more with every run.
    assert not re.search("Seq Scan|runs_of_a_tree", plan), plan
    assert re.search(rf"^Limit .*rows={WAITS}\b", plan), plan
