"""The exchange of the tables: caught up with the log, then swapped under the append lock."""

import asyncio
from collections.abc import Callable, Sequence

from psycopg import errors

from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.rebuild import tables
from infrastructure.outbound.log.rebuild.build import head_of
from infrastructure.outbound.log.rebuild.compare import count_differing_since
from infrastructure.outbound.log.rebuild.fold_part import Page, PartFold
from infrastructure.outbound.log.schema.append_lock import LOCK
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.format import format_of, require_known_format

NEAR_EVENTS = 100
"""So near to the head it comes before writers have to wait, if it can."""


BEHIND_EVENTS_MAX = 2_000
"""So many events may be left to fold while they wait, if writers are that quick."""


ROUNDS_MAX = 30
TABLE_WAIT_MS = 100
"""So long the exchange waits for those who read the tables; all who come later wait behind it."""


ATTEMPTS_MAX = 300
PAUSE_SECONDS = 0.25
PAUSE_SECONDS_MAX = 2.0


class SwapFailed(UserError):
    """The new tables are there and could not take the place of the old ones."""


class _HasGrown(Exception):
    """More events have come before the lock was taken than may be folded under it."""


class TableSwap:
    """`folds` are the parts of the new tables, indexes included; `guard` takes the locks, `working`
    folds and compares."""

    def __init__(
        self,
        guard: LogConnection,
        working: LogConnection,
        folds: Sequence[PartFold],
        shape: str,
        *,
        compare: bool,
    ) -> None:
        self._guard = guard
        self._working = working
        self._folds = folds
        self._shape = shape
        self._compare = compare
        self._differing = 0

    async def carry_out(self, on_attempt: Callable[[], None]) -> tuple[int, int]:
        """Swap, as soon as nobody who reads is in the way for long. Gives the head of the log at
        that moment, and how many live rows differed of those written since the bulk was compared.

        `SwapFailed` when it could not be done in `ATTEMPTS_MAX` attempts.
        """
        pause = PAUSE_SECONDS
        for _ in range(ATTEMPTS_MAX):
            on_attempt()
            await self._keep_up()
            try:
                return await self._swap(), self._differing
            except _HasGrown:
                continue
            except errors.LockNotAvailable:
                # Whoever waited behind us goes on first.
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
            except errors.IdleInTransactionSessionTimeout as error:
                raise SwapFailed(
                    "the last rows took too long to make while writers waited; run this again, it"
                    " goes on where it was"
                ) from error
            except errors.DependentObjectsStillExist as error:
                raise SwapFailed(
                    f"something of your own hangs on the tables ({error.diag.message_detail});"
                    " drop it, run this again, and make it anew"
                ) from error
        raise SwapFailed(
            "the tables were read without a break for minutes; end the long queries on them and"
            " run this again, it goes on where it was"
        )

    async def _keep_up(self) -> None:
        """Come near to the head while writers go on."""
        for _ in range(ROUNDS_MAX):
            head = await head_of(self._working)
            if self._behind(head) <= NEAR_EVENTS:
                return
            await self._fold_up_to(head)
        if self._behind(await head_of(self._working)) > BEHIND_EVENTS_MAX:
            raise SwapFailed(
                "the log grows faster than its rows can be made; run this again when it is quieter,"
                " it goes on where it was"
            )

    def _behind(self, head: int) -> int:
        return head - min(fold.position for fold in self._folds)

    async def _swap(self) -> int:
        async with self._guard.transaction():
            # In nobody's way but a vacuum's: an automatic one gives up for who waits for a second,
            # which is longer than anybody may wait for the lock below.
            await self._guard.execute(f"LOCK TABLE {tables.LIVE} IN SHARE UPDATE EXCLUSIVE MODE")
            await self._guard.execute(LOCK)
            require_known_format(await format_of(self._guard))
            head = await head_of(self._guard)
            if self._behind(head) > BEHIND_EVENTS_MAX:
                raise _HasGrown
            await self._fold_up_to(head)
            if await tables.shape(self._working) != self._shape:
                raise SwapFailed("the tables were migrated meanwhile; run this again")
            await self._guard.execute(f"SET LOCAL lock_timeout = {TABLE_WAIT_MS}")
            indexes = await tables.indexes_of(self._guard)
            await self._guard.execute(f"LOCK TABLE {tables.LIVE} IN ACCESS EXCLUSIVE MODE")
            await tables.exchange(self._guard, indexes)
        return head

    async def _fold_up_to(self, head: int) -> None:
        for fold in self._folds:
            async for page in fold.pages(head):
                if self._compare:
                    self._differing += await self._differing_in(page)

    async def _differing_in(self, page: Page) -> int:
        keys = {table: list(changes.keys) for table, changes in page.rows.items()}
        return await count_differing_since(self._working, page.after, page.upto, keys)
