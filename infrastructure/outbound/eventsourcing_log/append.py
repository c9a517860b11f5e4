"""One append: under the log's lock, numbered head + 1, head + 2, …, chained, committed at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from eventsourcing.persistence import IntegrityError, NotSupportedError, StoredEvent
from psycopg.rows import DictRow, tuple_row

from application.log.envelope import WRITER_VERSION, Envelope, Provenance
from infrastructure.outbound.eventsourcing_log.read import TYPE_VERSION
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.log.append.load import HEAD, LOCK
from infrastructure.outbound.log.append.store import (
    INSERT_EVENTS,
    MOVE_HEAD,
    NOTE_COMMIT,
    event_arrays,
)
from infrastructure.outbound.log.codec.chain import chain_hash
from infrastructure.outbound.log.schema.format import UnknownFormat, require_known_format

# A look-up for each stream: for `stream = ANY` a plan that was made while the log was empty reads
# the whole table, and is kept while it grows.
VERSIONS = (
    "SELECT stream, (SELECT max(version) FROM events WHERE events.stream = asked.stream)"
    " FROM unnest(%b::text[]) AS asked (stream)"
)
RECORDED = "SELECT position FROM events WHERE stream = %b AND version = %b AND command_id = %b"
AppendConnection = psycopg.Connection[DictRow]


@dataclass(frozen=True, slots=True)
class Addition:
    """Events to append, each with its stream, and the id by which the append is known again."""

    streams: Sequence[str]
    events: Sequence[StoredEvent]
    command_id: UUID


@dataclass(frozen=True, slots=True)
class LogHead:
    """The end of the log, read under the lock."""

    position: int
    recorded_at: datetime
    chain_hash: bytes
    now: datetime


def append(
    connection: AppendConnection,
    addition: Addition,
    *,
    channel: str,
    lock_timeout_seconds: int,
    is_repeat: bool,
    beside: Callable[[AppendConnection], None],
) -> list[int]:
    """Append all events or none; gives their positions. `beside` writes in the same transaction.

    A repeat, after a connection was lost at the commit, finds what it recorded the first time.
    Raises `IntegrityError` when an event does not continue its stream, and `NotSupportedError` for
    a log of a newer format; then nothing is stored and no position is used up.
    """
    try:
        with connection.pipeline():
            connection.execute("BEGIN")
            connection.execute(f"SET LOCAL lock_timeout = '{lock_timeout_seconds}s'")
            connection.execute(LOCK)
            cursor = connection.cursor(row_factory=tuple_row).execute(HEAD)
        # Not in the pipeline, after which PostgreSQL counts no idle time: a process that is frozen
        # with the lock in its hands would stop all others.
        versions = _versions(connection, addition)
        if is_repeat and (recorded := _recorded_positions(connection, addition)):
            connection.rollback()
            return recorded
        head = _head(cursor.fetchone())
        _must_continue(addition, versions)
        beside(connection)
        envelopes = build_envelopes(addition, head)
        with connection.pipeline():
            _store(connection, addition, envelopes)
            connection.execute("SELECT pg_notify(%s, %s)", [channel, str(envelopes[-1].position)])
    except psycopg.Error:
        # After a failed pipeline psycopg may believe in prepared statements that the server never
        # had; a pool replaces what is closed.
        connection.close()
        raise
    except BaseException:
        connection.rollback()
        raise
    return [envelope.position for envelope in envelopes]


def build_envelopes(addition: Addition, head: LogHead) -> list[Envelope]:
    """What stands around the events behind that head, chain included."""
    new_id = RandomIdentities().event_id
    recorded_at = max(head.recorded_at, head.now)
    last = head.position + len(addition.events)
    previous = head.chain_hash
    envelopes: list[Envelope] = []
    for position, (stream, event) in enumerate(
        zip(addition.streams, addition.events, strict=True), head.position + 1
    ):
        envelope = Envelope(
            position=position,
            stream=stream,
            version=event.originator_version,
            type=event.topic,
            type_version=TYPE_VERSION,
            recorded_at=recorded_at,
            occurred_at=head.now,
            event_id=new_id(),
            command_id=addition.command_id,
            provenance=Provenance(),
            writer_version=WRITER_VERSION,
            append_last=last,
            chain_hash=b"",
        )
        previous = chain_hash(previous, envelope, event.state)
        envelopes.append(envelope.chained(previous))
    return envelopes


def _head(row: Sequence[Any] | None) -> LogHead:
    assert row is not None, "the log has no head"
    try:
        require_known_format(row[3])
    except UnknownFormat as error:
        raise NotSupportedError(str(error)) from error
    return LogHead(row[0], row[1], bytes(row[2]), row[4])


def _versions(connection: AppendConnection, addition: Addition) -> dict[str, int]:
    cursor = connection.cursor(row_factory=tuple_row)
    rows = cursor.execute(VERSIONS, [list(set(addition.streams))]).fetchall()
    return {stream: version for stream, version in rows if version is not None}


def _recorded_positions(connection: AppendConnection, addition: Addition) -> list[int]:
    """The positions of this very append, if it is in the log."""
    first = [addition.streams[0], addition.events[0].originator_version, addition.command_id]
    row = connection.cursor(row_factory=tuple_row).execute(RECORDED, first).fetchone()
    return list(range(row[0], row[0] + len(addition.events))) if row else []


def _must_continue(addition: Addition, versions: dict[str, int]) -> None:
    """Each event follows the one before it in its stream; a stream may begin with any version."""
    last = dict(versions)
    for stream, event in zip(addition.streams, addition.events, strict=True):
        version = event.originator_version
        if stream in last and version != last[stream] + 1:
            raise IntegrityError(
                f"version {version} of {stream} cannot be recorded: its next version is"
                f" {last[stream] + 1}; load it again and decide anew"
            )
        last[stream] = version


def _store(connection: AppendConnection, addition: Addition, envelopes: Sequence[Envelope]) -> None:
    last = envelopes[-1]
    states = [event.state for event in addition.events]
    connection.execute(INSERT_EVENTS, event_arrays(envelopes, states))
    connection.execute(MOVE_HEAD, [last.position, last.recorded_at, last.chain_hash])
    connection.execute(NOTE_COMMIT, [last.position, last.recorded_at])
    connection.execute("COMMIT")
