"""Small submissions to the log: only how they are recorded matters."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from uuid_utils.compat import uuid7

from application.log.envelope import Provenance
from application.log.event_log import (
    Appended,
    Change,
    Decision,
    DecisionContext,
    EventLog,
    Submission,
)
from domain.values.record import session_stream
from domain.values.refusals import Rejected
from tests.support.builders.storytelling import observed

T = TypeVar("T")


class SeenBefore(Rejected):
    """The session is on record already."""


def key(number: int | str) -> str:
    return f"agent:main:{number}"


def submission(
    decide: Callable[[DecisionContext], Decision[T]], *streams: str, **more: Any
) -> Submission[T]:
    plain = {"command_id": uuid7(), "provenance": Provenance(), "streams": streams}
    return Submission(**{**plain, "decide": decide, **more})


def seen(session_key: str) -> Change:
    event = observed(session_key=session_key, display_key=session_key, session_id=uuid7())
    return session_stream(session_key), event


def observing(*session_keys: str, **more: Any) -> Submission[tuple[str, ...]]:
    """Return a submission that records one event per session; it is rejected if one is on
    record.
    """

    def decide(world: DecisionContext) -> Decision[tuple[str, ...]]:
        for session_key in session_keys:
            if session_key in world.sessions:
                raise SeenBefore(session_key)
        return Decision(session_keys, [seen(item) for item in session_keys])

    return submission(
        decide, *(session_stream(session_key) for session_key in session_keys), **more
    )


def recording(*changes: Change, **more: Any) -> Submission[None]:
    streams = [stream for stream, _ in changes]
    return submission(lambda _: Decision(None, changes), *streams, **more)


def failing_with(error: BaseException) -> Submission[None]:
    def decide(_: DecisionContext) -> Decision[None]:
        raise error

    return submission(decide)


def stalling(seconds: float, session_key: str, times: int = 1) -> Submission[int]:
    """Return a submission that blocks for this time when it is decided, and returns how often it
    was.
    """
    decisions = 0

    def decide(_: DecisionContext) -> Decision[int]:
        nonlocal decisions
        decisions += 1
        if decisions <= times:
            time.sleep(seconds)
        return Decision(decisions, [seen(session_key)])

    return submission(decide, session_stream(session_key))


async def observe(log: EventLog, numbers: Sequence[int | str]) -> list[Appended[tuple[str, ...]]]:
    return [await log.submit(observing(key(number))) for number in numbers]


async def at_once(log: EventLog, *submission: Submission[Any]) -> list[Any]:
    """Submit all before any is decided. Return the answers or errors."""
    return list(
        await asyncio.gather(
            *(log.submit(request) for request in submission), return_exceptions=True
        )
    )
