"""What may be asked of the hooks of a run: by whoever has told them, no claim is needed."""

from dataclasses import dataclass

from domain.content import ContentRef
from domain.run.hook_events import HookName


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmHook:
    """It was told, and answered with this status."""

    hook: HookName
    status_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteHookFailure:
    """It could not be told. `attempt` counts from 1; one that is on record is not noted again. It
    is tried again after 1, 2, 4 … seconds, `retry_seconds_max` at most."""

    hook: HookName
    attempt: int
    error: ContentRef
    retry_seconds_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkHook:
    """It is not to be told any more: because the `attempt` just made failed with `error` and was
    the last one; or, without an error, for another reason than an attempt."""

    hook: HookName
    attempt: int = 0
    error: ContentRef | None = None


HookCommand = ConfirmHook | NoteHookFailure | ParkHook
