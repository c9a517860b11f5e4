"""A submission in the writer's queue, and whoever waits for what comes of it."""

import asyncio
from dataclasses import dataclass
from typing import Any

from application.log.event_log import Appended, Submission
from infrastructure.outbound.log.append.batch import SubmissionOutcome


@dataclass(slots=True)
class QueuedSubmission:
    """One of the queue. Who has gone away is told nothing."""

    submission: Submission[Any]
    future: asyncio.Future[Appended[Any]]

    def fail(self, error: BaseException) -> None:
        """It cannot be recorded."""
        if not self.future.done():
            self.future.set_exception(error)

    def answer(self, outcome: SubmissionOutcome) -> None:
        """It is decided, and what was recorded for it is durable."""
        if self.future.done():
            return
        if outcome.error is not None:
            self.future.set_exception(outcome.error)
            return
        assert outcome.appended is not None
        self.future.set_result(outcome.appended)
