"""Looks through the registry: for words, and to count what is there. Each look is at a bounded
number of runs, however few of them fit."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from application.ports.registry import RunQuery
from domain.run.facts import RunOutcome
from domain.run.lifecycle import RunStage
from domain.run.state import Run

TASK_CHARACTERS_SEARCHED_MAX = 10_000


class RunWords(NamedTuple):
    """Words that stand, each, in the label of a run or in its task, in upper or lower case. Without
    `in_whole_task` only the beginning of a task is looked at, which lists show."""

    words: tuple[str, ...]
    in_whole_task: bool


class Examined(NamedTuple):
    """Which runs are looked at as of a position: at most so many, behind `behind`, newest first
    unless `ascending`."""

    at: int
    runs_max: int
    behind: int | None = None
    ascending: bool = False


class FoundRuns(NamedTuple):
    """Runs with the words, and the position behind which there may be others; None at the end."""

    runs: Sequence[Run]
    behind: int | None


class RunCount(NamedTuple):
    """How many runs are alike. `requester` is the session that asked for them, where they were to
    be told apart by it."""

    runs: int
    stage: RunStage
    outcome: RunOutcome | None
    waits: bool
    agent_id: str | None
    rule: str | None
    requester: str | None


class CountedRuns(NamedTuple):
    """What was counted; `counted_to` is the position of creation of the last run that was looked
    at, None when all were."""

    counts: Sequence[RunCount]
    counted_to: int | None


class RunSearch(Protocol):
    """Looks at the runs that a requester, a tree, labels, a rule or an earlier run leave, and takes
    those of them that the rest of the query and the words leave."""

    async def find(
        self, query: RunQuery, words: RunWords, examined: Examined, *, limit: int
    ) -> FoundRuns:
        """The first of them, by position of creation."""
        ...

    async def count(
        self,
        query: RunQuery,
        words: RunWords | None,
        examined: Examined,
        *,
        by_requester: bool,
        own: UUID | None = None,
    ) -> CountedRuns:
        """How many there are of each kind. The run `own` is counted without its requester."""
        ...
