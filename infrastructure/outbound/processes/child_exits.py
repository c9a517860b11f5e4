"""Wakes a poll() when a child process has ended."""

import contextlib
import os
import signal
from types import FrameType


class ChildExits:
    """A descriptor that becomes readable with each SIGCHLD of this process."""

    def __init__(self) -> None:
        self.descriptor, self._write_end = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._write_end, False)
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore_signal)

    def forget(self) -> None:
        """Empties the descriptor; what has ended is then asked of waitpid."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.descriptor, 4096):
                pass

    def close(self) -> None:
        """For a forked process, which makes its own."""
        signal.set_wakeup_fd(-1)
        os.close(self.descriptor)
        os.close(self._write_end)


def _ignore_signal(_number: int, _frame: FrameType | None) -> None:
    pass
