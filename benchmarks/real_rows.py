"""Rows that a server writes for a spawn and for a message, for the floor to copy."""

from uuid import UUID

from benchmarks.appending import Admissions, opened_log
from benchmarks.floor import TableRows, rows_between, rows_of
from benchmarks.load import Connection, Spawner, Talker
from benchmarks.server import Server


async def one_waiting_spawn(server: Server, conninfo: str) -> tuple[TableRows, ...]:
    """Return the rows of the transaction that answered a spawn whose run waits. Another run holds
    its place in the lane."""
    connection = Connection(server.url, server.token)
    await connection.open()
    try:
        spawner = Spawner(connection, "one")
        await connection.read(f"/v1/runs/{await spawner.spawn()}?wait=30s&until=started")
        run_id = UUID(await spawner.spawn())
    finally:
        await connection.close()
    return await rows_of(conninfo, run_id)


async def one_admission(conninfo: str) -> tuple[TableRows, ...]:
    """Return the rows of the first append of a spawn, submitted to the writer."""
    async with opened_log(conninfo) as log:
        return await rows_of(conninfo, await Admissions(log, "one").admit())


async def one_message(server: Server, conninfo: str) -> tuple[TableRows, ...]:
    """Return the rows of the append that continues a session."""
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
