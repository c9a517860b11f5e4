"""The rows that a server writes for one spawn and for one message: what the floor copies."""

from uuid import UUID

from benchmarks.floor import TableRows, rows_between, rows_of
from benchmarks.load import Connection, Spawner, Talker, settled
from benchmarks.server import Server


async def one_spawn(
    server: Server, conninfo: str
) -> tuple[tuple[TableRows, ...], tuple[TableRows, ...]]:
    """The rows of one real spawn: up to the append with which it was answered, and those of its
    first append alone."""
    connection = Connection(server.url, server.token)
    await connection.open()
    try:
        run_id = UUID(await Spawner(connection, "one").spawn())
        await settled(connection)
        events = (await connection.read(f"/v1/runs/{run_id}/events"))["items"]
    finally:
        await connection.close()
    queued = next(one for one in events if one["type"] == "RunQueued")
    requested = next(one for one in events if one["type"] == "SpawnRequested")
    return (
        await rows_of(conninfo, run_id, queued["appendLast"]),
        await rows_of(conninfo, run_id, requested["appendLast"]),
    )


async def one_message(server: Server, conninfo: str) -> tuple[TableRows, ...]:
    """The rows of the append by which a session goes on."""
    connection = Connection(server.url, server.token)
    await connection.open()
    try:
        talker = Talker(connection, "one")
        await talker.begin(sessions=1)
        run_id = await talker.message()
        await connection.read(f"/v1/runs/{run_id}?wait=30s&until=announced")
        received = (await connection.read(f"/v1/runs/{run_id}/events"))["items"][0]
    finally:
        await connection.close()
    text = UUID(received["payload"]["message"]["id"])
    return await rows_between(conninfo, received["position"], received["appendLast"], text)
