"""Idempotency records, as an append writes them."""

from datetime import datetime

import orjson

from infrastructure.outbound.log.loaded import IdempotencyWrites
from infrastructure.outbound.log.schema.connections import LogConnection

INSERT_IDEMPOTENCY = (
    "INSERT INTO idempotency (token, method, path, key, fingerprint, run_id, kind, body,"
    " created_at) VALUES (%b, %b, %b, %b, %b, %b, %b, %b, %b)"
)
ANSWER_IDEMPOTENCY = (
    "UPDATE idempotency SET kind = t.kind, body = t.body"
    " FROM unnest(%b::uuid[], %b::text[], %b::text[]) AS t (run_id, kind, body)"
    " WHERE idempotency.run_id = t.run_id AND idempotency.kind IS NULL"
)


async def store_idempotency(
    connection: LogConnection, writes: IdempotencyWrites, recorded_at: datetime
) -> None:
    """Reserve keys, and fill in the answers that are known now."""
    for reservation, run_id, answer in writes.inserts:
        await connection.execute(
            INSERT_IDEMPOTENCY,
            [
                reservation.token,
                reservation.method,
                reservation.path,
                reservation.key,
                reservation.fingerprint,
                run_id,
                answer.kind if answer else None,
                orjson.dumps(answer.body).decode() if answer else None,
                recorded_at,
            ],
        )
    if writes.answers:
        answers = writes.answers.values()
        await connection.execute(
            ANSWER_IDEMPOTENCY,
            [
                list(writes.answers),
                [answer.kind for answer in answers],
                [orjson.dumps(answer.body).decode() for answer in answers],
            ],
        )
