"""For how long a run has to be claimed by somebody who may ask a hook about it."""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from domain.configuration.hooks import Hooks


class ClaimTimes:
    """Nobody knows before it is claimed which configuration a run has. It is claimed for the
    longest time that was seen yet; where that is too short it is given back, and claimed anew for
    longer.

    `now` gives the hooks of the active configuration, `of` those of a run, and `measure` how many
    seconds may pass with them.
    """

    def __init__(
        self,
        take: Callable[[int, float], Awaitable[Sequence[UUID]]],
        *,
        lease_seconds: float,
        now: Callable[[], Hooks],
        of: Callable[[UUID], Awaitable[Hooks]],
        measure: Callable[[Hooks], float],
    ) -> None:
        self._take = take
        self._lease_seconds = lease_seconds
        self._now = now
        self._of = of
        self._measure = measure
        self._longest = 0.0
        self._given: dict[UUID, float] = {}

    async def claim(self, limit: int) -> Sequence[UUID]:
        """Claim at most so many runs."""
        self._longest = seconds = max(self._longest, self._measure(self._now()))
        run_ids = await self._take(limit, self._lease_seconds + seconds)
        self._given.update(dict.fromkeys(run_ids, seconds))
        return run_ids

    async def suffices(self, run_id: UUID) -> bool:
        """Whether a run was claimed for long enough; if not, the next claim will be."""
        given = self._given.pop(run_id)
        needed = self._measure(await self._of(run_id))
        self._longest = max(self._longest, needed)
        return needed <= given
