"""Process that writes to a log and is stopped at one step with the append lock.

`python -m tests.support.faults.lock_steps ORDER`, where ORDER is a `StepOrder` as JSON. It records
one session after the other until its standard input ends, and prints number and position of each
confirmed one. Its statements with the lock are in the table `STATEMENTS`.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import count, product
from subprocess import PIPE
from typing import Any

import psycopg
from uuid_utils.compat import uuid7

from application.log.event_log import Decision, StagedFile, Submission
from domain.values.record import session_stream
from infrastructure.outbound.log.append import tenure
from infrastructure.outbound.log.schema.append_lock import LOCK_KEY
from infrastructure.outbound.log.schema.connections import (
    LogConnection,
    open_connection,
    session_limits,
)
from tests.support.builders.submissions import key, seen, submission
from tests.support.servers.embedded_servers import PROJECT
from tests.support.servers.running_log import running_on
from tests.support.waiting import until

STATEMENTS = {
    "try": "SELECT CASE WHEN pg_try_advisory_lock(",
    "wait": "SELECT pg_advisory_lock(",
    "begin": "BEGIN",
    "stage": "INSERT INTO staged_files",
    "store": "WITH ",
    "commit": "COMMIT",
    "tell": "SELECT pg_notify(",
    "give_up": "SELECT pg_advisory_unlock({key}); SET",
    "retake": "SELECT pg_advisory_unlock({key}); SELECT",
}
"""Beginning of each statement. A batch of several statements sends `begin`, `stage` and
`commit`.
"""
IN_TRANSACTION = ("begin", "stage", "commit")
MOMENTS = [*product(("before", "during"), STATEMENTS), ("after", "give_up")]
"""Before a statement is sent, when it is sent but no answer is read, and after the last one."""
STAGED_BYTES = 4 * 1024 * 1024
"""More than a socket takes at once: during `stage` a part of the statement is not sent yet."""
FROZEN_MILLISECONDS_MAX = 500
ARMED_AT = 10
"""Number of sessions that are recorded first, so that the process knows as much as a holder."""


@dataclass(frozen=True)
class StepOrder:
    """Step at which the process stops, and the signal."""

    url: str
    moment: str
    step: str
    signal: int

    def text(self) -> str:
        """Return the argument of the command."""
        return json.dumps(asdict(self))


def _stop_at(order: StepOrder) -> "asyncio.Event":
    """Stop once at the step, from when the event is set."""
    armed = asyncio.Event()
    begin = STATEMENTS[order.step].format(key=LOCK_KEY)
    execute = psycopg.AsyncCursor.execute

    def stop() -> None:
        if armed.is_set():
            armed.clear()
            os.kill(os.getpid(), order.signal)

    async def stopping(self: Any, query: Any, *values: Any, **more: Any) -> Any:
        is_step = str(query).startswith(begin)
        if is_step and order.moment == "before":
            stop()
        elif is_step and order.moment == "during":
            # The loop calls it as soon as the statement is sent and must be waited for.
            asyncio.get_running_loop().call_soon(stop)
        executed = await execute(self, query, *values, **more)
        if is_step and order.moment == "after":
            stop()
        return executed

    psycopg.AsyncCursor.execute = stopping  # type: ignore[method-assign]
    return armed


def _recording(name: str, staged: list[StagedFile]) -> Submission[None]:
    decided = Decision(None, [seen(name)], staged=staged)
    return submission(lambda _: decided, session_stream(name))


async def main(order: StepOrder) -> None:
    """Record until standard input ends."""
    armed = _stop_at(order)
    tenure.FROZEN_MILLISECONDS_MAX = FROZEN_MILLISECONDS_MAX
    if order.step == "retake":
        tenure.TENURE_SECONDS_MAX = 0.0
    is_staged = order.step in IN_TRANSACTION
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))

    async def connect() -> LogConnection:
        limits = session_limits(idle_ms=FROZEN_MILLISECONDS_MAX)
        return await open_connection(order.url, application="test", settings=limits)

    async with running_on(order.url, connect=connect) as running:
        if order.step == "retake":
            running.tail.on_give_up = lambda: None
        for number in count(1):
            if ended.done():
                return
            if number == ARMED_AT:
                armed.set()
            name = key(f"stopped-{number}")
            staged = [StagedFile(uuid7(), 0, bytes(STAGED_BYTES))] if is_staged else []
            appended = await running.log.submit(_recording(name, staged))
            print(name, appended.position, flush=True)


class SteppingProcess:
    """Such a process, as its tests see it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._listening = asyncio.create_task(self._listen())
        self.confirmed: dict[str, int] = {}

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            name, position = line.split()
            self.confirmed[name.decode()] = int(position)

    async def stopped(self) -> None:
        """Wait until it is killed or frozen."""

        async def is_stopped() -> bool:
            with suppress(ChildProcessError):
                # Only the event loop waits for a killed process.
                wanted = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
                return os.waitid(os.P_PID, self._process.pid, wanted) is not None
            assert self._process.returncode in (None, -signal.SIGKILL)
            return self._process.returncode is not None

        await until(is_stopped, "the process has come to its step", seconds=20)

    async def go_on(self) -> None:
        """Let a frozen process continue and record some more."""
        self._process.send_signal(signal.SIGCONT)
        enough = len(self.confirmed) + ARMED_AT

        async def has_more() -> bool:
            return len(self.confirmed) >= enough

        await until(has_more, "the process records again", seconds=20)

    async def end(self) -> None:
        """Let it end, and read its output to the end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._listening


@asynccontextmanager
async def stepping(order: StepOrder) -> AsyncIterator[SteppingProcess]:
    """Such a process until the end of the block."""
    module = "tests.support.faults.lock_steps"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, order.text()), cwd=PROJECT, stdin=PIPE, stdout=PIPE
    )
    try:
        yield SteppingProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(main(StepOrder(**json.loads(sys.argv[1]))))
