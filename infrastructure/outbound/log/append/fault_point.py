"""Fault point in the log: lets a recovery test kill the process at an exact place. Inert by
default.

`SPAWNLOG_FAIL_POINT` names a file that holds one order:

- `after RunClaimed`: kill the process with SIGKILL once an append with such an event is committed,
  before any caller is answered.
- `before RunArchived`: kill it once the append is decided, before any of it is written.

Events of a step can also be named with the step, as in `after StepBegun:attachments`. Events of an
effect can be named with its kind, or its kind and name, as in `after
EffectAttempted:hook:subagentEnded`. The file is removed before the kill, so each order is carried
out once and the next start proceeds.
"""

import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from domain.event_types import AnyEvent
from domain.run.events import EffectEvent, StepEvent

VARIABLE = "SPAWNLOG_FAIL_POINT"
ORDER_CHARS_MAX = 200
FailPhase = Literal["before", "after"]


class LogFaultPoint:
    """Fault point that is read from a file. Without a file it is a no-op."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "LogFaultPoint":
        """Return the fault point that the environment configures, or an inert one."""
        named = environment.get(VARIABLE)
        return cls(Path(named) if named else None)

    def pass_by(self, moment: FailPhase, names: Iterable[str]) -> None:
        """Kill the process if the file orders it for this moment and one of these names."""
        if self._file is None:
            return
        try:
            with self._file.open(encoding="utf-8") as file:
                order = file.read(ORDER_CHARS_MAX).split()
        except FileNotFoundError:
            return
        if order in [[moment, name] for name in names]:
            self._file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


def names_of(events: Iterable[AnyEvent]) -> Iterator[str]:
    """Yield the names by which an order can refer to the events of an append."""
    for event in events:
        name = type(event).__name__
        yield name
        if isinstance(event, StepEvent):
            yield f"{name}:{event.step}"
        elif isinstance(event, EffectEvent):
            yield f"{name}:{event.kind}"
            yield f"{name}:{event.kind}:{event.name}"
