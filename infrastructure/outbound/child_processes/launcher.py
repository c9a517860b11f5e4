"""Starts programs behind guards, so that none of their processes outlives this server.

Each program gets a small process, its guard (`guard_process.py`), forked from one fork server per
server (`fork_server.py`), so that a start costs about a millisecond. When this server dies, in
whatever way, the liveness pipes of its guards end and the guards kill everything below them. A
server that is frozen keeps its liveness pipes; under a limit on silence its guards do the same
when no heartbeat came for so long.

Linux reaches every descendant. macOS has no subreaper: there the process group of the program is
killed, and a descendant that left the group survives.

A process that this server forks without exec would hold the liveness pipes too: start such a
process with exec, as `subprocess` and multiprocessing's "spawn" do.
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

# Descriptors under way to the fork server count against this user's limit on open files.
OPENING_MAX = 8
OPEN_SECONDS_MAX = 20.0
OPEN_ATTEMPTS_MAX = 4
CLOSE_SECONDS_MAX = 20.0


class ProcessLaunchError(Exception):
    """No guard could be made; the program was not executed. The text says why."""


class ProcessLauncher:
    """Belongs to the event loop it is first used in. Open it once per server.

    With `silence_seconds_max` a program is killed, or never executed, when neither a heartbeat nor
    anything else was sent to its guard for so long; None is no limit. Raises ValueError for a limit
    that is no positive number.
    """

    def __init__(self, *, silence_seconds_max: float | None = None) -> None:
        if silence_seconds_max is not None and not 0 < silence_seconds_max < math.inf:
            raise ValueError("silence_seconds_max must be more than 0 seconds, or None: no limit")
        self._silence_seconds_max = silence_seconds_max
        self._client: ForkServerClient | None = None
        self._open: set[GuardedProcess] = set()
        self._closed = False
        self._starting = asyncio.Lock()
        self._opening = asyncio.Semaphore(OPENING_MAX)

    @property
    def fork_server_pid(self) -> int | None:
        """The process id of the fork server, if one was started."""
        return self._client.pid if self._client is not None else None

    async def start(self) -> None:
        """Starts the fork server; `open` would do it too. Raises ProcessLaunchError."""
        await self._fork_server()

    def heartbeat(self) -> None:
        """Tells every guard that this server is alive and may keep its programs. Never waits."""
        for process in self._open:
            process.heartbeat()

    async def close(self) -> None:
        """Ends every program, its guard, and the fork server. May be called again."""
        self._closed = True
        kills = [asyncio.create_task(process.kill()) for process in self._open]
        try:
            if kills:
                await asyncio.wait(kills, timeout=CLOSE_SECONDS_MAX)
            async with self._starting:
                client, self._client = self._client, None
                if client is not None:
                    await client.end()
        finally:
            for kill in kills:
                kill.cancel()
            await asyncio.gather(*kills, return_exceptions=True)

    async def open(self, program: Program) -> GuardedProcess:
        """Makes a guard for the program, which is not executed before `go()`.

        Raises ProcessLaunchError when no guard could be made, and OSError when this server has no
        descriptors left.
        """
        async with self._opening:
            for _ in range(OPEN_ATTEMPTS_MAX):
                client = await self._fork_server()
                process = GuardedProcess(program, self._open.discard, self._silence_seconds_max)
                self._open.add(process)
                try:
                    async with asyncio.timeout(OPEN_SECONDS_MAX):
                        opened = await process.open(client.send)
                except TimeoutError:
                    self._replace(client)
                    raise ProcessLaunchError(
                        f"no gate within {OPEN_SECONDS_MAX:g} seconds; the machine may be"
                        " overloaded: try again"
                    ) from None
                except ForkServerLostError:
                    self._replace(client)
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
            if self._client is not None and not self._client.is_alive():
                self._replace(self._client)
            if self._client is None:
                try:
                    client = ForkServerClient()
                    await client.ready()
                except (ForkServerStartError, OSError) as error:
                    raise ProcessLaunchError(str(error)) from error
                self._client = client
            return self._client

    def _replace(self, client: ForkServerClient) -> None:
        """Running guards go on without it."""
        client.discard()
        if self._client is client:
            self._client = None
