"""Reads that many ask at once, put to the database as one question.

There is no linger and nothing is kept: while one question is under way the next ones gather, and
each is asked after it was wanted, so that it sees everything that was committed by then.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from psycopg_pool import AsyncConnectionPool

from application.concurrency.tasks import with_timeout
from application.log.event_log import LogUnavailable
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection

QUESTIONS_MAX = 2
"""How many questions of a kind are under way at once, not counting those that take long: a slow one
must not hold up all others."""


LONG_SECONDS = 1.0
ANSWER_SECONDS_MAX = 15.0
KEYS_MAX = 200
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
ReadMany = Callable[[LogConnection, Sequence[K]], Awaitable[Mapping[K, V]]]
"""Answers for keys; a key that is absent from the answer has none."""


class CoalescedReads(Generic[K, V]):
    """Look-ups by key of one kind."""

    def __init__(
        self,
        pool: AsyncConnectionPool[LogConnection],
        ask: ReadMany[K, V],
        *,
        keys_max: int = KEYS_MAX,
    ) -> None:
        self._pool = pool
        self._ask = ask
        self._keys_max = keys_max
        self._queue: dict[K, list[asyncio.Future[V | None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way = 0
        self._started_at: dict[asyncio.Task[None], float] = {}

    async def get(self, key: K) -> V | None:
        """The answer for one key. Raises `LogUnavailable` when the database is away, or says
        nothing for `ANSWER_SECONDS_MAX`."""
        return await self._enqueue(key)

    async def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """The answers there are for several keys."""
        futures = {key: self._enqueue(key) for key in keys}
        try:
            answers = {key: await future for key, future in futures.items()}
        finally:
            for future in futures.values():
                # What failed after the first is nobody's: it was told once.
                if future.done() and not future.cancelled():
                    future.exception()
                future.cancel()
        return {key: answer for key, answer in answers.items() if answer is not None}

    def _enqueue(self, key: K) -> "asyncio.Future[V | None]":
        # A future for each who asks: one who goes away takes nothing from the others.
        future: asyncio.Future[V | None] = asyncio.get_running_loop().create_future()
        self._queue.setdefault(key, []).append(future)
        if self._under_way < QUESTIONS_MAX or self._all_take_long():
            self._under_way += 1
            task = asyncio.create_task(self._ask_on())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return future

    def _all_take_long(self) -> bool:
        """Whether those who ask have waited for so long that another one should. The pool limits
        how many there can be."""
        long_ago = time.monotonic() - LONG_SECONDS
        quick = sum(1 for at in self._started_at.values() if at > long_ago)
        return quick + self._under_way - len(self._started_at) < QUESTIONS_MAX

    async def _ask_on(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            while self._queue:
                taken = {key: self._queue.pop(key) for key in list(self._queue)[: self._keys_max]}
                self._started_at[task] = time.monotonic()
                try:
                    await self._answer(taken)
                finally:
                    # Only whoever ends the process breaks a question off.
                    for futures in taken.values():
                        for future in futures:
                            future.cancel()
        finally:
            # Not when the task is done, a moment later: who asks in between would wait for ever.
            self._under_way -= 1
            self._started_at.pop(task, None)

    async def _answer(self, taken: Mapping[K, "list[asyncio.Future[V | None]]"]) -> None:
        try:
            answers = await with_timeout(self._read(list(taken)), ANSWER_SECONDS_MAX)
        except LogUnavailable as error:
            _fail(taken.values(), error)
        except TimeoutError:
            why = LogUnavailable("the database does not answer; ask again in a moment")
            _fail(taken.values(), why)
        except Exception as error:
            if len(taken) == 1:
                _fail(taken.values(), error)
                return
            # One key spoils the question: each by itself, so that it hurts only who asked for it.
            for key, futures in taken.items():
                await self._answer({key: futures})
        else:
            for key, futures in taken.items():
                answer = answers.get(key)
                for future in futures:
                    if not future.done():
                        future.set_result(answer)

    async def _read(self, keys: Sequence[K]) -> Mapping[K, V]:
        async with borrow_connection(self._pool) as connection:
            return await self._ask(connection, keys)


def _fail(taken: Iterable["list[asyncio.Future[Any]]"], error: Exception) -> None:
    for futures in taken:
        for future in futures:
            if not future.done():
                future.set_exception(error)
