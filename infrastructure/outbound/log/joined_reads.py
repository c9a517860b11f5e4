"""Reads that many ask at once, put to the database as one question.

There is no linger and nothing is kept: while one question is under way the next ones gather, and
each is asked after it was wanted, so that it sees everything that was committed by then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from psycopg_pool import AsyncConnectionPool

from application.ports.event_log import LogUnavailable
from infrastructure.outbound.log.connections import Connection, borrowed

QUESTIONS_MAX = 2
"""How many questions of a kind are under way at once: a slow one must not hold up all others."""
KEYS_MAX = 200

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

Ask = Callable[[Connection, Sequence[K]], Awaitable[Mapping[K, V]]]
"""Answers for keys; a key that is absent from the answer has none."""


class JoinedReads(Generic[K, V]):
    """Look-ups by key of one kind."""

    def __init__(self, pool: AsyncConnectionPool[Connection], ask: Ask[K, V]) -> None:
        self._pool = pool
        self._ask = ask
        self._wanted: dict[K, list[asyncio.Future[V | None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way = 0

    async def get(self, key: K) -> V | None:
        """The answer for one key. Raises `LogUnavailable` when the database is away."""
        return await self._want(key)

    async def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """The answers there are for several keys."""
        wanted = {key: self._want(key) for key in keys}
        try:
            answers = {key: await future for key, future in wanted.items()}
        finally:
            for future in wanted.values():
                # What failed after the first is nobody's: it was told once.
                if future.done() and not future.cancelled():
                    future.exception()
                future.cancel()
        return {key: answer for key, answer in answers.items() if answer is not None}

    def _want(self, key: K) -> "asyncio.Future[V | None]":
        # A future for each who asks: one who goes away takes nothing from the others.
        future: asyncio.Future[V | None] = asyncio.get_running_loop().create_future()
        self._wanted.setdefault(key, []).append(future)
        if self._under_way < QUESTIONS_MAX:
            self._under_way += 1
            task = asyncio.create_task(self._ask_on())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return future

    async def _ask_on(self) -> None:
        try:
            while self._wanted:
                taken = {key: self._wanted.pop(key) for key in list(self._wanted)[:KEYS_MAX]}
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

    async def _answer(self, taken: Mapping[K, "list[asyncio.Future[V | None]]"]) -> None:
        try:
            async with borrowed(self._pool) as connection:
                answers = await self._ask(connection, list(taken))
        except LogUnavailable as error:
            _fail(taken.values(), error)
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


def _fail(taken: Iterable["list[asyncio.Future[Any]]"], error: Exception) -> None:
    for futures in taken:
        for future in futures:
            if not future.done():
                future.set_exception(error)
