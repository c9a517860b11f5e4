"""What can happen to a hook that is told of a run."""

from typing import Literal

from domain.content import ContentRef
from domain.values.record import Event

HookName = Literal["subagentSpawned", "subagentEnded"]
"""The hooks whose answer nothing waits for, in the order in which they are told."""


class HookTold(Event):
    """It has taken what it was told."""

    hook: HookName
    attempt: int
    status_code: int


class HookFailed(Event):
    """It could not be told; that is tried again."""

    hook: HookName
    attempt: int
    error: ContentRef
    retry_after_seconds: int


class HookParked(Event):
    """It is not told any more, after so many attempts; `error` is that of the last one."""

    hook: HookName
    attempts: int
    error: ContentRef | None = None


HookEvent = HookTold | HookFailed | HookParked
