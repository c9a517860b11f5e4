"""Starts programs behind gates, so that none of their processes outlives this server.

Each program gets a small gate process (`guard.py`), forked from one warm process per server
(`fork_server.py`), so that a start costs about a millisecond. When this server dies, in whatever
way, the lifelines of its gates end and the gates kill everything below them. A server that is
frozen keeps its lifelines; under a limit on silence its gates do the same when no heartbeat came
for so long.

Linux reaches every descendant. macOS has no subreaper: there the process group of the program is
killed, and a descendant that left the group survives.

A process that this server forks without exec would hold the lifelines too: start such a process
with exec, as `subprocess` and multiprocessing's "spawn" do.
"""

import asyncio
import math

from infrastructure.outbound.child_processes.fork_server_client import (
    ForkServerClient,
    ForkServerLostError,
    ForkServerStartError,
)
from infrastructure.outbound.child_processes.guarded_process import GuardedProcess
from infrastructure.outbound.child_processes.program import Program

# Descriptors under way to the warm process count against this user's limit on open files.
OPENING_MAX = 8
OPEN_SECONDS_MAX = 20.0
OPEN_ATTEMPTS_MAX = 4
CLOSE_SECONDS_MAX = 20.0


class ProcessLaunchError(Exception):
    """No gate could be made; the program was not executed. The text says why."""


class ProcessLauncher:
    """Belongs to the event loop it is first used in. Open it once per server.

    With `silence_seconds_max` a program is killed, or never executed, when neither a heartbeat nor
    anything else was sent to its gate for so long; None is no limit. Raises ValueError for a limit
    that is no positive number.
    """

    def __init__(self, *, silence_seconds_max: float | None = None) -> None:
        if silence_seconds_max is not None and not 0 < silence_seconds_max < math.inf:
            raise ValueError("silence_seconds_max must be more than 0 seconds, or None: no limit")
        self._silence_seconds_max = silence_seconds_max
        self._warm: ForkServerClient | None = None
        self._open: set[GuardedProcess] = set()
        self._closed = False
        self._starting = asyncio.Lock()
        self._opening = asyncio.Semaphore(OPENING_MAX)

    @property
    def fork_server_pid(self) -> int | None:
        """The process id of the warm process, if one was started."""
        return self._warm.pid if self._warm is not None else None

    async def start(self) -> None:
        """Starts the warm process; `open` would do it too. Raises ProcessLaunchError."""
        await self._fork_server()

    def heartbeat(self) -> None:
        """Tells every gate that this server is alive and may keep its programs. Never waits."""
        for process in self._open:
            process.heartbeat()

    async def close(self) -> None:
        """Ends every program, its gate, and the warm process. May be called again."""
        self._closed = True
        kills = [asyncio.create_task(process.kill()) for process in self._open]
        try:
            if kills:
                await asyncio.wait(kills, timeout=CLOSE_SECONDS_MAX)
            async with self._starting:
                warm, self._warm = self._warm, None
                if warm is not None:
                    await warm.end()
        finally:
            for kill in kills:
                kill.cancel()
            await asyncio.gather(*kills, return_exceptions=True)

    async def open(self, program: Program) -> GuardedProcess:
        """Makes a gate for the program, which is not executed before `go()`.

        Raises ProcessLaunchError when no gate could be made, and OSError when this server has no
        descriptors left.
        """
        async with self._opening:
            for _ in range(OPEN_ATTEMPTS_MAX):
                warm = await self._fork_server()
                process = GuardedProcess(program, self._open.discard, self._silence_seconds_max)
                self._open.add(process)
                try:
                    async with asyncio.timeout(OPEN_SECONDS_MAX):
                        opened = await process.open(warm.send)
                except TimeoutError:
                    self._replace(warm)
                    raise ProcessLaunchError(
                        f"no gate within {OPEN_SECONDS_MAX:g} seconds; the machine may be"
                        " overloaded: try again"
                    ) from None
                except ForkServerLostError:
                    self._replace(warm)
                    continue
                if opened and not self._closed:
                    return process
                process.abandon()
                reason = process.reported_error()
                if reason is not None and not self._closed:
                    raise ProcessLaunchError(reason)
            raise ProcessLaunchError(f"no gate in {OPEN_ATTEMPTS_MAX} attempts: try again")

    async def _fork_server(self) -> ForkServerClient:
        async with self._starting:
            if self._closed:
                raise ProcessLaunchError("this server starts no more programs: it is stopping")
            if self._warm is not None and not self._warm.is_alive():
                self._replace(self._warm)
            if self._warm is None:
                try:
                    warm = ForkServerClient()
                    await warm.ready()
                except (ForkServerStartError, OSError) as error:
                    raise ProcessLaunchError(str(error)) from error
                self._warm = warm
            return self._warm

    def _replace(self, warm: ForkServerClient) -> None:
        """Running gates go on without it."""
        warm.discard()
        if self._warm is warm:
            self._warm = None
