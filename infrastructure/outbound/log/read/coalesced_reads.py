"""Coalesced reads: concurrent look-ups sent to the database as one query.

There is no lingering and no caching. While a query runs, the next keys gather. Each key is queried
after it was requested, so the answer includes everything committed before the request.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from psycopg_pool import AsyncConnectionPool

from application.concurrency.tasks import with_timeout
from application.log.event_log import LogUnavailableError
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection

QUESTIONS_MAX = 2
"""Maximum number of concurrent queries of one kind. Queries that take long do not count: a slow one
must not delay the others."""


LONG_SECONDS = 1.0
ANSWER_SECONDS_MAX = 15.0
KEYS_MAX = 200
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
ReadMany = Callable[[LogConnection, Sequence[K]], Awaitable[Mapping[K, V]]]
"""Query for many keys; a key without an answer is missing from the result."""


class CoalescedReads(Generic[K, V]):
    """Look-ups of one kind by key."""

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
        """Return the answer for one key, or None if it has none.

        Raises:
            LogUnavailableError: The database is unavailable, or did not answer within
                `ANSWER_SECONDS_MAX`.
        """
        return await self._enqueue(key)

    async def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the answers for several keys; keys without one are missing.

        Raises:
            LogUnavailableError: As for `get`.
        """
        futures = {key: self._enqueue(key) for key in keys}
        try:
            answers = {key: await future for key, future in futures.items()}
        finally:
            for future in futures.values():
                # Only the first error is raised. Mark the others as retrieved.
                if future.done() and not future.cancelled():
                    future.exception()
                future.cancel()
        return {key: answer for key, answer in answers.items() if answer is not None}

    def _enqueue(self, key: K) -> "asyncio.Future[V | None]":
        # One future per caller: a caller that is cancelled takes nothing from the others.
        future: asyncio.Future[V | None] = asyncio.get_running_loop().create_future()
        self._queue.setdefault(key, []).append(future)
        if self._under_way < QUESTIONS_MAX or self._all_take_long():
            self._under_way += 1
            task = asyncio.create_task(self._ask_on())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return future

    def _all_take_long(self) -> bool:
        """Return True if all running queries have taken so long that another one should start. The
        pool limits their number."""
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
                    # Reached with open futures only if the task is cancelled at shutdown.
                    for futures in taken.values():
                        for future in futures:
                            future.cancel()
        finally:
            # Not in the task's done callback, which runs later: a caller in between would wait
            # forever.
            self._under_way -= 1
            self._started_at.pop(task, None)

    async def _answer(self, taken: Mapping[K, "list[asyncio.Future[V | None]]"]) -> None:
        try:
            answers = await with_timeout(self._read(list(taken)), ANSWER_SECONDS_MAX)
        except LogUnavailableError as error:
            _fail(taken.values(), error)
        except TimeoutError:
            why = LogUnavailableError("the database does not answer; retry in a moment")
            _fail(taken.values(), why)
        except Exception as error:
            if len(taken) == 1:
                _fail(taken.values(), error)
                return
            # One key failed the query. Query each one separately, so that the error reaches only
            # its callers.
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
