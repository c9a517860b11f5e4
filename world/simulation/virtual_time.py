"""Event loop on virtual time, with processes that die or freeze between two steps.

Nothing sleeps and nothing runs in a thread: if no callback is ready, the clock jumps to the next
timer. A callback belongs to the process in whose context it was scheduled. No callback of a dead or
frozen process runs, so it stops between any two awaits, without a `finally`.
"""

import asyncio
import heapq
import random
import time
from asyncio import base_events
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Given = TypeVarTuple("Given")
TURNS_MAX = 300_000
"""Maximum turns of the loop. A life takes some thousands."""


class StuckError(AssertionError):
    """The loop has nothing left to do, or does not end."""


class SimulatedProcess:
    """A process that may die or freeze. `at_step` is called with the number of each of its
    steps.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.is_frozen = False
        self.steps = 0
        self.at_step: Callable[[int], None] | None = None
        self.held: list[asyncio.Handle] = []

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start a task of this process."""
        context = copy_context()
        context.run(_process.set, self)
        return asyncio.get_running_loop().create_task(work, context=context)

    def takes(self, handle: asyncio.Handle) -> bool:
        """Return True if a callback may run now; otherwise hold it back."""
        if not (self.is_dead or self.is_frozen):
            self.steps += 1
            if self.at_step is None:
                return True
            self.at_step(self.steps)
            if not (self.is_dead or self.is_frozen):
                return True
        self.held.append(handle)
        return False


_process: ContextVar[SimulatedProcess | None] = ContextVar("process", default=None)


class NumberedTask(asyncio.Task[Any]):
    """Task whose hash depends only on its creation order, so that sets of tasks iterate
    reproducibly."""

    count = 0

    def __init__(self, *arguments: Any, **more: Any) -> None:
        NumberedTask.count += 1
        self._number = NumberedTask.count
        super().__init__(*arguments, **more)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(base_events.BaseEventLoop):
    """Event loop that runs callbacks in order, on a clock of its own."""

    _ready: Any
    _scheduled: list[tuple[float, int, asyncio.TimerHandle]]

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self.turns = 0
        self._timers = 0
        self._tasks: list[NumberedTask] = []
        self.set_task_factory(self._new_task)

    def _new_task(self, _: object, work: Any, **more: Any) -> NumberedTask:
        task = NumberedTask(work, loop=self, **more)
        self._tasks.append(task)
        return task

    def unfinished_tasks(self) -> list[NumberedTask]:
        """Return the tasks that are not done, in order of creation."""
        return [task for task in self._tasks if not task.done()]

    def time(self) -> float:
        """Return the seconds since the beginning."""
        return self._now

    def call_soon(
        self,
        callback: Callable[[Unpack[Given]], object],
        *args: *Given,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Schedule a callback, without the checks of other loops."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Given]], object],
        *args: *Given,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a timer. Timers of one instant fire in order of creation."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers += 1
        heapq.heappush(self._scheduled, (when, self._timers, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: a cancelled timer is skipped when it is due."""

    def thaw(self, process: SimulatedProcess) -> None:
        """Let a process continue where it stopped."""
        process.is_frozen = process.is_dead = False
        self._ready.extend(process.held)
        process.held.clear()

    def run_in_executor(
        self, executor: object, func: Callable[[Unpack[Given]], T], *args: *Given
    ) -> "asyncio.Future[T]":
        """Call the function at once, because there are no threads."""
        answer: asyncio.Future[T] = self.create_future()
        try:
            answer.set_result(func(*args))
        except Exception as error:
            answer.set_exception(error)
        return answer

    def _run_once(self) -> None:
        scheduled, ready = self._scheduled, self._ready
        if not ready:
            while scheduled and scheduled[0][2].cancelled():
                heapq.heappop(scheduled)
            if not scheduled:
                raise StuckError("nothing is left to do")
            self._now = max(self._now, scheduled[0][0])
        while scheduled and scheduled[0][0] <= self._now:
            ready.append(heapq.heappop(scheduled)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            process = handle._context.get(_process)
            if process is None or process.takes(handle):
                handle._run()
        self.turns += 1
        if self.turns > TURNS_MAX:
            raise StuckError("there is no end of it")

    def _write_to_self(self) -> None:
        """Do nothing: there is no other thread to wake the loop for."""


@contextmanager
def virtual_time(seed: int) -> Iterator[VirtualLoop]:
    """Yield a loop whose virtual clock replaces the process's clocks until the end of the block."""
    loop, real, state = VirtualLoop(), time.monotonic, random.getstate()
    time.monotonic = loop.time
    NumberedTask.count = 0
    random.seed(seed)
    try:
        yield loop
    finally:
        time.monotonic = real
        random.setstate(state)
        loop.close()
