"""A way to hold a whole server at an exact place, as if it was suspended there."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.support.waiting import wait_for


class Turnstile:
    """A pipe in place of the file that orders a server to die.

    The server blocks, with its event loop, wherever it would read the file. It never reads an
    order.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: int | None = None
        os.mkfifo(path)

    def hold(self, subject: str, is_there: Callable[[], object]) -> None:
        """Let the server continue from place to place until the condition holds."""
        wait_for(subject, lambda: self._is_held(is_there))

    def _is_held(self, is_there: Callable[[], object]) -> bool:
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return False
            raise
        # A process that waits for this pipe has completed its last step.
        if is_there():
            self._held = descriptor
            return True
        _go_on(descriptor)
        return False

    def let_go(self) -> None:
        """Let the server continue for good."""
        self._path.unlink(missing_ok=True)
        held, self._held = self._held, None
        if held is not None:
            _go_on(held)


def _go_on(number: int) -> None:
    with suppress(BrokenPipeError):
        os.write(number, b"go on")
    os.close(number)
