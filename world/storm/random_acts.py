"""Random acts of a caller of the log: alone, in a race, in vain, and repeated."""

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count

from uuid_utils.compat import uuid7

from application.log.event_log import (
    AlreadyReserved,
    Content,
    Decision,
    DecisionContext,
    LogUnavailableError,
    Reservation,
    StoredAnswer,
    Submission,
)
from domain.values.record import ContentRef
from domain.values.refusals import Rejected
from tests.support.builders.storytelling import run_id
from tests.support.builders.submissions import (
    SeenBefore,
    failing_with,
    key,
    observing,
    seen,
    submission,
)
from world.storm.noting_log import Hurt, Notebook, NotingLog, Spoiled

SESSIONS_AT_ONCE_MAX = 4
Act = Callable[[], Awaitable[None]]


class RandomActs:
    """Caller that draws its next request at random. Its keys begin with `name`."""

    def __init__(self, log: NotingLog, notebook: Notebook, name: str, die: random.Random) -> None:
        self._log = log
        self._notebook = notebook
        self._name = name
        self._die = die
        self._numbers = count(1)
        self._races = count(1)

    def table(self) -> dict[Act, int]:
        """Return the possible acts with their weights."""
        return {
            self.observe: 6,
            self.observe_several: 6,
            self.race: 4,
            self.race_among_several: 4,
            self.fail: 2,
            self.poison: 1,
            self.reserve: 4,
        }

    async def next(self) -> None:
        """Perform a random act."""
        table = self.table()
        (act,) = self._die.choices(list(table), weights=list(table.values()))
        with suppress(Rejected, LogUnavailableError, Spoiled, Hurt):
            await act()

    def _own(self, number: int) -> list[str]:
        return [key(f"{self._name}-{next(self._numbers)}") for _ in range(number)]

    def _contested(self) -> str:
        """Return a key that every caller of every process tries to take once."""
        return key(f"race-{next(self._races)}")

    async def observe(self) -> None:
        """Write one stream that no other caller uses."""
        await self._log.submit(observing(*self._own(1)))

    async def observe_several(self) -> None:
        """Write several streams at once."""
        number = self._die.randint(2, SESSIONS_AT_ONCE_MAX)
        await self._log.submit(observing(*self._own(number)))

    async def race(self) -> None:
        """Write one stream that others write, too."""
        await self._log.submit(observing(self._contested()))

    async def race_among_several(self) -> None:
        """Write several streams at once, one of which others write. If it is lost, no event may
        remain.
        """
        before, behind = self._own(2)
        await self._log.submit(observing(before, self._contested(), behind))

    async def fail(self) -> None:
        """Submit a decision that raises."""
        await self._log.submit(failing_with(Spoiled("on purpose")))

    async def poison(self) -> None:
        """Write a text that no database accepts, which spoils the whole batch."""
        request = _poisoned(*self._own(1))
        self._notebook.note("poisoned", command=str(request.command_id))
        await self._log.submit(request)

    async def reserve(self) -> None:
        """Write under an idempotency key, with or without events, and repeat it."""
        changes = [seen(item) for item in self._own(self._die.randint(0, 2))]
        name = f"{self._name}-{next(self._numbers)}"
        for turn in (1, 2):
            answer = StoredAnswer("accepted", {"turn": turn})

            def decide(_: DecisionContext, answer: StoredAnswer = answer) -> Decision[StoredAnswer]:
                return Decision(answer, changes, answer=answer)

            reservation = Reservation("tester", "POST", "/", name, b"the same body")
            try:
                result = (
                    await self._log.submit(submission(decide, reservation=reservation))
                ).result
            except AlreadyReserved as reserved:
                result = reserved.reserved.answer or StoredAnswer("none", {"turn": None})
            except LogUnavailableError:
                continue
            self._notebook.note("answered", key=name, turn=result.body["turn"])


def _poisoned(session_key: str) -> Submission[None]:
    ref = ContentRef(id=uuid7(), bytes=3, hmac="0" * 64)
    content = Content(ref, run_id(1), "task", "a\0b")

    def decide(world: DecisionContext) -> Decision[None]:
        if session_key in world.sessions:
            raise SeenBefore(session_key)
        return Decision(None, [seen(session_key)], [content])

    return submission(decide)
