"""Log that notes each request and its answer, for a judge."""

import json
import time
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TypeVar

from application.log.event_log import (
    AlreadyReserved,
    Appended,
    Decision,
    DecisionContext,
    EventLog,
    LogUnavailableError,
    Submission,
)
from domain.values.refusals import Rejected

T = TypeVar("T")


class Spoiled(Exception):
    """A decision that fails on purpose."""


class Hurt(Exception):
    """Failure of the log that no caller receives; it is noted."""


class Notebook:
    """Notes, one JSON object a line, on disk at once."""

    def __init__(self, path: Path) -> None:
        self._file: TextIOWrapper = path.open("a", encoding="utf-8", buffering=1)

    def note(self, kind: str, **facts: Any) -> None:
        """Write one note."""
        self._file.write(json.dumps({"kind": kind, **facts}) + "\n")

    def close(self) -> None:
        self._file.close()


@dataclass(slots=True)
class _Asked:
    """The number of decisions of a submission, and the events of the last one."""

    times: int = 0
    streams: tuple[str, ...] = ()


class NotingLog:
    """Replacement for the log of one caller, limited to submissions."""

    def __init__(self, log: EventLog, notebook: Notebook, caller: str) -> None:
        self._log = log
        self._notebook = notebook
        self._caller = caller

    async def submit(self, submission: Submission[T]) -> Appended[T]:
        """Ask the log, and note down command, times, outcome and position."""
        request, began = _Asked(), time.monotonic_ns()
        try:
            appended = await self._log.submit(_counted(submission, request))
        except Exception as error:
            outcome = _outcome(error)
            self._told(submission, request, began, outcome, error=error)
            if outcome == "broken":
                raise Hurt from error
            raise
        self._told(submission, request, began, "recorded", position=appended.position)
        return appended

    def _told(
        self,
        submission: Submission[Any],
        call: _Asked,
        began: int,
        outcome: str,
        *,
        position: int | None = None,
        error: Exception | None = None,
    ) -> None:
        self._notebook.note(
            "told",
            caller=self._caller,
            command=str(submission.command_id),
            began=began,
            ended=time.monotonic_ns(),
            outcome=outcome,
            position=position,
            error=f"{type(error).__name__}: {str(error)[:300]}" if error else None,
            decided=call.times,
            streams=call.streams,
        )


def _outcome(error: Exception) -> str:
    match error:
        case AlreadyReserved():
            return "reserved"
        case Rejected():
            return "rejected"
        case LogUnavailableError():
            return "away"
        case Spoiled():
            return "failed"
        case _:
            return "broken"


def _counted(submission: Submission[T], call: _Asked) -> Submission[T]:
    def decide(world: DecisionContext) -> Decision[T]:
        call.times += 1
        call.streams = ()
        decision = submission.decide(world)
        call.streams = tuple(stream for stream, _ in decision.changes)
        return decision

    return submission._replace(decide=decide)
