"""Connection to a database that goes dead: the peer acknowledges everything and answers nothing."""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

CHUNK_BYTES = 64 * 1024


class SilentLine:
    """Passes bytes between a client and PostgreSQL until it falls silent."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._tasks: set[asyncio.Task[Any]] = set()
        self._dead: set[asyncio.Task[Any]] = set()
        self._serving: set[asyncio.Task[Any]] = set()
        self.takes_new = True
        self.loses_answers_only = False
        self.url = ""

    def fall_silent(self, *, takes_new: bool = True, loses_answers_only: bool = False) -> None:
        """Pass nothing more on the open connections, nor on new ones if not `takes_new`.

        With `loses_answers_only`, requests still reach the database.
        """
        self.takes_new = takes_new
        self.loses_answers_only = loses_answers_only
        self._dead |= self._tasks

    async def close(self) -> None:
        """End all connections."""
        for pump in tuple(self._tasks):
            pump.cancel()
        if self._serving:
            await asyncio.wait(self._serving)

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        server, to_server = await asyncio.open_unix_connection(self._socket_path)
        pumps = [
            asyncio.create_task(self._pump(client, to_server, is_answer=False)),
            asyncio.create_task(self._pump(server, to_client, is_answer=True)),
        ]
        self._tasks.update(pumps)
        if not self.takes_new:
            self._dead.update(pumps)
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.wait(pumps)
        self._tasks.difference_update(pumps)
        for writer in (to_server, to_client):
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                is_lost = is_answer or not self.loses_answers_only
                if not (task in self._dead and is_lost):
                    writer.write(data)
                    await writer.drain()


@asynccontextmanager
async def silent_line(url: str) -> AsyncIterator[SilentLine]:
    """Yield a line to the database of `url`, which has its own `url`."""
    target = conninfo_to_dict(url)
    line = SilentLine(f"{target['host']}/.s.PGSQL.{target['port']}")
    with tempfile.TemporaryDirectory(prefix="spawnlog-line-") as folder:
        path = Path(folder) / ".s.PGSQL.5432"
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        server = await asyncio.start_unix_server(line.serve, sock=listening)
        line.url = make_conninfo(url, host=folder, port=5432)
        async with server:
            yield line
            server.close()
            await line.close()
