"""The last steps of a forked process before it becomes the program."""

import contextlib
import os
import signal
from typing import NoReturn

from infrastructure.outbound.child_processes.protocol import Spec
from infrastructure.outbound.processes.parenthood import ProcessControl

# Everything the gate opened is close-on-exec; this closes it a second way.
DESCRIPTOR_MAX = 256
NEVER_EXECUTED = 127


def execute_program(
    spec: Spec, streams: tuple[int, int, int], gate: int, failure: int, parenthood: ProcessControl
) -> NoReturn:
    """Executes the program, or writes one line to `failure` that says why it could not be."""
    place = "it"
    try:
        os.setsid()
        parenthood.die_with(gate)
        for target, source in enumerate(streams):
            os.dup2(source, target)
        os.closerange(3, failure)
        os.closerange(failure + 1, DESCRIPTOR_MAX)
        reset_signals()
        if spec.cwd:
            place = f"the working directory {os.fsdecode(spec.cwd)!r}"
            os.chdir(spec.cwd)
        place = repr(os.fsdecode(spec.argv[0]))
        os.execvpe(spec.argv[0], spec.argv, spec.env)  # noqa: S606 - a shell is the last thing wanted
    except BaseException as error:
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        text = f"could not be executed: {place}: {reason}"
        with contextlib.suppress(OSError):
            os.write(failure, text.encode(errors="backslashreplace")[:4000])
    os._exit(NEVER_EXECUTED)


def reset_signals() -> None:
    """Default dispositions, nothing blocked: what was ignored would stay so across exec."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
