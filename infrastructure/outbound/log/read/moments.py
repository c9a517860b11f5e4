"""State at a position inside a transaction, which no row describes: the rows as of the previous
transaction, with the events of this one up to the position folded on top."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import orjson

from application.ports.run_bars import ReachedStage
from application.projections.run_rows import run_row
from domain.run.state import Run
from domain.session.state import Session
from domain.states import States, states
from domain.values.record import CONFIG_STREAM, SESSION_PREFIX, run_stream
from infrastructure.outbound.log.read.commit_ends import CommitEnds
from infrastructure.outbound.log.read.fold_input import (
    EVENT_COLUMNS,
    fold_rows,
    plain_mapper,
    read_stream,
)
from infrastructure.outbound.log.schema.connections import LogConnection

STREAMS_AT_ONCE = 50
"""Number of streams folded without a pause. A transaction usually has a few, but thousands if it
stops a large tree."""

MOMENTS_REMEMBERED_MAX = 8
MOMENT_SECONDS = 5.0
"""How long a moment is cached. One query looks at its moment several times; a rebuild may repair
the rows underneath."""
MOMENT_STATES_MAX = 100

# In this transaction, a session has at most one event per position.
INSIDE = (
    "WITH before AS (SELECT COALESCE((SELECT last_position FROM commits"
    " WHERE last_position <= %(at)s ORDER BY last_position DESC LIMIT 1), 0) AS last_position),"
    " inside AS MATERIALIZED (SELECT stream FROM events"
    " WHERE position > (SELECT last_position FROM before) AND position <= %(at)s),"
    " changed AS MATERIALIZED (SELECT DISTINCT stream FROM inside"
    f" WHERE stream > %(after_cursor)s AND stream <> '{CONFIG_STREAM}'"
    " ORDER BY stream LIMIT %(limit)s)"
    " SELECT before.last_position, (SELECT recorded_at FROM events WHERE position = %(at)s),"
    " changed.stream,"
    " CASE WHEN coalesce(one.version = base.version + 1, true) THEN base.state END, one.*"
    " FROM before LEFT JOIN (changed LEFT JOIN LATERAL (SELECT version FROM sessions"
    f" WHERE starts_with(changed.stream, '{SESSION_PREFIX}')"
    f" AND session_key = substr(changed.stream, {len(SESSION_PREFIX) + 1})"
    " AND from_position <= %(at)s ORDER BY from_position DESC LIMIT 1) AS newest ON true"
    " LEFT JOIN LATERAL (SELECT version, state FROM sessions WHERE newest.version IS NOT NULL"
    f" AND session_key = substr(changed.stream, {len(SESSION_PREFIX) + 1})"
    " AND from_position <= %(at)s AND state IS NOT NULL ORDER BY from_position DESC LIMIT 1)"
    " AS base ON true) ON true"
    f" LEFT JOIN LATERAL (SELECT {EVENT_COLUMNS} FROM events WHERE events.stream = changed.stream"
    " AND version > COALESCE(base.version, 0) AND position <= %(at)s"
    " AND version <= COALESCE(newest.version, 1000000000) + %(at)s - before.last_position"
    " ORDER BY version) AS one ON true ORDER BY changed.stream, one.version"
)
"""Per stream with events in the transaction up to the position: the rows that a fold needs,
preceded by the last position of the previous transaction and the time of the position. If the
position ends a transaction, one row without a stream."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The state at a position: the rows as of `end`, the last position of a transaction, except for
    the given runs and sessions, which have changed since.

    `recorded_at` is the time of the position, or None if it was not read. `stages` are those of the
    runs.
    """

    position: int
    end: int
    runs: Mapping[UUID, Run]
    sessions: Mapping[str, Session]
    recorded_at: datetime | None = None
    stages: Mapping[UUID, Sequence[ReachedStage]] = field(default_factory=dict)

    @property
    def run_rows(self) -> str:
        """Return the rows of this moment's own runs as a JSON array of objects, keyed by column."""
        rows = [
            row._asdict() | {"state": orjson.Fragment(row.state.to_json())}
            for row in map(run_row, self.runs.values())
        ]
        return orjson.dumps(rows).decode()


def moment_at_end(position: int) -> Moment:
    """Return the moment of the last position of a transaction."""
    return Moment(position, position, {}, {})


async def moment_at(connection: LogConnection, position: int) -> Moment:
    """Return the moment of any position."""
    states = States()
    stages: dict[UUID, Sequence[ReachedStage]] = {}
    after_stream = ""
    while True:
        values = {"at": position, "after_cursor": after_stream, "limit": STREAMS_AT_ONCE}
        cursor = await connection.execute(INSIDE, values, binary=True, prepare=True)
        rows = await cursor.fetchall()
        end, recorded_at, last = int(rows[0][0]), rows[0][1], rows[-1][2]
        found = list(fold_rows((row[2:] for row in rows if row[2] is not None), plain_mapper()))
        states.put(stream.last for stream in found)
        stages |= {
            stream.last.run_id: stream.stages for stream in found if isinstance(stream.last, Run)
        }
        if len(found) < STREAMS_AT_ONCE:
            return Moment(position, end, states.runs, states.sessions, recorded_at, stages)
        after_stream = last
        await asyncio.sleep(0)


class Moments:
    """Cache of recent moments, kept for a few seconds, and of positions that end a transaction."""

    def __init__(self) -> None:
        self.ends = CommitEnds()
        self._known: OrderedDict[int, tuple[float, Moment]] = OrderedDict()

    def known(self, position: int) -> Moment | None:
        """Return the moment of a position if no query is needed, otherwise None."""
        if position <= 0 or position in self.ends:
            return moment_at_end(position)
        since, moment = self._known.get(position, (0.0, None))
        if moment is None or time.monotonic() - since > MOMENT_SECONDS:
            return None
        return moment

    async def find(self, connection: LogConnection, position: int) -> Moment:
        """Return the moment of any position, from the cache or the log."""
        found = self.known(position)
        if found is not None:
            return found
        ends, known = self.ends, self._known
        moment = await moment_at(connection, position)
        if moment.end == position:
            ends.note(position, moment.recorded_at)
        elif 0 < len(moment.runs) + len(moment.sessions) <= MOMENT_STATES_MAX:
            known[position] = time.monotonic(), moment
            known.move_to_end(position)
            if len(known) > MOMENTS_REMEMBERED_MAX:
                known.popitem(last=False)
        return moment

    def recorded_at(self, position: int) -> datetime | None:
        """Return the time when a position was recorded, or None if it is not cached."""
        _, moment = self._known.get(position, (0.0, None))
        return moment.recorded_at if moment is not None else self.ends.recorded_at(position)

    def stages(self, run_id: UUID, version: int) -> Sequence[ReachedStage] | None:
        """Return the stages of a run that a cached moment holds at this version, otherwise None."""
        for _, moment in self._known.values():
            run = moment.runs.get(run_id)
            if run is not None and run.version == version:
                return moment.stages.get(run_id)
        return None

    def __len__(self) -> int:
        return len(self._known)

    def forget(self) -> None:
        """Empty the cache. Reads in progress store their results into the discarded objects."""
        self.ends = CommitEnds()
        self._known = OrderedDict()


async def run_at_version(connection: LogConnection, run_id: UUID, version: int) -> Run | None:
    """Return a run after its first `version` events, or None if it has fewer."""
    run: Run | None = None
    for step in states(
        await read_stream(connection, plain_mapper(), run_stream(run_id), until=version)
    ):
        run = step.run
    return run if run is not None and run.version == version else None
