"""Table swap: the new tables catch up with the log and replace the live ones under the append
lock."""

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
"""The fold catches up to within this many events of the head before it makes writers wait, if it
can."""


BEHIND_EVENTS_MAX = 2_000
"""Under the lock, at most this many events are left to fold, for a log with fast writers."""


ROUNDS_MAX = 30
TABLE_WAIT_MS = 100
"""How long the swap waits for current readers of the tables; readers that come later queue up after
it."""


ATTEMPTS_MAX = 300
PAUSE_SECONDS = 0.25
PAUSE_SECONDS_MAX = 2.0


class TableSwapError(UserError):
    """The new tables are complete but could not replace the live ones."""


class _HasGrownError(Exception):
    """More events arrived before the lock was taken than may be folded under it."""


class TableSwap:
    """Swap of the new tables with the live ones.

    `folds` are the parts of the new tables, indexes included. `guard` takes the locks; `working`
    folds and compares.
    """

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
        """Swap the tables as soon as no reader holds them for long.

        Returns:
            The head of the log at the swap, and the number of differing live rows among those
            written since the bulk was compared.

        Raises:
            TableSwapError: The swap failed in `ATTEMPTS_MAX` attempts, or for a reason that another
                attempt would not change.
        """
        pause = PAUSE_SECONDS
        for _ in range(ATTEMPTS_MAX):
            on_attempt()
            await self._keep_up()
            try:
                return await self._swap(), self._differing
            except _HasGrownError:
                continue
            except errors.LockNotAvailable:
                # Let the readers that queued up after this lock request proceed.
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
            except errors.IdleInTransactionSessionTimeout as error:
                raise TableSwapError(
                    "rebuilding the last rows took too long while writers waited; run this again,"
                    " it resumes where it stopped"
                ) from error
            except errors.DependentObjectsStillExist as error:
                raise TableSwapError(
                    "another database object depends on the tables"
                    f" ({error.diag.message_detail}); drop it, run this again, and create it again"
                ) from error
        raise TableSwapError(
            "queries held the tables for minutes without a break; end the long queries and run"
            " this again, it resumes where it stopped"
        )

    async def _keep_up(self) -> None:
        """Catch up to near the head while writers continue."""
        for _ in range(ROUNDS_MAX):
            head = await head_of(self._working)
            if self._lag(head) <= NEAR_EVENTS:
                return
            await self._fold_up_to(head)
        if self._lag(await head_of(self._working)) > BEHIND_EVENTS_MAX:
            raise TableSwapError(
                "the log grows faster than its rows can be rebuilt; run this again when there are"
                " fewer writes, it resumes where it stopped"
            )

    def _lag(self, head: int) -> int:
        return head - min(fold.position for fold in self._folds)

    async def _swap(self) -> int:
        async with self._guard.transaction():
            # This lock blocks only vacuums. An automatic vacuum yields to a waiter after a second,
            # which is longer than the wait for the exclusive lock below.
            await self._guard.execute(f"LOCK TABLE {tables.LIVE} IN SHARE UPDATE EXCLUSIVE MODE")
            await self._guard.execute(LOCK)
            require_known_format(await format_of(self._guard))
            head = await head_of(self._guard)
            if self._lag(head) > BEHIND_EVENTS_MAX:
                raise _HasGrownError
            await self._fold_up_to(head)
            if await tables.shape(self._working) != self._shape:
                raise TableSwapError("the tables were migrated in the meantime; run this again")
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
