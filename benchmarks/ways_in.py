"""The same spawn over plain HTTP, MCP tools, and the Python client, in turns.

The client sends a key with each spawn, so that it can retry. The server's cost of the key over
plain HTTP is measured, too.
"""

import asyncio
import itertools
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.load import TASK, Act, Connection, Spawner, requester
from benchmarks.report import Figure
from benchmarks.server import PATIENT, Server, running_server
from spawnlog import AsyncClient, Client

HTTP = "plain HTTP"
KEYED = "plain HTTP with an idempotency key"
TOOLS = "tools for models"
CLIENT = "Python client"
BLOCKING = "Python client that blocks"
CALLERS = (1, 8)
_VERSION = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": _VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_HEADERS = (
    "Accept: application/json, text/event-stream\r\n"
    f"MCP-Protocol-Version: {_VERSION}\r\n"
    "Mcp-Method: tools/call\r\nMcp-Name: sessions_spawn\r\n"
)


class ToolSpawner:
    """Spawns by the tool, over one raw connection, each for a requester of its own."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._numbers = itertools.count()

    async def spawn(self) -> str:
        """Spawn a run and return its id."""
        number = next(self._numbers)
        arguments = {"task": TASK, "cleanup": "delete"}
        message = {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": "sessions_spawn", "arguments": arguments, "_meta": _META},
        }
        session = f"Spawnlog-Session: {requester(f'{self._name}-{number}')}\r\n"
        status, answer = await self._connection.ask(
            "POST", "/mcp", json.dumps(message).encode(), _HEADERS + session
        )
        values = json.loads(answer).get("result", {}).get("structuredContent", {})
        if status != 200 or values.get("status") != "accepted":
            raise RuntimeError(f"the tool was answered with {status}: {answer[:300]!r}")
        return str(values["runId"])


class ClientSpawner:
    """Spawns by the client that awaits, each for a requester of its own."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self._client = client
        self._name = name
        self._numbers = itertools.count()

    async def spawn(self) -> str:
        """Spawn a run and return its id."""
        key = requester(f"{self._name}-{next(self._numbers)}")
        accepted = await self._client.spawn(TASK, key, cleanup="delete")
        return accepted.runs[0].run_id


class BlockingSpawner:
    """Spawns by the client that blocks: with it this program does nothing else meanwhile."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._numbers = itertools.count()

    async def spawn(self) -> str:
        """Spawn a run and return its id."""
        key = requester(f"{self._name}-{next(self._numbers)}")
        return self._client.spawn(TASK, key, cleanup="delete").runs[0].run_id


def measured_ways(folder: Path, seconds: float) -> list[Figure]:
    """Return the milliseconds of a spawn by each way, and their ratio to plain HTTP."""
    folder.mkdir(mode=0o711)
    (folder / "data").mkdir(mode=0o711)
    with running_server(folder, configuration=PATIENT) as server:
        return [
            figure for callers in CALLERS for figure in asyncio.run(_cell(server, callers, seconds))
        ]


async def _cell(server: Server, callers: int, seconds: float) -> list[Figure]:
    taken: dict[str, list[float]] = {}
    opened: list[Connection | AsyncClient] = []
    blocking = Client(server.url, token=server.token)
    try:
        turns = [await _ways(server, f"{callers}-{number}", opened) for number in range(callers)]
        if callers == 1:
            turns[0][BLOCKING] = BlockingSpawner(blocking, "b").spawn
        for acts in turns:
            for act in acts.values():
                await act()
        await asyncio.gather(*(_in_turns(acts, taken, seconds) for acts in turns))
    finally:
        blocking.close()
        for connection in opened:
            await connection.close()
    return _figures(taken, callers)


async def _ways(
    server: Server, name: str, opened: list[Connection | AsyncClient]
) -> dict[str, Act]:
    connections = [Connection(server.url, server.token) for _ in (HTTP, KEYED, TOOLS)]
    for connection in connections:
        await connection.open()
        opened.append(connection)
    client = AsyncClient(server.url, token=server.token)
    opened.append(client)
    return {
        HTTP: Spawner(connections[0], f"h{name}").spawn,
        KEYED: Spawner(connections[1], f"k{name}", has_keys=True).spawn,
        TOOLS: ToolSpawner(connections[2], f"t{name}").spawn,
        CLIENT: ClientSpawner(client, f"c{name}").spawn,
    }


async def _in_turns(acts: Mapping[str, Act], taken: dict[str, list[float]], seconds: float) -> None:
    until = time.perf_counter() + seconds * len(acts)
    while time.perf_counter() < until:
        for name, act in acts.items():
            began = time.perf_counter()
            await act()
            taken.setdefault(name, []).append(time.perf_counter() - began)


def _figures(taken: Mapping[str, Sequence[float]], callers: int) -> list[Figure]:
    title = f"a spawn, {callers} caller{'' if callers == 1 else 's'}"
    plain, keyed = median(taken[HTTP]), median(taken[KEYED])
    note = "in turns, the median of each"
    figures: list[Figure] = []
    for name, each in taken.items():
        middle = median(each)
        figures.append(Figure(f"{title}: {name}", "ms", round(middle * 1000, 2)))
        if name != HTTP:
            figures.append(
                Figure(f"{title}: {name} : {HTTP}", "times", round(middle / plain, 2), note)
            )
        if name in (CLIENT, BLOCKING):
            figures.append(
                Figure(f"{title}: {name} : {KEYED}", "times", round(middle / keyed, 2), note)
            )
    return figures
