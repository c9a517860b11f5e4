"""Searches and counts of runs. Each call scans a limited number of runs, however few match."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple, Protocol
from uuid import UUID

from application.ports.registry import RunQuery
from domain.run.facts import RunOutcome
from domain.run.lifecycle import RunStage
from domain.run.state import Run

TEXT_CHARACTERS_SEARCHED_MAX = 10_000
ERROR_CHARACTERS_READ_MAX = 2_000


class RunWords(NamedTuple):
    """Words that must each occur in the label, task, error or rule of a run, ignoring case.

    Unless `in_whole_texts`, only the previews of task and error are searched, which lists show.
    """

    words: tuple[str, ...]
    in_whole_texts: bool


class ScanWindow(NamedTuple):
    """Scan window: up to `runs_max` runs after `after_cursor`, as of `at`, newest first unless
    `ascending`."""

    at: int
    runs_max: int
    after_cursor: int | None = None
    ascending: bool = False


class FoundRuns(NamedTuple):
    """Matching runs, and the cursor at which to continue; None at the end."""

    runs: Sequence[Run]
    after_cursor: int | None


class RunCount(NamedTuple):
    """Number and usage of runs with the same properties.

    Attributes:
        requester: None unless the count is grouped by it.
        day: The UTC day on which the runs were created.
        input_tokens: Sum over the runs that have ended, as are `output_tokens` and `cost_usd`.
        cost_usd: US dollars; None if no price is configured for any of the models.
        models: Names of the models that the ended runs used; "" for an unnamed one.
        unpriced_models: Those of them without a price in at least one run.
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
    models: frozenset[str] = frozenset()
    unpriced_models: frozenset[str] = frozenset()


class CountedRuns(NamedTuple):
    """Counts of runs.

    `counted_to` is the creation position of the last scanned run, None if all were scanned.
    """

    counts: Sequence[RunCount]
    counted_to: int | None


class RunError(NamedTuple):
    """The error of a run that has ended.

    Attributes:
        text: The end of the error text, or, unless whole texts may be read, the preview that lists
            show. None if it was erased.
        ended_at: When the run ended.
    """

    run_id: UUID
    created_position: int
    requester: str
    agent_id: str | None
    outcome: RunOutcome
    text: str | None
    ended_at: datetime


class FoundErrors(NamedTuple):
    """Errors of runs, and the cursor at which to continue; None at the end."""

    errors: Sequence[RunError]
    after_cursor: int | None


class RunSearch(Protocol):
    """Search over runs, within the bounds of indexed conditions.

    Requester, tree, labels, rule and earlier run narrow the runs by index. The other conditions and
    the words filter the result.
    """

    async def find(
        self, query: RunQuery, words: RunWords | None, examined: ScanWindow, *, limit: int
    ) -> FoundRuns:
        """Return the first matching runs, ordered by position of creation."""
        ...

    async def errors(
        self, query: RunQuery, words: RunWords | None, examined: ScanWindow, *, whole: bool
    ) -> FoundErrors:
        """Return the errors of all matching runs, ordered by position of creation. The query
        selects only runs that have ended.

        If `whole`, the end of each text is read, otherwise its preview.
        """
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

    async def count_trees(
        self,
        query: RunQuery,
        roots: Sequence[str],
        examined: ScanWindow,
        *,
        by_requester: bool,
        own: UUID | None = None,
    ) -> Sequence[CountedRuns]:
        """Count the matching runs of each tree, in the order of `roots`. Each tree is scanned by
        itself."""
        ...
