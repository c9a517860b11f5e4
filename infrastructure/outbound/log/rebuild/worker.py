"""Folds one part of the streams in a process of its own. Each position it has reached is an answer;
what went wrong is the last one."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from domain.values.refusals import CorruptHistory
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.process import (
    WorkerProcess,
    exit_with_holder,
    rare_collections,
    send_answer,
)
from infrastructure.outbound.log.read.fold_input import StreamPart
from infrastructure.outbound.log.rebuild.fold_part import PartFold
from infrastructure.outbound.log.schema.connections import (
    LIMITS,
    STATEMENTS_WITHOUT_LIMIT,
    WHOLE_TABLE_ANSWER_SECONDS_MAX,
    open_connection,
)

NICENESS = 5


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
        "conninfo": conninfo,
        "part": part,
        "position": position,
        "until": until,
        "page_events": page_events,
    }
    with WorkerProcess(work, order) as process:
        # To wait takes a thread, with which no other process starts as quickly.
        await asyncio.sleep(0)
        while (answer := await asyncio.to_thread(process.receive)) is not None:
            if isinstance(answer, dict):
                raise (CorruptHistory if answer["corrupt"] else PartWorkerLost)(answer["text"])
            position = answer
            on_position(position)
        status = await asyncio.to_thread(process.wait)
    if status != 0 or position != until:
        raise PartWorkerLost(
            f"a process of the rebuild ended too early (status {status}); run it again"
        )


def work(order: dict[str, Any]) -> None:
    """Be such a process."""
    threading.Thread(target=exit_with_holder, daemon=True).start()
    # Those who are served meanwhile go first.
    os.nice(NICENESS)
    try:
        with rare_collections():
            asyncio.run(_work(order))
    except Exception as error:
        corrupt = isinstance(error, CorruptHistory)
        text = str(error) if isinstance(error, CorruptHistory | UserError) else repr(error)
        send_answer({"corrupt": corrupt, "text": text[:2000]})
        sys.exit(1)


async def _work(order: dict[str, Any]) -> None:
    # Nobody waits for a page to be on disk: its rows and the position that says they are there are
    # lost together or not at all, and the exchange, which comes behind them, waits.
    settings = f"{LIMITS}; {STATEMENTS_WITHOUT_LIMIT}; SET synchronous_commit = off"
    async with await open_connection(
        order["conninfo"],
        application="rebuild",
        settings=settings,
        answer_seconds_max=WHOLE_TABLE_ANSWER_SECONDS_MAX,
    ) as connection:
        fold = PartFold(
            connection,
            StreamPart(*order["part"]),
            order["position"],
            page_events=order["page_events"],
        )
        async for page in fold.pages(order["until"]):
            send_answer(page.upto)
