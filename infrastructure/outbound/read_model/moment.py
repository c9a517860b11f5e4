"""How things were at a position inside of a transaction, of which no row tells: the rows as of the
transaction before, and the events of this one up to there folded onto them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import orjson

from application.projections.fold import Fold
from application.projections.run_rows import run_row
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import run_stream
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.fold_input import (
    TableStates,
    fold_page,
    fold_run,
    read_page,
    read_stream,
)
from infrastructure.outbound.log.schema.connections import LogConnection

PAGE_EVENTS = 500
"""So many are folded without a pause. A transaction has a few, but thousands when it stops a large
tree."""

_LAST_END = (
    "SELECT last_position FROM commits WHERE last_position <= %s"
    " ORDER BY last_position DESC LIMIT 1"
)


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
            row._asdict() | {"state": orjson.Fragment(row.state.model_dump_json(exclude_none=True))}
            for row in map(run_row, self.runs.values())
        ]
        return orjson.dumps(rows).decode()


def moment_at_end(position: int) -> Moment:
    """That of the last position of a transaction."""
    return Moment(position, position, {}, {})


async def moment_at(connection: LogConnection, position: int) -> Moment:
    """That of any position."""
    cursor = await connection.execute(_LAST_END, [position])
    found = await cursor.fetchone()
    end = after = int(found[0]) if found is not None else 0
    fold, mapper = Fold((), ()), EventMapper()
    source = TableStates(connection, "runs", "sessions")
    while after < position:
        until = min(after + PAGE_EVENTS, position)
        page = await read_page(connection, mapper, after=after, until=until)
        if not page.events:
            break
        await fold_page(fold, page._replace(after=end), source)
        after = until
        await asyncio.sleep(0)
    return Moment(position, end, fold.runs, fold.sessions)


async def run_at_version(connection: LogConnection, run_id: UUID, version: int) -> Run | None:
    """A run after so many of its events."""
    run = fold_run(await read_stream(connection, EventMapper(), run_stream(run_id), until=version))
    return run if run is not None and run.version == version else None
