"""Reading the log by position."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from application.log.envelope import Actor, Envelope, Provenance, RecordedEvent
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.schema.connections import LogConnection

COLUMNS = (
    "position, stream, version, type, type_version, recorded_at, occurred_at, event_id,"
    " command_id, actor_kind, actor_token, actor_session, causation, correlation, run_id,"
    " traceparent, config_revision, writer_version, append_last, chain_hash, state"
)


def recorded_event(row: Sequence[Any], mapper: EventMapper) -> RecordedEvent:
    """A row of the log as an event with its envelope."""
    envelope = Envelope(
        position=row[0],
        stream=row[1],
        version=row[2],
        type=row[3],
        type_version=row[4],
        recorded_at=row[5],
        occurred_at=row[6],
        event_id=row[7],
        command_id=row[8],
        provenance=Provenance(
            actor=Actor(kind=row[9], token=row[10], session=row[11]),
            causation=row[12],
            correlation=row[13],
            run_id=row[14],
            traceparent=row[15],
            config_revision=row[16],
        ),
        writer_version=row[17],
        append_last=row[18],
        chain_hash=bytes(row[19]),
    )
    return RecordedEvent(envelope, mapper.event(row[1], row[2], row[3], row[4], bytes(row[20])))


def _events_query(*clauses: str) -> str:
    return f"SELECT {COLUMNS} FROM events WHERE {' AND '.join(clauses)} ORDER BY position LIMIT %s"


EVENTS_BEHIND = _events_query("position > %s")
"""The values are the position and how many at most."""


async def read_events(
    connection: LogConnection,
    mapper: EventMapper,
    *,
    after: int,
    limit: int,
    until: int | None = None,
    types: Sequence[str] = (),
    run_id: UUID | None = None,
    correlations: Sequence[str] | None = None,
) -> list[RecordedEvent]:
    """Events behind `after` and not behind `until`, in order, at most `limit`."""
    clauses = ["position > %s"]
    values: list[Any] = [after]
    if until is not None:
        clauses.append("position <= %s")
        values.append(until)
    if types:
        clauses.append("type = ANY(%s::text[])")
        values.append(list(types))
    if run_id is not None:
        clauses.append("run_id = %s")
        values.append(run_id)
    if correlations is not None:
        clauses.append("correlation = ANY(%s::text[])")
        values.append(list(correlations))
    values.append(limit)
    cursor = await connection.execute(_events_query(*clauses), values, binary=True)
    return [recorded_event(row, mapper) for row in await cursor.fetchall()]


async def read_stream_events(
    connection: LogConnection,
    mapper: EventMapper,
    streams: Sequence[str],
    *,
    types: Sequence[str] = (),
    until: int,
) -> list[RecordedEvent]:
    """All events of these streams up to a position, in order of position. Each stream is looked up
    by itself, along the index of streams."""
    clauses, values = "", list[Any]([list(streams), until])
    if types:
        clauses = " AND type = ANY(%s::text[])"
        values.append(list(types))
    cursor = await connection.execute(
        f"SELECT one.* FROM unnest(%s::text[]) AS wanted (name) CROSS JOIN LATERAL"
        f" (SELECT {COLUMNS} FROM events WHERE stream = wanted.name AND position <= %s{clauses}"
        " OFFSET 0) AS one ORDER BY position",
        values,
        binary=True,
    )
    return [recorded_event(row, mapper) for row in await cursor.fetchall()]


async def first_events(
    mapper: EventMapper, connection: LogConnection, queries: Sequence[tuple[UUID, str]]
) -> Mapping[tuple[UUID, str], RecordedEvent]:
    """The first event of a type of a run, for many runs and types."""
    cursor = await connection.execute(
        f"SELECT {COLUMNS} FROM events"
        " JOIN unnest(%s::uuid[], %s::text[]) AS t (wanted_run, wanted_type)"
        " ON run_id = wanted_run AND type = wanted_type ORDER BY position DESC",
        [[run_id for run_id, _ in queries], [name for _, name in queries]],
        binary=True,
    )
    found = [recorded_event(row, mapper) for row in await cursor.fetchall()]
    return {
        (one.envelope.provenance.run_id, one.envelope.type): one
        for one in found
        if one.envelope.provenance.run_id is not None
    }


async def head_of(connection: LogConnection, keys: Sequence[None]) -> Mapping[None, int]:
    """The last position."""
    row = await (await connection.execute("SELECT position FROM log_head")).fetchone()
    assert row is not None
    return dict.fromkeys(keys, int(row[0]))
