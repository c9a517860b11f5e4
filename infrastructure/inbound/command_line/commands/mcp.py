"""`spawnlog mcp`: the tools of a server for a model, over standard input and output."""

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
        help="Session that the client is; without one that of the token, else the main session.",
        show_default=False,
    ),
]


def relay_mcp(session: SessionOption = None, *, place: ApiPlace) -> None:
    """Speak the Model Context Protocol over standard streams.

    As a server that an agent starts does: requests go to a running spawnlog.
    """
    # Here and not above: `--help` needs no HTTP library.
    from infrastructure.inbound.command_line.client.mcp_relay import McpRelay

    def write(line: bytes) -> None:
        try:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            # A client that is gone reads no answers, and nothing is left to be done for it.
            os._exit(0)

    relay = McpRelay(place.address, session, write)
    with contextlib.suppress(KeyboardInterrupt):
        if asyncio.run(relay.run(_lines_of_input())):
            raise typer.Exit(1)


async def _lines_of_input() -> AsyncIterator[bytes]:
    """The lines of standard input, which may be a file: they are read in a thread that does not
    keep the process."""
    from infrastructure.inbound.command_line.client.mcp_relay import MESSAGE_BYTES_MAX

    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(LINES_MAX)

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody listens any more.
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
