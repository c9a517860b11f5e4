"""Worker process that folds one part of the streams. Each position that it reaches is an answer; an
error is its last answer."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from domain.values.refusals import CorruptHistoryError
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


class WorkerLostError(UserError):
    """A worker failed before its part was complete."""


async def fold_in_process(
    conninfo: str,
    part: StreamPart,
    position: int,
    until: int,
    *,
    page_events: int,
    on_position: Callable[[int], None],
) -> None:
    """Fold a part from `position` up to `until` in a worker process.

    Raises:
        CorruptHistoryError: An event cannot be folded.
        WorkerLostError: The worker failed for another reason.
    """
    order = {
        "conninfo": conninfo,
        "part": part,
        "position": position,
        "until": until,
        "page_events": page_events,
    }
    with WorkerProcess(work, order) as process:
        # Let the other workers start first: waiting takes a thread, and forking is only possible
        # without threads.
        await asyncio.sleep(0)
        while (answer := await asyncio.to_thread(process.receive)) is not None:
            if isinstance(answer, dict):
                raise (CorruptHistoryError if answer["corrupt"] else WorkerLostError)(
                    answer["text"]
                )
            position = answer
            on_position(position)
        status = await asyncio.to_thread(process.wait)
    if status != 0 or position != until:
        raise WorkerLostError(
            f"a process of the rebuild ended too early (status {status}); run it again"
        )


def work(order: dict[str, Any]) -> None:
    """Run as the worker process."""
    threading.Thread(target=exit_with_holder, daemon=True).start()
    # Requests of running servers have priority.
    os.nice(NICENESS)
    try:
        with rare_collections():
            asyncio.run(_work(order))
    except Exception as error:
        corrupt = isinstance(error, CorruptHistoryError)
        text = str(error) if isinstance(error, CorruptHistoryError | UserError) else repr(error)
        send_answer({"corrupt": corrupt, "text": text[:2000]})
        sys.exit(1)


async def _work(order: dict[str, Any]) -> None:
    # No page waits for the disk: its rows and the position that covers them are lost together or
    # not at all. The later swap commits synchronously, and so makes them durable.
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
