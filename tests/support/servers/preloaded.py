"""Preloaded processes of the product's command, for servers that are started again and again.

A separate process forks for each start, so that imports are paid for once. The time that the
command itself takes to load is tested where it is started as users do.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[3]
LOADED = (
    "infrastructure.inbound.command_line.main",
    "infrastructure.server.operations",
    "infrastructure.server.lifecycle",
    "infrastructure.outbound.log.verify.verify",
    "anyio._backends._asyncio",
    "uvicorn.lifespan.off",
    "uvloop",
)
REQUEST_BYTES_MAX = 128 * 1024
STATUS_BYTES = 8


class PreloadedProcess:
    """A running command, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int, stdout: IO[str], status: int) -> None:
        self.pid = pid
        self.stdout: IO[str] | None = stdout
        self.returncode: int | None = None
        # Open while the object lives: one thread may wait for an end that another thread reads.
        self._status = status
        weakref.finalize(self, os.close, status)
        self._one_at_a_time = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""
        return self._read(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises `subprocess.TimeoutExpired`."""
        code = self._read(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def _read(self, timeout: float | None) -> int | None:
        if self.returncode is not None or not select.select([self._status], [], [], timeout)[0]:
            return self.returncode
        with self._one_at_a_time:
            if self.returncode is None:
                result = os.read(self._status, STATUS_BYTES)
                self.returncode = int(result) if result else -signal.SIGKILL
            return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Preloader:
    """The process that forks. It belongs to the process of the tests that started it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-m", __name__, str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._privileges = privileges()
        # Two threads that ask at once would take each other's answer.
        self._one_at_a_time = threading.Lock()

    def serves(self) -> bool:
        """Return True if a forked process equals one that is started now, with the same
        privileges.
        """
        return self._process.poll() is None and self._privileges == privileges()

    def start(
        self, argv: Sequence[str], *, environment: Mapping[str, str], stderr: int
    ) -> PreloadedProcess:
        """Start the command with these arguments."""
        with self._one_at_a_time:
            return self._start(argv, environment, stderr)

    def _start(
        self, argv: Sequence[str], environment: Mapping[str, str], stderr: int
    ) -> PreloadedProcess:
        mask = os.umask(0)
        os.umask(mask)
        shown, stdout = os.pipe()
        stdin = os.open(os.devnull, os.O_RDONLY)
        try:
            pid, status = self._fork(
                {
                    "argv": [*argv],
                    "environment": {**environment},
                    "folder": str(ROOT),
                    "umask": mask,
                },
                [stdin, stdout, stderr],
            )
        finally:
            os.close(stdin)
            os.close(stdout)
        return PreloadedProcess(pid, os.fdopen(shown, encoding="utf-8"), status)

    def fork(self, request: Mapping[str, Any], streams: Sequence[int]) -> tuple[int, int]:
        """Start a command on these standard streams: stdin, stdout, stderr.

        Returns:
            The process, and a descriptor from which its exit status can be read when it has ended.
        """
        with self._one_at_a_time:
            return self._fork(request, streams)

    def _fork(self, request: Mapping[str, Any], streams: Sequence[int]) -> tuple[int, int]:
        status, result = os.pipe()
        socket.send_fds(self._socket, [json.dumps(request).encode()], [*streams, result])
        os.close(result)
        return int(self._socket.recv(STATUS_BYTES * 2)), status

    def close(self) -> None:
        """End it; the processes that it has started continue."""
        self._socket.close()
        self._process.wait(10)


def privileges() -> tuple[object, ...]:
    """Return the rights and limits that a process inherits."""
    limits = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC)
    return (os.getresuid(), os.getresgid(), *map(resource.getrlimit, limits))


_preloaders: dict[int, Preloader] = {}
_making = threading.Lock()


def preloader() -> Preloader:
    """Return the preloader of this process."""
    with _making:
        if os.getpid() not in _preloaders:
            made = _preloaders[os.getpid()] = Preloader()
            atexit.register(made.close)
        return _preloaders[os.getpid()]


def run_command(*argv: str, seconds_max: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a command and return its output."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as stderr:
        process = preloader().start(argv, environment=os.environ, stderr=stderr.fileno())
        assert process.stdout is not None
        with process.stdout as stdout:
            shown = stdout.read()
        code = process.wait(seconds_max)
        stderr.seek(0)
        return subprocess.CompletedProcess(list(argv), code, shown, stderr.read())


# The rest runs in the forking process.


class _Forks:
    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._running: dict[int, int] = {}
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def serve(self) -> Sequence[str] | None:
        """Return None at the end or, in a forked process, the arguments of its command."""
        while True:
            sources: list[Any] = [self._requests, self._woken]
            ready, _, _ = select.select(sources, [], [])
            if self._woken in ready:
                os.read(self._woken, 512)
                self._reap()
            if self._requests in ready:
                message, descriptors, _, _ = socket.recv_fds(self._requests, REQUEST_BYTES_MAX, 4)
                if not message:
                    return None
                request = json.loads(message)
                pid = os.fork()
                if pid == 0:
                    self._become(request, *descriptors)
                    return list(request["argv"])
                *streams, result = descriptors
                for stream in streams:
                    os.close(stream)
                self._running[pid] = result
                self._requests.send(str(pid).encode())

    def _reap(self) -> None:
        for pid, pipe in list(self._running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                os.write(pipe, str(os.waitstatus_to_exitcode(status)).encode())
                os.close(pipe)
                del self._running[pid]

    def _become(
        self, request: dict[str, Any], stdin: int, stdout: int, stderr: int, pipe: int
    ) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        streams = (stdin, stdout, stderr)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, max(*streams, pipe, *self._running.values(), 64) + 1)
        # The existing stream objects still describe the streams of the preloading process.
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", 1, encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", closefd=False)
        os.umask(request["umask"])
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        time.tzset()


def _main() -> None:
    requests = socket.socket(fileno=int(sys.argv[1]))
    for name in LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    argv = _Forks(requests).serve()
    if argv is not None:
        requests.detach()
        sys.argv = ["spawnlog", *argv]
        _run(importlib.import_module(LOADED[0]).main)


def _run(main: Callable[[], None]) -> None:
    """Run the command, and end as Python does but for taking every module apart: that takes longer
    than most commands, and only the objects of cycles could complain then. They do so here."""
    try:
        main()
        code = 0
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        code = ended.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _main()
