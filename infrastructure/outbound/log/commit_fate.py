"""What became of a batch whose commit was never confirmed."""

from infrastructure.outbound.log.append.batch import Batch
from infrastructure.outbound.log.append.load import BEGIN
from infrastructure.outbound.log.loaded import reservation_key
from infrastructure.outbound.log.schema.connections import LogConnection


async def is_recorded(connection: LogConnection, batch: Batch) -> bool:
    """Whether this very batch is in the log after all, by what no other can have written.

    Asked under the lock: the transaction of a lost connection may still be committing.
    """
    await connection.execute(BEGIN, prepare=False)
    found = await _is_stored(connection, batch)
    await connection.execute("ROLLBACK")
    return found


async def _is_stored(connection: LogConnection, batch: Batch) -> bool:
    if batch.events:
        query = "SELECT 1 FROM events WHERE position = %s AND chain_hash = %s"
        values = [batch.position, batch.chain_hash]
    elif batch.idempotency.inserts:
        reservation = batch.idempotency.inserts[0][0]
        query = (
            "SELECT 1 FROM idempotency WHERE (token, method, path, key) = (%s, %s, %s, %s)"
            " AND fingerprint = %s AND created_at = %s"
        )
        name = reservation_key(reservation)
        values = [*name, reservation.fingerprint, batch.recorded_at]
    else:
        return False
    cursor = await connection.execute(query, values)
    return await cursor.fetchone() is not None
