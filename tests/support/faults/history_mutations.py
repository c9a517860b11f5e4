"""Changes of a short history, each of which makes it contradict itself."""

from collections.abc import Callable
from typing import Any

from tests.soak.history import History
from tests.support.builders.small_history import (
    one_more,
    with_call,
    with_event,
    with_more_events,
    without_event,
)

Mutation = Callable[[History], History]


def changed_event(place: int, /, **changes: Any) -> Mutation:
    """The event in this place says something else."""
    return lambda history: with_event(history, place, **changes)


def changed_call(caller: str, **changes: Any) -> Mutation:
    """A caller asked for something else, or was told something else."""
    return lambda history: with_call(history, caller, **changes)


def missing_event(position: int) -> Mutation:
    """The log is without an event."""
    return lambda history: without_event(history, position)


def added_event(like: int, **changes: Any) -> Mutation:
    """The log has one event more, like another one."""
    return lambda history: with_more_events(history, one_more(history, like, **changes))
