"""Relay between a process and PostgreSQL that delays and breaks connections, as a network does.

It knows how messages are framed, and that `COMMIT` confirms a commit, or `INSERT` that of a
statement that commits by itself.
"""

import asyncio
import contextlib
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from infrastructure.outbound.log.schema.connections import LogConnection, open_connection

PIECE_BYTES = 65_536
HEAD_BYTES = 5
COMMITTED = (b"COMMIT\0", b"INSERT ")


@dataclass(frozen=True, slots=True)
class Weather:
    """Probabilities of faults.

    Attributes:
        lost_commit: The connection breaks before the confirmation of a commit.
        late_commit: The confirmation is late.
        cut_question: The connection breaks after a piece of a request.
        cut_answer: The connection breaks after a piece of an answer.
    """

    lost_commit: float = 0.0
    late_commit: float = 0.0
    late_seconds_max: float = 0.02
    cut_question: float = 0.0
    cut_answer: float = 0.0


class Relay:
    """Relay between one process and its database, on its own socket."""

    def __init__(self, url: str, die: random.Random, weather: Weather) -> None:
        parts = conninfo_to_dict(url)
        self._socket = f"{parts['host']}/.s.PGSQL.{parts['port']}"
        self._folder = Path(tempfile.mkdtemp(prefix="line-"))
        self._here = self._folder / f".s.PGSQL.{parts['port']}"
        self._die = die
        self._weather = weather
        self._lines: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        # The process at the other end is this one, which may not be the owner of the data.
        self.url = make_conninfo(url, host=str(self._folder), requirepeer="")
        self.faults: Counter[str] = Counter()
        self.is_calm = True

    async def start(self) -> None:
        """Begin to relay."""
        self._server = await asyncio.start_unix_server(self._take, self._here)

    async def close(self) -> None:
        """Close all connections and remove the socket."""
        if self._server is not None:
            self._server.close()
        for line in list(self._lines):
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)
        shutil.rmtree(self._folder)

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = asyncio.create_task(self._relay(reader, writer))
        self._lines.add(line)
        line.add_done_callback(self._lines.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            answers, questions = await asyncio.open_unix_connection(self._socket)
            ends.append(questions)
            pumps = [
                asyncio.create_task(self._ask(reader, questions)),
                asyncio.create_task(self._answer(answers, writer)),
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        except OSError:
            pass  # The database is away: the connection of the caller is cut.
        finally:
            for end in ends:
                end.transport.abort()

    def _falls(self, fault: str, probability: float) -> bool:
        falls = self._die.random() < probability and not self.is_calm
        self.faults[fault] += falls
        return falls

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
            if self._falls("cut question", self._weather.cut_question):
                # The last request is still executed, because the server notices the cut later.
                await asyncio.sleep(self._die.uniform(0, self._weather.late_seconds_max))
                return

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = await reader.readexactly(HEAD_BYTES)
                body = await reader.readexactly(int.from_bytes(head[1:], "big") - 4)
                if head[:1] == b"C" and body.startswith(COMMITTED):
                    if self._falls("lost commit", self._weather.lost_commit):
                        return
                    if self._falls("late commit", self._weather.late_commit):
                        await asyncio.sleep(self._die.uniform(0, self._weather.late_seconds_max))
                writer.write(head + body)
                await writer.drain()
                if self._falls("cut answer", self._weather.cut_answer):
                    return


class FaultyLine:
    """Connections through a relay, good ones until it breaks loose."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self.faults = relay.faults

    def break_loose(self) -> None:
        """Begin with the faults."""
        self._relay.is_calm = False

    async def connect(self) -> LogConnection:
        """Open a connection for a log through the relay."""
        return await open_connection(self._relay.url, application="test")


@asynccontextmanager
async def faulty_line(url: str, seed: str, weather: Weather) -> AsyncIterator[FaultyLine]:
    """Yield a connection with these faults until the end of the block."""
    relay = Relay(url, random.Random(seed), weather)
    await relay.start()
    try:
        yield FaultyLine(relay)
    finally:
        await relay.close()
