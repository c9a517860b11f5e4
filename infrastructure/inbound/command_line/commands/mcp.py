"""`spawnlog mcp`: relays MCP messages between standard streams and a server."""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator
from typing import Annotated

import typer

from infrastructure.inbound.command_line.client.options import ApiPlace

LINES_MAX = 64

SessionOption = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="KEY",
        help="Session for which the tools act. Default: the token's, else the main session.",
        show_default=False,
    ),
]


def relay_mcp(session: SessionOption = None, *, place: ApiPlace) -> None:
    """Serve the MCP tools over standard input and output.

    An agent starts this command as its MCP server. Requests are forwarded to a running spawnlog.
    """
    # Imported late: `--help` needs no HTTP library.
    from infrastructure.inbound.command_line.client.mcp_relay import McpRelay

    def write(line: bytes) -> None:
        try:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            # The client is gone and reads no answers; nothing is left to do.
            os._exit(0)

    relay = McpRelay(place.address, session, write)
    with contextlib.suppress(KeyboardInterrupt):
        if asyncio.run(relay.run(_lines_of_input())):
            raise typer.Exit(1)


async def _lines_of_input() -> AsyncIterator[bytes]:
    """Yield the lines of standard input.

    A thread reads them, since standard input may be a file; it does not keep the process alive. A
    line over MESSAGE_BYTES_MAX is cut to one byte more than that.
    """
    from infrastructure.inbound.command_line.client.mcp_relay import MESSAGE_BYTES_MAX

    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(LINES_MAX)

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed; nothing reads the lines.
            while line := sys.stdin.buffer.readline(MESSAGE_BYTES_MAX + 1):
                rest = line
                while len(rest) > MESSAGE_BYTES_MAX and not rest.endswith(b"\n"):
                    rest = sys.stdin.buffer.readline(MESSAGE_BYTES_MAX + 1)
                room.acquire()
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while line := await lines.get():
        room.release()
        yield line
