"""Long polling: waits until a run reaches a stage, or the log grows."""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Literal
from uuid import UUID

from application.log.event_log import LogUnavailableError
from application.queries.errors import invalid_value
from application.queries.services import QueryServices
from application.session.waiting_messages import find_run
from domain.run.state import Run
from domain.values.moments import parse_duration

WAIT_SECONDS_MAX = 60.0
REACH_SECONDS_MAX = 1.0
WaitStage = Literal["started", "ended", "announced", "archived"]
REACHED: Mapping[WaitStage, tuple[str, ...]] = {
    "started": ("started", "ended", "announced", "archived", "refused"),
    "ended": ("ended", "announced", "archived", "refused"),
    "announced": ("announced", "archived", "refused"),
    "archived": ("archived", "refused"),
}
"""Stages that satisfy each `until`; a refusal ends every wait."""


REACHING: Mapping[WaitStage, tuple[str, ...]] = {
    "started": ("RunStarted", "RunEnded", "SpawnRefused"),
    "ended": ("RunEnded", "SpawnRefused"),
    "announced": ("RunAnnounced", "SpawnRefused"),
    "archived": ("RunArchived", "SpawnRefused"),
}
"""Events by which each stage is reached."""


def wait_seconds(text: str | None) -> float:
    """Return a duration in seconds, capped at 60; 0 if none is given.

    Raises:
        QueryError: The text is not a duration.
    """
    if text is None:
        return 0.0
    try:
        return min(parse_duration(text).total_seconds(), WAIT_SECONDS_MAX)
    except ValueError as error:
        raise invalid_value("/query/wait", str(error)) from None


async def current_run(services: QueryServices, run: Run) -> Run:
    """Return the current state of a run, or of the waiting message that will become it."""
    known = services.tail.newest(run.run_id)
    return known or await find_run(services.work, run.run_id) or run


MESSAGE_MOVED = ("RunContinued", "MessagesDropped", "ContinuationFailed")
"""Events of a run that decide about a message waiting for it."""


async def wait_until(services: QueryServices, run: Run, until: WaitStage, seconds: float) -> None:
    """Wait until the run reaches a stage, the time is over, or the service stops."""
    deadline = time.monotonic() + seconds
    while True:
        position = services.tail.position
        now = await current_run(services, run)
        if now.stage in REACHED[until]:
            return
        run_ids, types = [run.run_id], REACHING[until]
        if now.version == 0 and now.continues is not None:
            run_ids, types = [run.run_id, now.continues], (*types, *MESSAGE_MOVED)
        if not await wait_for_growth(
            services, run_ids, after=position, deadline=deadline, types=types
        ):
            return


async def reach_position(services: QueryServices, position: int) -> None:
    """Wait until this process knows a position that another server returned to its caller.

    Raises:
        LogUnavailableError: The position is not known within `REACH_SECONDS_MAX`.
    """
    if services.tail.position >= position or await services.work.log.head() >= position:
        return
    deadline = time.monotonic() + REACH_SECONDS_MAX
    while services.tail.position < position:
        after = services.tail.position
        if not await wait_for_growth(services, (), after=after, deadline=deadline):
            raise LogUnavailableError(
                f"position {position} is not known to this server yet; ask again in a moment, or"
                " omit minPosition"
            )


async def wait_for_growth(
    services: QueryServices,
    run_ids: Collection[UUID],
    *,
    after: int,
    deadline: float,
    types: Sequence[str] = (),
) -> bool:
    """Wait until the log grows beyond `after`.

    Args:
        services: Provides the tail and the stop signal.
        run_ids: Only events about these runs count, if any are given.
        after: The position that is known already.
        deadline: When to stop waiting, on the monotonic clock.
        types: Only events of these types count, if any are given.

    Returns:
        False if the deadline has passed or the service stops.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        return False
    if services.closing():
        return False
    return await services.tail.changed(
        run_ids, after=after, timeout_seconds=left, types=types, stopped=services.stopped
    )
