"""Queries that read the log by position, stream or tree."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple, Required, TypedDict, Unpack
from uuid import UUID

from application.log.envelope import Actor, Envelope, Provenance, RecordedEvent
from domain.values.record import run_stream
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.schema.connections import LogConnection

COLUMNS = (
    "position, stream, version, type, type_version, recorded_at, occurred_at, event_id,"
    " command_id, actor_kind, actor_token, actor_session, causation, correlation, run_id,"
    " traceparent, config_revision, writer_version, append_last, chain_hash, state"
)


def recorded_event(row: Sequence[Any], mapper: EventMapper) -> RecordedEvent:
    """Return the event and envelope of a row of `COLUMNS`."""
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


# Positions grow with versions, so a binary search finds the version, each step by the index of
# streams. It begins with the newest version, which is requested most.
_VERSION_AT = (
    "WITH RECURSIVE narrowed (low, high, middle) AS ("
    " SELECT 0, newest.version, newest.version FROM (SELECT version FROM events"
    " WHERE events.stream = {stream} ORDER BY version DESC LIMIT 1) AS newest"
    " UNION ALL SELECT half.low, half.high, (half.low + half.high + 1) / 2 FROM narrowed"
    " CROSS JOIN LATERAL (SELECT position <= {at} AS is_before FROM events"
    " WHERE events.stream = {stream} AND events.version = narrowed.middle LIMIT 1) AS probe"
    " CROSS JOIN LATERAL (SELECT"
    " CASE WHEN probe.is_before THEN narrowed.middle ELSE narrowed.low END AS low,"
    " CASE WHEN probe.is_before THEN narrowed.high ELSE narrowed.middle - 1 END AS high) AS half"
    " WHERE narrowed.low < narrowed.high)"
    " SELECT low AS version FROM narrowed WHERE low = high LIMIT 1"
)
"""Number of events of a stream up to a position; no row if the stream is empty."""


def events_query(
    limit: int,
    *,
    after: int,
    until: int | None = None,
    conditions: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    columns: str = COLUMNS,
    run_id: UUID | None = None,
    order: str = "ASC",
) -> tuple[str, list[Any]]:
    """Return the query of at most `limit` events in order of position, and its values.

    Args:
        limit: Maximum number of events.
        after: Position before the first event.
        until: Position of the last event. None for no limit.
        conditions: Further SQL clauses, each with its values.
        columns: Columns to select; they must include `position`.
        run_id: The run that the events are about. Events of its own stream are found by the index
            of streams, events of sessions by an index without the streams of runs.
        order: Order of positions: ASC or DESC.
    """
    between: dict[str, Sequence[Any]] = {"position > %s": [after]}
    if until is not None:
        between["position <= %s"] = [until]
    where, values = _joined(between, conditions)
    last = f"ORDER BY position {order} LIMIT %s"
    if run_id is None:
        return f"SELECT {columns} FROM events WHERE {where} {last}", [*values, limit]
    own, own_values = _joined(_versions_between(run_stream(run_id), after, until), conditions)
    return (
        f"SELECT {columns} FROM ((SELECT {columns} FROM events WHERE {own}"
        f" ORDER BY version {order} LIMIT %s) UNION ALL (SELECT {columns} FROM events"
        f" WHERE {where} AND run_id = %s AND left(stream, 4) <> 'run:' {last})) AS events {last}",
        [*own_values, limit, *values, run_id, limit, limit],
    )


def _joined(*conditions: Mapping[str, Sequence[Any]]) -> tuple[str, list[Any]]:
    """Return the conjunction of clauses, and their values."""
    clauses = [pair for part in conditions for pair in part.items()]
    joined = " AND ".join(clause for clause, _ in clauses)
    return joined, [value for _, values in clauses for value in values]


def _versions_between(stream: str, after: int, until: int | None) -> Mapping[str, Sequence[Any]]:
    """Return the condition of a range of positions in one stream, by versions.

    By positions, the index of streams would find each event of the stream, in the range or not.
    """
    version_at = _VERSION_AT.format(stream="%s", at="%s")
    clauses: dict[str, Sequence[Any]] = {"stream = %s": [stream]}
    if after > 0:
        clauses[f"version > ({version_at})"] = [stream, after, stream]
    if until is not None:
        clauses[f"version <= ({version_at})"] = [stream, until, stream]
    return clauses


EVENTS_BEHIND, _ = events_query(0, after=0)
"""Query of the events after a position. Its values are the position and the limit."""


OF_TREE = "hashtextextended(correlation, 0) = hashtextextended({tree}, 0) AND correlation = {tree}"
"""Condition that selects the events of a tree. The index of trees holds hashes of their keys."""


def of_trees(trees: Sequence[str]) -> tuple[str, list[Any]]:
    """Return the condition that selects the events of any of these trees, and its values."""
    clauses = " OR ".join(OF_TREE.format(tree="%s") for _ in trees) or "false"
    return f"({clauses})", [value for tree in trees for value in (tree, tree)]


class EventRange(TypedDict, total=False):
    """A range of events: after position `after`, up to and including `until`, at most `limit`. With
    `newest_first`, the last events of the range in descending order; otherwise the first ones.
    `actor` is a kind of actor, a token id, or the key of the acting session."""

    after: Required[int]
    limit: Required[int]
    until: int | None
    types: Sequence[str]
    run_id: UUID | None
    correlations: Sequence[str] | None
    actor: str | None
    newest_first: bool


def events_between(**range_: Unpack[EventRange]) -> tuple[str, list[Any]]:
    """Return the query of a range of events, and its values."""
    conditions: dict[str, list[Any]] = {}
    if types := range_.get("types"):
        conditions["type = ANY(%s::text[])"] = [list(types)]
    if (correlations := range_.get("correlations")) is not None:
        clause, values = of_trees(correlations)
        conditions[clause] = values
    if (actor := range_.get("actor")) is not None:
        conditions["%s IN (actor_kind, actor_token, actor_session)"] = [actor]
    order = "DESC" if range_.get("newest_first") else "ASC"
    return events_query(
        range_["limit"],
        after=range_["after"],
        until=range_.get("until"),
        conditions=conditions,
        run_id=range_.get("run_id"),
        order=order,
    )


async def read_events(
    connection: LogConnection, mapper: EventMapper, **range_: Unpack[EventRange]
) -> list[RecordedEvent]:
    """Return the events of a range."""
    query, values = events_between(**range_)
    cursor = await connection.execute(query, values, binary=True)
    return [recorded_event(row, mapper) for row in await cursor.fetchall()]


async def read_stream_events(
    connection: LogConnection,
    mapper: EventMapper,
    streams: Sequence[str],
    *,
    types: Sequence[str] = (),
    until: int,
) -> list[RecordedEvent]:
    """Return all events of these streams up to and including position `until`, in order of
    position. Each stream is looked up separately by the index of streams."""
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


NEWEST_OF_STREAM = (
    f"SELECT {COLUMNS} FROM events WHERE stream = %s AND version <= %s ORDER BY version DESC"
    " LIMIT %s"
)
"""Query by the index of streams. Its values are the stream, the last version and the limit."""
_VERSION_MAX = 2**31 - 1


async def newest_of_stream(
    connection: LogConnection,
    mapper: EventMapper,
    stream: str,
    *,
    version_max: int | None,
    limit: int,
) -> list[RecordedEvent]:
    """Return at most `limit` events of a stream, newest first, up to and including a version."""
    last = _VERSION_MAX if version_max is None else min(version_max, _VERSION_MAX)
    cursor = await connection.execute(NEWEST_OF_STREAM, [stream, last, limit], binary=True)
    return [recorded_event(row, mapper) for row in await cursor.fetchall()]


# The expression must match the index `events_of_messages_that_wait`.
QUEUED_MESSAGE = (
    f"SELECT {COLUMNS} FROM events WHERE type = 'MessageQueued'"
    """ AND substring(encode(state, 'escape') from '"runId":"([0-9a-f-]{36})"') = %s"""
    " LIMIT 1"
)


async def queued_message(
    connection: LogConnection, mapper: EventMapper, run_id: UUID
) -> RecordedEvent | None:
    """Return the event that queued the message from which the run will be made, or None."""
    cursor = await connection.execute(QUEUED_MESSAGE, [str(run_id)], binary=True)
    row = await cursor.fetchone()
    return recorded_event(row, mapper) if row is not None else None


async def first_events(
    mapper: EventMapper, connection: LogConnection, queries: Sequence[tuple[UUID, str]]
) -> Mapping[tuple[UUID, str], RecordedEvent]:
    """Return the first event of a type in a run's stream, for many pairs of run and type."""
    cursor = await connection.execute(
        "SELECT one.* FROM unnest(%s::text[], %s::text[]) AS t (wanted_stream, wanted_type)"
        f" CROSS JOIN LATERAL (SELECT {COLUMNS} FROM events WHERE stream = t.wanted_stream"
        " AND type = t.wanted_type ORDER BY version LIMIT 1) AS one",
        [[run_stream(run_id) for run_id, _ in queries], [name for _, name in queries]],
        binary=True,
    )
    found = [recorded_event(row, mapper) for row in await cursor.fetchall()]
    return {
        (event.envelope.provenance.run_id, event.envelope.type): event
        for event in found
        if event.envelope.provenance.run_id is not None
    }


