"""One request for a page scans a bounded part, however little of it the caller may see."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest

from application.ports.registry import RunQuery
from application.queries.access import Access
from application.queries.events import EventFilter, page_of_events
from application.queries.paging import Cursor
from application.queries.runs import RunPage, visible_runs
from domain.run.state import Run
from domain.session.state import Session
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import caller
from tests.support.builders.storytelling import ROOT
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import RunningLog, running_on

OTHER = "agent:main:other"
RUNS = 6


class CountingRegistry(PostgresRegistry):
    """Counts the runs that it gives, and the sessions that it is asked for."""

    given = 0
    sessions_asked = 0

    async def runs(
        self,
        query: RunQuery,
        *,
        at: int,
        limit: int,
        after_cursor: int | None = None,
        ascending: bool = False,
    ) -> Sequence[Run]:
        found = await super().runs(
            query, at=at, limit=limit, after_cursor=after_cursor, ascending=ascending
        )
        self.given += len(found)
        return found

    async def session(self, key_or_id: str, *, at: int | None = None) -> Session | None:
        self.sessions_asked += 1
        return await super().session(key_or_id, at=at)


@pytest.fixture(scope="module")
async def running(databases: Databases) -> AsyncIterator[RunningLog]:
    url = databases.create()
    async with running_on(url) as log:
        yield log
    databases.drop(url)


@pytest.fixture(scope="module")
def family(running: RunningLog) -> LoggedFamily:
    return LoggedFamily(running.log)


@pytest.fixture(scope="module")
async def head(family: LoggedFamily) -> int:
    """Return the head of a log with one run of another session before and after many of the
    root's.
    """
    other_family = LoggedFamily(family.log, root=OTHER, first=500)
    await other_family.begin("first")
    await other_family.spawn("below", "first")
    for number in range(RUNS):
        await family.spawn(f"run {number}")
    await other_family.spawn("last")
    return await family.log.head()


@pytest.fixture
def registry(running: RunningLog) -> CountingRegistry:
    return CountingRegistry(running.pool)


async def page_of_runs(
    registry: CountingRegistry,
    head: int,
    session: str,
    *,
    run_id: UUID | None = None,
    after_cursor: int = -1,
    limit: int = 50,
    examined_max: int = 100,
    ascending: bool = False,
) -> RunPage:
    return await visible_runs(
        registry,
        Access(registry),
        caller("read", session=session, run_id=run_id),
        RunQuery(),
        Cursor(head, after_cursor),
        limit=limit,
        ascending=ascending,
        examined_max=examined_max,
    )


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("examined_max", [1, 2, 4, RUNS + 3, 100])
async def test_listing_of_few_continues_by_cursor(
    registry: CountingRegistry, head: int, examined_max: int, ascending: bool
) -> None:
    after_cursor: int | None = -1
    pages = 0
    created: list[int] = []
    while after_cursor is not None:
        registry.given = 0
        page = await page_of_runs(
            registry,
            head,
            "agent:main:o*",
            after_cursor=after_cursor,
            examined_max=examined_max,
            ascending=ascending,
        )
        assert registry.given <= examined_max
        created += [run.created_position for run in page.runs]
        pages, after_cursor = pages + 1, page.after_cursor
    assert len(created) == 3
    assert created == sorted(created, reverse=not ascending)
    assert pages == (RUNS + 3) // examined_max + 1


async def test_same_requester_is_looked_up_once(registry: CountingRegistry, head: int) -> None:
    await page_of_runs(registry, head, "agent:main:nobody-*")
    requesters = {ROOT, OTHER, "the child of the other"}
    # The walk from the child continues at its parent.
    assert registry.sessions_asked == len(requesters) + 1


async def test_page_for_one_session_reads_no_other_trees(
    registry: CountingRegistry, head: int
) -> None:
    page = await page_of_runs(registry, head, OTHER)
    assert len(page.runs) == registry.given == 3
    (child,) = [run.child_session_key for run in page.runs if run.child_session_key]
    own = await page_of_runs(registry, head, str(child), run_id=page.runs[-1].run_id)
    assert own.runs == page.runs[1:]
    assert (
        await page_of_runs(registry, head, "agent:main:nobody", examined_max=1)
    ).after_cursor is None


async def test_caller_that_sees_everything_gets_whole_pages(
    registry: CountingRegistry, head: int
) -> None:
    page = await page_of_runs(registry, head, "*", limit=4)
    assert len(page.runs) == 4
    assert registry.given == 5


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize(("examined_max", "passed_max"), [(1, 100), (100, 1), (4, 7), (100, 100)])
@pytest.mark.parametrize(
    ("pattern", "types", "tree", "actor"),
    [
        ("agent:main:o*", (), None, None),
        (OTHER, (), None, None),
        ("*", (), OTHER, None),
        ("*", ("SpawnRequested",), OTHER, None),
        ("*", (), None, "system"),
        ("agent:main:nobody-*", (), None, None),
    ],
)
async def test_page_of_log_ends_at_its_bounds(
    running: RunningLog,
    head: int,
    pattern: str,
    types: tuple[str, ...],
    tree: str | None,
    actor: str | None,
    examined_max: int,
    passed_max: int,
    newest_first: bool,
) -> None:
    wanted = EventFilter(types, None, tree, caller("read", session=pattern), actor)
    expected = [event.envelope.position for event in await running.events() if wanted.takes(event)]
    for first, limit in ((0, 50), (5, 3)):
        seen: list[int] = []
        after, end = first, head
        while after < end:
            page = await page_of_events(
                running.log,
                wanted,
                after=after,
                limit=limit,
                head=end,
                examined_max=examined_max,
                passed_max=passed_max,
                newest_first=newest_first,
            )
            assert len(page.events) <= min(limit, examined_max)
            seen += [event.envelope.position for event in page.events]
            if newest_first:
                assert max(after, end - passed_max) <= page.position < end
                end = page.position
            else:
                assert after < page.position <= min(end, after + passed_max)
                after = page.position
        later = [item for item in expected if item > first]
        assert seen == (later[::-1] if newest_first else later)


async def test_events_of_a_run_are_found_anywhere(
    running: RunningLog, family: LoggedFamily, head: int
) -> None:
    run_id = family.id(f"run {RUNS - 1}")
    wanted = EventFilter((), run_id, None, caller("read", session="*"))
    page = await page_of_events(running.log, wanted, after=0, limit=50, head=head, passed_max=1)
    assert {event.envelope.provenance.run_id for event in page.events} == {run_id}
    assert page.position == head
    turned = await page_of_events(
        running.log, wanted, after=0, limit=50, head=head, passed_max=1, newest_first=True
    )
    assert (turned.events, turned.position) == (page.events[::-1], 0)
