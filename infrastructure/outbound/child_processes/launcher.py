"""Start programs behind guards, so that none of their processes outlives the server.

Each program has a small parent process, its guard (`guard_process.py`). Guards are forked from one
fork server per server (`fork_server.py`), so a start takes about a millisecond. When the server
dies, in whatever way, the liveness pipes of its guards close and the guards kill everything below
them. The pipes of a frozen server stay open; with `silence_seconds_max`, the guards kill their
programs when heartbeats stop.

On Linux the guard reaches every descendant. macOS has no subreaper: the guard kills the process
group of the program, and a descendant that left the group survives.

A process that the server forks without exec would keep the liveness pipes open. Start such a
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

# Descriptors in flight to the fork server count against this user's limit on open files.
OPENING_MAX = 8
OPEN_SECONDS_MAX = 20.0
OPEN_ATTEMPTS_MAX = 4
CLOSE_SECONDS_MAX = 20.0


class ProcessLaunchError(Exception):
    """No guard could be created; the program was not executed. The text says why."""


class ProcessLauncher:
    """Launcher of programs. Create one per server; it belongs to the event loop of its first use.

    Args:
        silence_seconds_max: A guard kills its program, or never executes it, if it gets neither a
            heartbeat nor anything else for this many seconds. None for no limit.

    Raises:
        ValueError: `silence_seconds_max` is not a positive finite number.
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
        """Process id of the fork server, or None if it was not started."""
        return self._client.pid if self._client is not None else None

    async def start(self) -> None:
        """Start the fork server now instead of with the first program. Raise ProcessLaunchError if
        it fails."""
        await self._fork_server()

    def heartbeat(self) -> None:
        """Send a heartbeat to every guard, without blocking."""
        for process in self._open:
            process.heartbeat()

    async def close(self) -> None:
        """End every program, its guard and the fork server. Idempotent."""
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
        """Create a guard for the program. The program is executed by `go()`.

        Raises:
            ProcessLaunchError: No guard could be created.
            OSError: The server has no free file descriptors.
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
                        f"could not start a guard process within {OPEN_SECONDS_MAX:g} seconds;"
                        " the machine may be"
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
            raise ProcessLaunchError(
                f"could not start a guard process in {OPEN_ATTEMPTS_MAX} attempts: try again"
            )

    async def _fork_server(self) -> ForkServerClient:
        async with self._starting:
            if self._closed:
                raise ProcessLaunchError("the server is stopping and starts no more programs")
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
        """Drop the fork server; the next program starts a new one. Running guards continue without
        it."""
        client.discard()
        if self._client is client:
            self._client = None
