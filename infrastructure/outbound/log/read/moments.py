"""How things were at a position inside of a transaction, of which no row tells: the rows as of the
transaction before, and the events of this one up to there folded onto them."""

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
"""So many are folded without a pause. A transaction has a few, but thousands when it stops a large
tree."""

MOMENTS_REMEMBERED_MAX = 8
MOMENT_SECONDS = 5.0
"""One question looks at its moment several times; a rebuild may mend the rows behind it."""
MOMENT_STATES_MAX = 100

# A session has no more events in the transaction up to there than there are positions.
INSIDE = (
    "WITH before AS (SELECT COALESCE((SELECT last_position FROM commits"
    " WHERE last_position <= %(at)s ORDER BY last_position DESC LIMIT 1), 0) AS last_position),"
    " inside AS MATERIALIZED (SELECT stream FROM events"
    " WHERE position > (SELECT last_position FROM before) AND position <= %(at)s),"
    " changed AS MATERIALIZED (SELECT DISTINCT stream FROM inside"
    f" WHERE stream > %(behind)s AND stream <> '{CONFIG_STREAM}' ORDER BY stream LIMIT %(limit)s)"
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
"""The last position of the transaction before, when the position was recorded, and of each stream
that has events behind the one and not behind the other what a fold needs: no stream, where the
position is an end itself."""


@dataclass(frozen=True, slots=True)
class Moment:
    """How things were at a position: as the rows say as of `end`, the last position of a
    transaction, but for these runs and sessions, which have changed since. `recorded_at` is when
    the position was recorded, None when that was not read; `stages` are those of the runs."""

    position: int
    end: int
    runs: Mapping[UUID, Run]
    sessions: Mapping[str, Session]
    recorded_at: datetime | None = None
    stages: Mapping[UUID, Sequence[ReachedStage]] = field(default_factory=dict)

    @property
    def run_rows(self) -> str:
        """The rows of its own runs as JSON, an array of objects with the columns as keys."""
        rows = [
            row._asdict() | {"state": orjson.Fragment(row.state.to_json())}
            for row in map(run_row, self.runs.values())
        ]
        return orjson.dumps(rows).decode()


def moment_at_end(position: int) -> Moment:
    """That of the last position of a transaction."""
    return Moment(position, position, {}, {})


async def moment_at(connection: LogConnection, position: int) -> Moment:
    """That of any position."""
    states = States()
    stages: dict[UUID, Sequence[ReachedStage]] = {}
    behind = ""
    while True:
        values = {"at": position, "behind": behind, "limit": STREAMS_AT_ONCE}
        cursor = await connection.execute(INSIDE, values, binary=True, prepare=True)
        rows = await cursor.fetchall()
        end, recorded_at, last = int(rows[0][0]), rows[0][1], rows[-1][2]
        found = list(fold_rows((row[2:] for row in rows if row[2] is not None), plain_mapper()))
        states.put(one.last for one in found)
        stages |= {one.last.run_id: one.stages for one in found if isinstance(one.last, Run)}
        if len(found) < STREAMS_AT_ONCE:
            return Moment(position, end, states.runs, states.sessions, recorded_at, stages)
        behind = last
        await asyncio.sleep(0)


class Moments:
    """The moments that were asked for last, for a few seconds, and which positions are ends."""

    def __init__(self) -> None:
        self.ends = CommitEnds()
        self._known: OrderedDict[int, tuple[float, Moment]] = OrderedDict()

    def known(self, position: int) -> Moment | None:
        """That of a position, when no look at the log is needed."""
        if position <= 0 or position in self.ends:
            return moment_at_end(position)
        since, moment = self._known.get(position, (0.0, None))
        if moment is None or time.monotonic() - since > MOMENT_SECONDS:
            return None
        return moment

    async def find(self, connection: LogConnection, position: int) -> Moment:
        """That of any position."""
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
        """When a position was recorded; None when it is not known here."""
        _, moment = self._known.get(position, (0.0, None))
        return moment.recorded_at if moment is not None else self.ends.recorded_at(position)

    def stages(self, run_id: UUID, version: int) -> Sequence[ReachedStage] | None:
        """The stages of a run of one of the moments; None when it is not as it was in one."""
        for _, moment in self._known.values():
            run = moment.runs.get(run_id)
            if run is not None and run.version == version:
                return moment.stages.get(run_id)
        return None

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._known)

    def forget(self) -> None:
        """Know nothing, nor what is being read just now: that is noted where nobody looks."""
        self.ends = CommitEnds()
        self._known = OrderedDict()


async def run_at_version(connection: LogConnection, run_id: UUID, version: int) -> Run | None:
    """A run after so many of its events."""
    run: Run | None = None
    for step in states(
        await read_stream(connection, plain_mapper(), run_stream(run_id), until=version)
    ):
        run = step.run
    return run if run is not None and run.version == version else None
