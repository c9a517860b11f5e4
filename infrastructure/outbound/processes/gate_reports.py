"""What a gate says of its program, taken from its status pipe as it comes."""

import asyncio
import os
from collections.abc import Callable

from infrastructure.outbound.child_processes.program import Exit
from infrastructure.outbound.child_processes.protocol import (
    CODE,
    ERROR,
    KILLED,
    READY,
    SIGNAL,
    decode_report,
)

REPORT_BYTES_MAX = 64 * 1024


class GuardReports:
    """Owns the status pipe until the gate closes it. No task: callbacks of the loop.

    `ready` becomes the gate's pid, or None when the gate ended before it was ready. `ended`
    becomes the exit, once the gate has ended. Neither ever holds an exception. `reported` is what
    the gate itself said, if it said it.
    """

    def __init__(self, descriptor: int, when_ended: Callable[[], None]) -> None:
        os.set_blocking(descriptor, False)
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[int | None] = loop.create_future()
        self.ended: asyncio.Future[Exit] = loop.create_future()
        self._descriptor = descriptor
        self._loop = loop
        self._when_ended = when_ended
        self._text = b""
        self.reported: Exit | None = None
        self._gate_killed = False
        loop.add_reader(descriptor, self._take)

    def expect_no_report(self) -> None:
        """The holder kills the gate: what it did not report any more counts as killed."""
        self._gate_killed = True

    def _take(self) -> None:
        try:
            part = os.read(self._descriptor, 4096)
        except BlockingIOError:
            return
        if part and len(self._text) < REPORT_BYTES_MAX:
            self._text += part
            *lines, self._text = self._text.split(b"\n")
            for line in lines:
                self._read_line(*decode_report(line))
        elif not part:
            self._end()

    def _read_line(self, word: str, text: str) -> None:
        if word == READY:
            if not self.ready.done():
                self.ready.set_result(int(text))
        elif word == CODE:
            self.reported = Exit(code=int(text))
        elif word == SIGNAL:
            self.reported = Exit(signal=int(text))
        elif word in (KILLED, ERROR):
            self.reported = Exit(error=text, killed=word == KILLED)

    def _end(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        if not self.ready.done():
            self.ready.set_result(None)
        if not self.ended.done():
            text = "the gate of the program died; the program was killed with it"
            self.ended.set_result(self.reported or Exit(error=text, killed=self._gate_killed))
        when_ended, self._when_ended = self._when_ended, _do_nothing
        when_ended()


def _do_nothing() -> None:
    """In the place of a call that was made: the owner must not be kept alive by it."""
