"""Looking into the log of an application past the library."""

from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

from application.log.envelope import Actor, Envelope, Provenance
from infrastructure.outbound.log.codec.chain import chain_hash
from infrastructure.outbound.log.read.events import COLUMNS


def ask(database_url: str, schema: str, query: str, *values: Any) -> list[Any]:
    """The rows of a query in a schema."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(SQL("SET search_path TO {}").format(Identifier(schema)))
        cursor = connection.execute(query.encode(), values or None)
        return cursor.fetchall() if cursor.description else []


def whole_log(database_url: str, schema: str) -> list[Envelope]:
    """The envelopes of a log that holds together: no gap in positions or versions, every hash that
    of its event and the one before, head and commits at its end."""
    envelopes: list[Envelope] = []
    versions: dict[str, int] = {}
    previous = b""
    for row in ask(database_url, schema, f"SELECT {COLUMNS} FROM events ORDER BY position"):
        envelope = _envelope(row)
        assert envelope.position == len(envelopes) + 1
        assert envelope.version == versions.get(envelope.stream, envelope.version - 1) + 1
        versions[envelope.stream] = envelope.version
        previous = chain_hash(previous, envelope, bytes(row[20]))
        assert envelope.chain_hash == previous
        envelopes.append(envelope)
    ends = {(one.append_last, one.recorded_at) for one in envelopes}
    commits = ask(database_url, schema, "SELECT last_position, recorded_at FROM commits")
    assert set(commits) == ends
    (head,) = ask(database_url, schema, "SELECT position, chain_hash FROM log_head")
    assert (head[0], bytes(head[1])) == (len(envelopes), previous)
    return envelopes


def _envelope(row: Any) -> Envelope:
    return Envelope(
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
