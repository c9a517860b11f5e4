"""A way to die at an exact place in the log, for tests of recovery. Inert unless it is asked for.

`SPAWNLOG_FAIL_POINT` names a file. When the file says `after RunClaimed`, the process kills itself
with SIGKILL once an append with such an event is committed and before anybody is told of it; with
`before RunArchived`, when the append is decided and nothing of it is written. An event of a step
has its name too, `after StepBegun:attachments`, and one of an effect its kind, or kind and name,
`after EffectAttempted:hook:subagentEnded`. The file is removed first, so that each order is carried
out once and the next start goes on.
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
    """Without a file it does nothing, and costs nothing."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "LogFaultPoint":
        """The one that the environment asks for, if it asks for one."""
        named = environment.get(VARIABLE)
        return cls(Path(named) if named else None)

    def pass_by(self, moment: FailPhase, names: Iterable[str]) -> None:
        """Die here when that is ordered for this moment of something of one of these names."""
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
    """What the events of an append are called in an order."""
    for event in events:
        name = type(event).__name__
        yield name
        if isinstance(event, StepEvent):
            yield f"{name}:{event.step}"
        elif isinstance(event, EffectEvent):
            yield f"{name}:{event.kind}"
            yield f"{name}:{event.kind}:{event.name}"
