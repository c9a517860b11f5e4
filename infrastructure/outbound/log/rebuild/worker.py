"""A process that folds one part of the streams, so that a rebuild is not bound to one core.

What it has to do is on its standard input, which then stays open as long as its holder lives: when
that ends, in whatever way, the process ends too. Each position it has reached is a line of its
standard output; what went wrong is its last line, behind a `!`.
"""

import asyncio
import contextlib
import gc
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from domain.values.refusals import CorruptHistory
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.rebuild.fold_pages import StreamPart
from infrastructure.outbound.log.rebuild.fold_part import PartFold
from infrastructure.outbound.log.schema.connections import open_connection

END_SECONDS_MAX = 10.0
NICENESS = 5
LINE_BYTES_MAX = 64 * 1024

# Neither the environment nor the arguments hold the database's address: others can read those.
_PROGRAM = (
    "import json, sys; order = json.loads(sys.stdin.readline()); sys.path[:] = order['path'];"
    " from infrastructure.outbound.log.rebuild.worker import work; work(order)"
)


class PartWorkerLost(UserError):
    """A worker ended before its part was done."""


async def fold_in_process(
    conninfo: str,
    part: StreamPart,
    position: int,
    until: int,
    *,
    page_events: int,
    on_position: Callable[[int], None],
) -> None:
    """Fold a part from `position` up to `until` in a process of its own.

    `CorruptHistory` when an event cannot be folded, `PartWorkerLost` for anything else.
    """
    order = {
        "path": sys.path,
        "conninfo": conninfo,
        "part": part,
        "position": position,
        "until": until,
        "page_events": page_events,
    }
    async with _start_process() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        await process.stdin.drain()
        while line := (await process.stdout.readline()).decode(errors="replace").strip():
            if line.startswith("!"):
                problem = json.loads(line[1:])
                raise (CorruptHistory if problem["corrupt"] else PartWorkerLost)(problem["text"])
            position = int(line)
            on_position(position)
        status = await process.wait()
    if status != 0 or position != until:
        raise PartWorkerLost(
            f"a process of the rebuild ended too early (status {status}); run it again"
        )


@contextlib.asynccontextmanager
async def _start_process() -> AsyncIterator[asyncio.subprocess.Process]:
    """Not in our terminal's group: an interrupt is ours to handle, and it ends with us."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-c", _PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_BYTES_MAX,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await asyncio.wait_for(process.wait(), END_SECONDS_MAX)
        if process.stdin is not None:
            process.stdin.close()


def work(order: dict[str, Any]) -> None:
    """Be such a process."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    # Those who are served meanwhile go first.
    os.nice(NICENESS)
    # States have no circles, so they go by themselves; to look for circles costs a third of it.
    gc.set_threshold(500_000, 20, 100)
    try:
        asyncio.run(_work(order))
    except Exception as error:
        corrupt = isinstance(error, CorruptHistory)
        text = str(error) if isinstance(error, CorruptHistory | UserError) else repr(error)
        print("!" + json.dumps({"corrupt": corrupt, "text": text[:2000]}), flush=True)
        sys.exit(1)


async def _work(order: dict[str, Any]) -> None:
    async with await open_connection(order["conninfo"], application="rebuild") as connection:
        # Nobody waits for a page to be on disk: its rows and the position that says they are there
        # are lost together or not at all, and the exchange, which comes behind them, waits.
        await connection.execute("SET statement_timeout = 0; SET synchronous_commit = off")
        fold = PartFold(
            connection,
            StreamPart(*order["part"]),
            order["position"],
            page_events=order["page_events"],
        )
        async for page in fold.pages(order["until"]):
            print(page.upto, flush=True)


def _exit_with_parent() -> None:
    # The descriptor itself: the end of the process waits for whoever reads through a buffer.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)
