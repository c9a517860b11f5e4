"""Server side of the fork server: start it, request guards, end it."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

from infrastructure.outbound.child_processes.pipes import PipeReader

START_SECONDS_MAX = 20.0
END_SECONDS_MAX = 20.0
COMPLAINT_BYTES_MAX = 4096
PROGRAM = Path(__file__).with_name("fork_server.py")

# Some interpreters need these variables of the dynamic loader to start. The fork server gets no
# others: programs that it starts can read its environment from /proc.
INHERITED_VARIABLES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class ForkServerStartError(Exception):
    """The fork server could not be started. The text says why."""


class ForkServerLostError(Exception):
    """The fork server is gone or does not accept requests."""


class ForkServerClient:
    """Client of one fork server; owns the only other end of its control socket."""

    def __init__(self) -> None:
        """Start the process without waiting for it.

        Raises:
            OSError: There are no free file descriptors or processes.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            complaints, stderr = os.pipe()
            try:
                self._process = _start(theirs, stderr)
            except BaseException:
                os.close(complaints)
                raise
            finally:
                os.close(stderr)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        self._control = ours
        self._complaints = PipeReader(complaints)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ready(self) -> None:
        """Wait until the fork server accepts requests.

        Raises:
            ForkServerStartError: It ended, or was not ready in time. The process is gone then.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                if await loop.sock_recv(self._control, 1):
                    self._complaints.close()
                    return
                complaint = await self._complaints.read(COMPLAINT_BYTES_MAX)
            reason = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        except TimeoutError:
            reason = f"it was not ready within {START_SECONDS_MAX:g} seconds"
        except BaseException:
            self.discard()
            raise
        await self.end(at_once=True)
        raise ForkServerStartError(
            f"the process that starts programs could not be started: {reason or 'it ended'}"
        )

    def send(self, descriptors: list[int]) -> None:
        """Request a guard that gets these descriptors. Raise ForkServerLostError if that fails."""
        try:
            socket.send_fds(self._control, [bytes([len(descriptors)])], descriptors)
        except OSError as error:
            raise ForkServerLostError(error.strerror) from error

    def is_alive(self) -> bool:
        """Return True if the process has not ended. Reap it if it has."""
        return self._process.poll() is None

    def discard(self) -> None:
        """Kill the process and wait at most one second for its end."""
        self._control.close()
        self._complaints.close()
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)

    async def end(self, *, at_once: bool = False) -> None:
        """Close the control socket, upon which the process exits. Kill it if it does not.

        Args:
            at_once: Kill the process without waiting for it to exit by itself.
        """
        self._control.close()
        self._complaints.close()
        try:
            if at_once:
                self._process.kill()
            await asyncio.to_thread(self._process.wait, END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.discard()
        except asyncio.CancelledError:
            self.discard()
            raise


def _start(control: socket.socket, stderr: int) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(PROGRAM)],
        stdin=control.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        env=environment,
        start_new_session=True,
    )
