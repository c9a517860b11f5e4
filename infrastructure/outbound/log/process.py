"""A process that works on the log beside this one, so that the work is not bound to one core.

What it has to do comes on its standard input, a line of JSON for each order, the first one when it
is started; each answer is a line of its standard output. It ends when its input does, in whatever
way its holder has ended.
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

# Neither the environment nor the arguments hold the database's address: others can read those.
# What is imported stays: to look for garbage in between takes a tenth of the start.
_PROGRAM = (
    "import gc, json, sys; gc.disable(); order = json.loads(sys.stdin.readline());"
    " sys.path[:] = order.pop('path'); from {module} import {name} as work;"
    " gc.freeze(); gc.enable(); work(order)"
)


class WorkerProcess:
    """One such process, which runs `work`, a function of a module, until the end of the block."""

    def __init__(self, work: Callable[[dict[str, Any]], None], order: dict[str, Any]) -> None:
        program = _PROGRAM.format(module=work.__module__, name=work.__name__)
        # A copy of this process has all imported, which else takes as long as 10,000 events. What
        # other threads hold, a copy could never let go.
        copies = sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1
        # Not in our terminal's group: an interrupt is ours to handle, and it ends with us.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=partial(_work_in_copy, work) if copies else None,  # noqa: PLW1509
        )
        self.send({"path": sys.path, **order})

    def send(self, order: Any) -> None:
        """Give an order. One that has ended gives no answer, which is how it is found out."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()

    def fileno(self) -> int:
        """What becomes readable when there is an answer, or none will come."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def receive(self) -> Any:
        """Return the next answer, or None if the process has ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def wait(self) -> int:
        """Its exit status, once it has ended."""
        return self._process.wait()

    def kill(self) -> None:
        """End it, if it has not ended."""
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
    """Be such a process, in place of the program that was to be run. Does not return."""
    status = 1
    try:
        # Locks and connections are our holder's, who also waits for one of these to be closed.
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
    """Be ended by signals as a program is that was just started."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def send_answer(answer: Any) -> None:
    """In such a process: give an answer to its holder."""
    print(json.dumps(answer), flush=True)


def exit_with_holder() -> None:
    """In a thread of such a process that takes no further orders: end it with its holder."""
    # The descriptor itself: the end of the process waits for whoever reads through a buffer.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


COLLECT_OBJECTS = 500_000


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage rarely within the block. Lines, events and states form no reference cycles,
    and the usual collections would take a third of the time."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
