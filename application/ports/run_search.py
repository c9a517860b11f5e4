"""Searches and counts of runs. Each call scans a limited number of runs, however few match."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple, Protocol
from uuid import UUID

from application.ports.registry import RunQuery
from domain.run.facts import RunOutcome
from domain.run.lifecycle import RunStage
from domain.run.state import Run

TASK_CHARACTERS_SEARCHED_MAX = 10_000


class RunWords(NamedTuple):
    """Words that must each occur in the label or task of a run, ignoring case.

    Unless `in_whole_task`, only the preview of a task is searched, which lists show.
    """

    words: tuple[str, ...]
    in_whole_task: bool


class ScanWindow(NamedTuple):
    """Scan window: up to `runs_max` runs after the cursor `behind`, as of `at`, newest first unless
    `ascending`."""

    at: int
    runs_max: int
    behind: int | None = None
    ascending: bool = False


class FoundRuns(NamedTuple):
    """Matching runs, and the cursor at which to continue; None at the end."""

    runs: Sequence[Run]
    behind: int | None


class RunCount(NamedTuple):
    """Number and usage of runs with the same properties.

    Attributes:
        requester: None unless the count is grouped by it.
        day: The UTC day on which the runs were created.
        input_tokens: Sum over the runs that have ended, as are `output_tokens` and `cost_usd`.
        cost_usd: US dollars; None if no price is configured for any of the models.
    """

    runs: int
    stage: RunStage
    outcome: RunOutcome | None
    waits: bool
    agent_id: str | None
    rule: str | None
    requester: str | None
    day: date
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal | None


class CountedRuns(NamedTuple):
    """Counts of runs.

    `counted_to` is the creation position of the last scanned run, None if all were scanned.
    """

    counts: Sequence[RunCount]
    counted_to: int | None


class RunSearch(Protocol):
    """Search over runs, within the bounds of indexed conditions.

    Requester, tree, labels, rule and earlier run narrow the runs by index. The other conditions and
    the words filter the result.
    """

    async def find(
        self, query: RunQuery, words: RunWords, examined: ScanWindow, *, limit: int
    ) -> FoundRuns:
        """Return the first matching runs, ordered by position of creation."""
        ...

    async def count(
        self,
        query: RunQuery,
        words: RunWords | None,
        examined: ScanWindow,
        *,
        by_requester: bool,
        own: UUID | None = None,
    ) -> CountedRuns:
        """Count matching runs by their properties. The run `own` is counted without its
        requester."""
        ...
