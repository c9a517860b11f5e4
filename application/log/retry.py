"""Requests that are sent again after what they asked for was done."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from application.log.envelope import Provenance
from application.log.event_log import Decision, LogUnavailable, Reservation, Submission, World
from application.log.unit_of_work import UnitOfWork
from domain.values.refusals import Rejected


async def must_be_new(
    work: UnitOfWork,
    provenance: Provenance,
    reservation: Reservation | None,
    why: Rejected | None = None,
) -> None:
    """What was answered once is told again, whatever has become of it since: raises
    `AlreadyReserved` for such a request, else `why` if it has a key. Records nothing."""
    if reservation is None:
        return

    def decide(_: World) -> Decision[None]:
        raise why or _KeyIsFree("nobody has asked under this key before")

    try:
        await work.log.submit(
            Submission(
                command_id=work.identities.event_id(),
                streams=(),
                decide=decide,
                provenance=provenance,
                reservation=reservation,
            )
        )
    except _KeyIsFree:
        return


class _KeyIsFree(Rejected):
    """The key is free, and stays so."""


# Asking the log until it answers.


PAUSE_SECONDS = 0.5
T = TypeVar("T")


async def retry_while_unavailable(
    ask: Callable[[], Awaitable[T]], *, given_up: Callable[[], bool]
) -> T:
    """The answer, once there is one. While the log is away the question is asked again and again;
    `LogUnavailable` is raised only when it was given up meanwhile."""
    while True:
        try:
            return await ask()
        except LogUnavailable:
            if given_up():
                raise
            await asyncio.sleep(PAUSE_SECONDS)
