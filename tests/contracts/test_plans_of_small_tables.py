"""Plans that were made while the tables were empty, and are kept while they grow."""

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from application.projections.run_rows import RUNS
from application.projections.session_rows import SESSIONS
from infrastructure.outbound.log.append.load import (
    LANE_NEXT,
    LAST_ENTRIES,
    LOCK_TRANSCRIPTS,
    STATES,
)
from infrastructure.outbound.log.append.store import ANSWER_IDEMPOTENCY, close_rows
from infrastructure.outbound.log.read.moments import Moment, moment_at_end
from infrastructure.outbound.log.schema.connections import (
    PLANNING,
    WRITER_PLANNING,
    LogConnection,
)
from infrastructure.outbound.read_model.coordination import FORGET_HOLDER
from infrastructure.outbound.read_model.registry import (
    WAITING_LANES,
    descendants_sql,
    descendants_values,
)
from infrastructure.outbound.read_model.states import OPEN_RUNS, OPEN_SESSIONS, RUNS_AS_OF
from infrastructure.outbound.transcripts.rows import WRITTEN_BEHIND
from tests.support.builders.family_log import FamilyLog

ROWS = 3_000
BUFFERS_MAX = 30
RUN = UUID("c4ca4238-a0b9-2382-0dcc-509a6f75849b")  # the md5 of "1"
LONG = UUID(int=1)
"""A run that has said a lot."""

NO_KEYS: Sequence[list[str]] = ([], [], [], [])

QUESTIONS: dict[str, tuple[str, Sequence[Any]]] = {
    "open runs": (OPEN_RUNS, [[RUN], [0], [0], 0]),
    "runs as of": (RUNS_AS_OF, [[RUN], [9], [0], [0], 0]),
    "open sessions": (OPEN_SESSIONS, [["agent:main:s1"], [0], [0], 0]),
    "states of a batch": (STATES, [*NO_KEYS, [RUN], [0], [0], 0, ["agent:main:s1"], [0], [0], 0]),
    "runs closed": (close_rows(RUNS), [[RUN], [9], [False]]),
    "sessions closed": (close_rows(SESSIONS), [["agent:main:s1"], [9], [False]]),
    "waiting lanes": (WAITING_LANES, [1, 1]),
    "next in a lane": (LANE_NEXT, ["subagent", 1, 1]),
    "transcripts locked": (LOCK_TRANSCRIPTS, [[RUN]]),
    "last entries": (LAST_ENTRIES, [[RUN]]),
    "entries written since": (WRITTEN_BEHIND, [ROWS - 5, LONG, ROWS - 5]),
    "a lease forgotten": (FORGET_HOLDER, ["external:one:1"]),
    "keys reserved": (
        STATES,
        [["me"], ["POST"], ["/v1/spawns"], ["1"], [], [], [], 0, [], [], [], 0],
    ),
    "an answer filled in": (ANSWER_IDEMPOTENCY, [[RUN], ["accepted"], ["{}"]]),
}


@pytest.mark.server
@pytest.mark.parametrize("name", QUESTIONS)
async def test_a_look_up_costs_no_more_in_a_table_that_has_grown(
    connection: LogConnection, name: str
) -> None:
    sql, values = QUESTIONS[name]
    await connection.execute(WRITER_PLANNING)
    for number in range(1, len(values) + 1):
        sql = re.sub("%[bs]", f"${number}", sql, count=1)
    await connection.execute(f"PREPARE question AS {sql}")
    given = ", ".join(_literal(value) for value in values)
    await connection.execute(f"EXECUTE question({given})")
    await _fill(connection)
    explained = await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) EXECUTE question({given})")
    plan = "\n".join(row[0] for row in await explained.fetchall())
    touched = [int(hit) for hit in re.findall(r"Buffers: shared hit=(\d+)", plan)]
    assert 0 < max(touched) < BUFFERS_MAX, plan


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "'{" + ",".join(f'"{one}"' for one in value) + "}'"
    return f"'{value}'" if isinstance(value, str | UUID) else str(value)


