"""How things were at a position inside of a transaction, of which no row tells: the rows as of the
transaction before, and the events of this one up to there folded onto them."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

import orjson

from application.projections.fold import Fold
from application.projections.run_rows import run_row
from domain.run.state import Run
from domain.session.state import Session
from domain.states import MissingStates, State, states
from domain.values.record import run_stream
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.commit_ends import CommitEnds
from infrastructure.outbound.log.read.fold_input import (
    EVENT_COLUMNS,
    FoldPage,
    fold_page,
    folded_event,
    read_stream,
    runs_folded,
    sessions_folded,
)
from infrastructure.outbound.log.schema.connections import LogConnection

PAGE_EVENTS = 500
"""So many are folded without a pause. A transaction has a few, but thousands when it stops a large
tree."""

MOMENTS_REMEMBERED_MAX = 8
MOMENT_SECONDS = 5.0
"""One question looks at its moment several times; a rebuild may mend the rows behind it."""
MOMENT_STATES_MAX = 100

# The end of the transaction before the position, and what is behind it: nothing, where the position
# is an end itself.
INSIDE = (
    f"SELECT before.last_position, one.* FROM (SELECT COALESCE((SELECT last_position FROM commits"
    " WHERE last_position <= %(at)s ORDER BY last_position DESC LIMIT 1), 0) AS last_position)"
    f" AS before LEFT JOIN LATERAL (SELECT {EVENT_COLUMNS} FROM events"
    " WHERE position > GREATEST(before.last_position, %(after)s) AND position <= %(at)s"
    " ORDER BY position LIMIT %(limit)s) AS one ON true ORDER BY one.position"
)
"""The last position of the transaction before, and of each event what a fold needs."""


@dataclass(frozen=True, slots=True)
class Moment:
    """How things were at a position: as the rows say as of `end`, the last position of a
    transaction, but for these runs and sessions, which have changed since."""

    position: int
    end: int
    runs: Mapping[UUID, Run]
    sessions: Mapping[str, Session]

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


class _PastStates:
    """The states as of a position: from events, for most rows have ended."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection = connection

    async def load(self, missing: MissingStates, at: int) -> Iterable[State]:
        """The states of these runs and sessions."""
        runs = await runs_folded(self._connection, [(run_id, at) for run_id in missing.runs])
        sessions = await sessions_folded(self._connection, [(key, at) for key in missing.sessions])
        return (*runs.values(), *(one for _, one in sessions))


async def moment_at(connection: LogConnection, position: int) -> Moment:
    """That of any position."""
    fold, mapper, source = Fold((), ()), EventMapper(), _PastStates(connection)
    end = after = 0
    while after < position:
        values = {"at": position, "after": after, "limit": PAGE_EVENTS}
        cursor = await connection.execute(INSIDE, values, binary=True, prepare=True)
        rows = await cursor.fetchall()
        end = int(rows[0][0])
        if rows[0][1] is None:
            break
        events = [folded_event(row[1:], mapper) for row in rows]
        await fold_page(fold, FoldPage(end, events, ()), source)
        after = events[-1].stamp.position
        await asyncio.sleep(0)
    return Moment(position, end, fold.runs, fold.sessions)


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
            ends.note(position)
        elif 0 < len(moment.runs) + len(moment.sessions) <= MOMENT_STATES_MAX:
            known[position] = time.monotonic(), moment
            known.move_to_end(position)
            if len(known) > MOMENTS_REMEMBERED_MAX:
                known.popitem(last=False)
        return moment

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
        await read_stream(connection, EventMapper(), run_stream(run_id), until=version)
    ):
        run = step.run
    return run if run is not None and run.version == version else None