class HeadOfLog(NamedTuple):
    """The last position and the time when it was recorded. Before the first event, the time is an
    arbitrary earlier one."""

    position: int
    recorded_at: datetime


async def head_of(connection: LogConnection, keys: Sequence[None]) -> Mapping[None, HeadOfLog]:
    """Return the head of the log under each key."""
    cursor = await connection.execute("SELECT position, recorded_at FROM log_head")
    row = await cursor.fetchone()
    assert row is not None
    return dict.fromkeys(keys, HeadOfLog(int(row[0]), row[1]))


async def instants_of(
    connection: LogConnection, positions: Sequence[int]
) -> Mapping[int, datetime]:
    """Return the times when the events at these positions were recorded."""
    cursor = await connection.execute(
        "SELECT position, recorded_at FROM events WHERE position = ANY(%s)",
        [list(positions)],
        prepare=True,
    )
    return dict(await cursor.fetchall())


VERSIONS_AT = (
    "SELECT t.stream, t.at, one.version FROM unnest(%s::text[], %s::bigint[]) AS t (stream, at)"
    f" CROSS JOIN LATERAL ({_VERSION_AT.format(stream='t.stream', at='t.at')}) AS one"
)
"""The values are streams and positions."""


async def versions_at(
    connection: LogConnection, queries: Sequence[tuple[str, int]]
) -> Mapping[tuple[str, int], int]:
    """Return the number of events in a stream up to a position, for many pairs of both."""
    values = [[stream for stream, _ in queries], [at for _, at in queries]]
    cursor = await connection.execute(VERSIONS_AT, values)
    return {(stream, at): version for stream, at, version in await cursor.fetchall()}


# Each stream separately by the index of streams, whatever statistics the planner has.
EVENTS_OF_STREAMS = (
    "SELECT one.* FROM unnest(%s::text[], %s::int[]) AS t (wanted_stream, wanted_version)"
    f" CROSS JOIN LATERAL (SELECT {COLUMNS} FROM events"
    " WHERE stream = t.wanted_stream AND version = t.wanted_version LIMIT 1) AS one"
)
"""The values are streams and versions."""


async def events_of_streams(
    mapper: EventMapper, connection: LogConnection, queries: Sequence[tuple[str, int]]
) -> Mapping[tuple[str, int], RecordedEvent]:
    """Return single events by stream and version."""
    values = [[stream for stream, _ in queries], [version for _, version in queries]]
    cursor = await connection.execute(EVENTS_OF_STREAMS, values, binary=True)
    found = [recorded_event(row, mapper) for row in await cursor.fetchall()]
    return {(event.envelope.stream, event.envelope.version): event for event in found}
