"""Search of runs by words in their labels, tasks, errors and rules, in pages."""

from application.ports.registry import RunQuery
from application.ports.run_search import RunSearch, RunWords, ScanWindow
from application.queries.access import Access, Caller
from application.queries.errors import invalid_value
from application.queries.paging import Cursor
from domain.run.state import Run

WORDS_MAX = 8
WORDS_CHARACTERS_MAX = 200
WORDS_EXAMINED_MAX = 2_000
"""Lower than for columns, because texts must be read."""
LABELS_EXAMINED_MAX = 10_000


def run_words(caller: Caller, text: str) -> RunWords:
    """Return the words that a caller searches for.

    Raises:
        QueryError: There are no words, or too many.
    """
    words = tuple(sorted({word.lower() for word in text.split()}))
    if not 0 < len(words) <= WORDS_MAX:
        raise invalid_value("/query/q", f"must have between 1 and {WORDS_MAX} words")
    if len(text) > WORDS_CHARACTERS_MAX:
        raise invalid_value("/query/q", f"must have at most {WORDS_CHARACTERS_MAX} characters")
    return RunWords(words, caller.may("content"))


async def runs_with_words(
    search: RunSearch,
    access: Access,
    caller: Caller,
    query: RunQuery,
    words: RunWords | None,
    place: Cursor,
    *,
    limit: int,
    ascending: bool,
) -> tuple[list[Run], int | None]:
    """Return matching runs that the caller may see, and the position after which the next page
    begins.

    Without words, the runs match only conditions of the query, some of which no index supports.
    """
    after_cursor = place.after if place.after >= 0 else None
    examined_max = LABELS_EXAMINED_MAX if words is None else WORDS_EXAMINED_MAX
    examined = ScanWindow(place.at, examined_max, after_cursor, ascending)
    found = await search.find(query, words, examined, limit=limit)
    known: dict[str, bool] = {}
    runs = [run for run in found.runs if await access.covers_run(caller, run, known)]
    return runs, found.after_cursor
