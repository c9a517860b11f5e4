"""Worker processes for work on the log that would saturate one core.

A worker reads orders from standard input, one line of JSON each, the first one at its start. It
writes each answer as a line to standard output. It ends when its input ends, however its parent has
ended.
"""

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

END_SECONDS_MAX = 10.0

# The order is sent on standard input: other users can read environment and arguments, and it has
# the database's address. Imported modules stay, so garbage collection during the imports would
# waste a tenth of the start.
_PROGRAM = (
    "import gc, json, sys; gc.disable(); order = json.loads(sys.stdin.readline());"
    " sys.path[:] = order.pop('path'); from {module} import {name} as work;"
    " gc.freeze(); gc.enable(); work(order)"
)


class WorkerProcess:
    """Worker process that runs `work`, a function of a module, until the end of the `with`
    block."""

    def __init__(self, work: Callable[[dict[str, Any]], None], order: dict[str, Any]) -> None:
        program = _PROGRAM.format(module=work.__module__, name=work.__name__)
        # A fork has all modules imported; importing them takes as long as 10,000 events. With other
        # threads it is unsafe: the fork could never release their locks.
        forks = sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1
        # A session of its own: this process handles an interrupt of the terminal, and the worker
        # ends with it.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=partial(_work_in_copy, work) if forks else None,  # noqa: PLW1509
        )
        self.send({"path": sys.path, **order})

    def send(self, order: Any) -> None:
        """Send an order. If the process has ended, do nothing: `receive` then returns None."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()

    def fileno(self) -> int:
        """Return the descriptor that becomes readable on an answer or at the end of the process."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def receive(self) -> Any:
        """Return the next answer, or None if the process has ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def wait(self) -> int:
        """Wait for the end of the process and return its exit status."""
        return self._process.wait()

    def kill(self) -> None:
        """Kill the process; no-op if it has ended."""
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._process.wait(END_SECONDS_MAX)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _work_in_copy(work: Callable[[dict[str, Any]], None]) -> None:
    """Run the worker in the forked child instead of executing the program. Does not return."""
    status = 1
    try:
        # Inherited locks and connections belong to the parent, and its `Popen` waits for an
        # inherited pipe to be closed.
        _forget_signals()
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            if descriptor > 2:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        order = json.loads(sys.stdin.readline())
        del order["path"]
        gc.freeze()
        gc.enable()
        work(order)
        status = 0
    except SystemExit:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _forget_signals() -> None:
    """Reset the signal handlers to those of a newly started program."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def send_answer(answer: Any) -> None:
    """Send an answer from a worker to its parent."""
    print(json.dumps(answer), flush=True)


def exit_with_holder() -> None:
    """Exit when standard input ends. Run it in a thread of a worker that takes no further
    orders."""
    # Read the descriptor itself: a thread inside a buffered read would delay the end of the
    # process.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


COLLECT_OBJECTS = 500_000


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage rarely within the block. Lines, events and states form no reference cycles,
    and regular collections would take a third of the time."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