async def _fill(connection: LogConnection) -> None:
    """Many that wait in one lane behind one that is held, and as many sessions; not analysed."""
    await connection.execute(
        "INSERT INTO runs (run_id, version, created_position, created_at, from_position,"
        " to_position, stage, session_id, requester, root, lane, lane_depth, queued_position,"
        " holder, epoch, state)"
        " SELECT md5(n::text)::uuid, 1, n, now(), n, 4611686018427387904, 'queued',"
        " md5(n::text)::uuid, 'agent:main:r', 'agent:main:r', 'subagent', 1, n,"
        " CASE WHEN n = 1 THEN 'somebody' END, 1, '{}' FROM generate_series(1, %s) AS n",
        [ROWS],
    )
    await connection.execute(
        "INSERT INTO idempotency (token, method, path, key, fingerprint, run_id, created_at)"
        " SELECT 'me', 'POST', '/v1/spawns', n::text, '', md5(n::text)::uuid, now()"
        " FROM generate_series(1, %s) AS n",
        [ROWS],
    )
    await connection.execute(
        "INSERT INTO transcript_entries (run_id, sequence, recorded_at, kind, body)"
        " SELECT md5(n::text)::uuid, one, now(), 'said', '{}'"
        " FROM generate_series(1, %s) AS n, generate_series(1, 3) AS one",
        [ROWS],
    )
    await connection.execute(
        "INSERT INTO transcript_entries (run_id, sequence, recorded_at, kind, body)"
        " SELECT %s, n, now(), 'said', repeat('x', 100) FROM generate_series(1, %s) AS n",
        [LONG, ROWS],
    )
    await connection.execute(
        "INSERT INTO holders SELECT 'external:one:' || n, NULL, now()"
        " FROM generate_series(1, %s) AS n",
        [ROWS],
    )
    await connection.execute(
        "INSERT INTO sessions (session_key, version, created_position, created_at,"
        " from_position, to_position, session_id, root, state)"
        " SELECT 'agent:main:s' || n, 1, n, now(), n, 4611686018427387904, md5(n::text)::uuid,"
        " 'agent:main:r', '{}' FROM generate_series(1, %s) AS n",
        [ROWS],
    )


@pytest.mark.server
def _inside() -> Moment:
    """Of a transaction that has begun another run by then."""
    family = FamilyLog()
    family.begin("scout")
    return Moment(ROWS + 3, ROWS, family.fold.runs, {})


@pytest.mark.parametrize("moment", [None, moment_at_end(ROWS), _inside()])
async def test_what_is_below_a_session_that_was_refused_very_often_is_found_by_its_key(
    connection: LogConnection, moment: Moment | None
) -> None:
    """Most rows are of one session, so a walk through all of them seems as good as a look-up."""
    await connection.execute(PLANNING)
    await connection.execute(
        "INSERT INTO runs (run_id, version, created_position, created_at, from_position,"
        " to_position, stage, session_id, requester, root, child_session_key, epoch, state)"
        " SELECT md5(n::text)::uuid, 1, n, now(), n, 4611686018427387904,"
        " CASE WHEN n %% 100 = 0 THEN 'ended' ELSE 'refused' END, md5(n::text)::uuid,"
        " 'agent:main:r', 'agent:main:r', CASE WHEN n %% 100 = 0 THEN 'agent:main:c' || n END, 1,"
        " '{}' FROM generate_series(1, %s) AS n",
        [ROWS],
    )
    await connection.execute("ANALYZE runs")
    explained = await connection.execute(
        f"EXPLAIN (ANALYZE) {descendants_sql('stage', moment)} SELECT count(*) FROM below",
        descendants_values("agent:main:r", moment),
    )
    plan = "\n".join(row[0] for row in await explained.fetchall())
    assert "runs_of_a_requester" in plan
    assert not re.search("runs_as_of|Join Filter|Seq Scan", plan), plan
    assert re.search(rf"CTE Scan on below .*rows={ROWS // 100}\b", plan), plan
