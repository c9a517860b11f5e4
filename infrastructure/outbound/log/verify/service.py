"""Verifications that a server starts, reads and stops. Each runs in a worker process with its own
connections, which ends with the server."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg_pool import AsyncConnectionPool

from application.concurrency.tasks import cancel_all
from application.log.event_log import LogUnavailableError
from application.ports.verifications import VERIFICATIONS_MAX, Difference, RecordedVerification
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.process import WorkerProcess, exit_with_holder, send_answer
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection
from infrastructure.outbound.log.verify.record import (
    IS_HELD,
    VerificationInProgressError,
    VerifyingProcess,
    run_recorded_verification,
)
from infrastructure.outbound.log.verify.verify import VerifyOrder

T = TypeVar("T")
BEGIN_SECONDS_MAX = 30.0
NICENESS = 10
"""A verification takes only spare processor time."""

_LATEST = (
    "SELECT number, coalesce(outcome, 'running'), started_by, origin, process, started_at,"
    " noted_at, ended_at, extract(epoch FROM coalesce(ended_at, CASE WHEN outcome IS NULL"
    " THEN clock_timestamp() ELSE noted_at END) - started_at)::float8, stop_requested_by, began,"
    " checked, last_position, head_hash, run_rows, session_rows, contents, transcripts, erased,"
    " difference_position, difference_kind, difference_text, failure"
    f" FROM verifications ORDER BY number DESC LIMIT {VERIFICATIONS_MAX}"
)
_STOP = (
    "UPDATE verifications SET stop_requested_by = coalesce(stop_requested_by, %s)"
    " WHERE number = %s AND outcome IS NULL"
)
_CHAIN_HASH = "SELECT chain_hash FROM events WHERE position = %s"


class ServedVerifications:
    """Verifications of a server; implements `LogVerifications`.

    Close it after use. `conninfo` is a function because the address may change with the database.
    """

    def __init__(
        self,
        pool: AsyncConnectionPool[LogConnection],
        conninfo: Callable[[], str],
        state_file: Path,
    ) -> None:
        self._pool = pool
        self._conninfo = conninfo
        self._state_file = state_file
        self._beginning = asyncio.Lock()
        self._following: asyncio.Task[Any] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def latest(self) -> tuple[RecordedVerification, ...]:
        """Return the recorded verifications, newest first."""
        async with borrow_connection(self._pool) as connection:
            rows = await _rows(connection)
            if not rows or rows[0].state != "running" or await _is_held(connection):
                return rows
            # It may have ended in between. Otherwise the lock is free while the row has no outcome.
            again = await _rows(connection)
        if not again or again[0].number != rows[0].number or again[0].state != "running":
            return again
        return (_broken_off(again[0]), *again[1:])

    async def start(self, started_by: str) -> bool:
        """Start a verification unless one is running. Return True if it was started.

        Raises:
            LogUnavailableError: It could not be started.
        """
        # Finish the start even if the caller is cancelled.
        return await asyncio.shield(self._in_background(self._start(started_by)))

    async def _start(self, started_by: str) -> bool:
        async with self._beginning:
            latest = await self.latest()
            if latest and latest[0].state == "running":
                return False
            if self._following is not None:
                await cancel_all([self._following])
            return await self._begin(VerifyingProcess.here(started_by, "server"))

    async def _begin(self, verifier: VerifyingProcess) -> bool:
        order = {
            "conninfo": self._conninfo(),
            "state_file": str(self._state_file),
            "started_by": verifier.started_by,
            "process": verifier.process,
        }
        # No await between the start of the process and the code that ends it: a cancellation
        # there would leave it running.
        process = WorkerProcess(work, order)
        try:
            answer = await _answer(process, BEGIN_SECONDS_MAX)
        except BaseException:
            process.__exit__()
            raise
        if "began" in answer:
            self._following = self._in_background(_answer(process, None))
            # A callback also runs if the task is cancelled before its first step.
            self._following.add_done_callback(lambda _: process.__exit__())
            return True
        await asyncio.to_thread(process.__exit__)
        if "under_way" in answer:
            return False
        raise LogUnavailableError(f"the verification was not started: {answer['failure']}")

    async def request_stop(self, requested_by: str) -> bool:
        """Ask the running verification to stop. Return False if none is running."""
        latest = await self.latest()
        if not latest or latest[0].state != "running":
            return False
        async with borrow_connection(self._pool) as connection:
            values = [requested_by, latest[0].number]
            return (await connection.execute(_STOP, values)).rowcount == 1

    async def chain_hash_at(self, position: int) -> bytes | None:
        """Return the chain hash stored at a position, unverified."""
        async with borrow_connection(self._pool) as connection:
            row = await (await connection.execute(_CHAIN_HASH, [position])).fetchone()
        return bytes(row[0]) if row is not None and row[0] is not None else None

    async def close(self) -> None:
        """End the verification that this process started; it is later read as broken off."""
        await cancel_all(self._tasks)

    def _in_background(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _rows(connection: LogConnection) -> tuple[RecordedVerification, ...]:
    return tuple(map(_verification, await (await connection.execute(_LATEST)).fetchall()))


def _verification(row: Sequence[Any]) -> RecordedVerification:
    *facts, position, kind, text, failure = row
    names = RecordedVerification.__dataclass_fields__
    difference = None
    if position is not None:
        difference = Difference(position, kind, text)
    known = dict(zip(names, facts, strict=False))
    return RecordedVerification(**known, difference=difference, failure=failure)


def _broken_off(found: RecordedVerification) -> RecordedVerification:
    seconds = (found.noted_at - found.started_at).total_seconds()
    return replace(found, state="broken-off", seconds=seconds)


async def _is_held(connection: LogConnection) -> bool:
    row = await (await connection.execute(IS_HELD)).fetchone()
    return row == (True,)


async def _answer(process: WorkerProcess, seconds: float | None) -> dict[str, Any]:
    """Return the next answer of a process, or a failure if it ends without one or takes too
    long."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(process.fileno(), wake)
    try:
        await asyncio.wait_for(readable, seconds)
    except TimeoutError:
        return {"failure": f"its process did not start within {seconds} seconds"}
    finally:
        loop.remove_reader(process.fileno())
    answer: dict[str, Any] | None = process.receive()
    return answer if answer is not None else {"failure": "its process ended; see the server's log"}


def work(order: dict[str, Any]) -> None:
    """Run as the process of a verification."""
    threading.Thread(target=exit_with_holder, daemon=True).start()
    os.nice(NICENESS)
    process = VerifyingProcess(order["started_by"], "server", order["process"])
    with contextlib.suppress(BrokenPipeError):
        try:
            run_recorded_verification(
                order["conninfo"],
                VerifyOrder(state_file=Path(order["state_file"])),
                process,
                on_begin=lambda: send_answer({"began": True}),
            )
        except VerificationInProgressError:
            send_answer({"under_way": True})
        except (UserError, psycopg.Error) as error:
            send_answer({"failure": str(error)[:500]})
