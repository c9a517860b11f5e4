"""Configuration revisions: when each was active, and its content."""

from pathlib import Path

import pytest

from application.queries.errors import QueryError
from application.queries.operation import ReadAsOf
from application.queries.revisions import ListRevisions, get_revision, list_revisions, revision_at
from application.queries.services import QueryServices
from domain.event_types import ConfigurationActivated
from infrastructure.outbound.log.read.events import NEWEST_OF_STREAM
from tests.support.builders.query_services import activate, caller, query_services
from tests.support.builders.submissions import key, observe
from tests.support.servers.running_log import RunningLog

pytestmark = pytest.mark.server
EVERYTHING = caller("read", "content")
REVISIONS = 7


@pytest.fixture
async def services(running: RunningLog, tmp_path: Path) -> QueryServices:
    services = await query_services(running, tmp_path)
    for number in range(2, REVISIONS + 1):
        await observe(running.log, [f"before-{number}", f"and-{number}"])
        await activate(services.work.configurations, tmp_path, {"maxChildrenPerAgent": number})
    await observe(running.log, ["last"])
    return services


async def test_revisions_are_listed_with_their_ranges(
    services: QueryServices, running: RunningLog
) -> None:
    events = [
        event for event in await running.events() if isinstance(event.event, ConfigurationActivated)
    ]
    listed = (await list_revisions(services, EVERYTHING, ListRevisions())).view
    assert listed.next_cursor is None
    assert [item.revision for item in listed.items] == list(range(REVISIONS, 0, -1))
    assert [item.position for item in listed.items] == [
        event.envelope.position for event in reversed(events)
    ]
    assert [item.until_position for item in listed.items] == [
        None,
        *(item.position for item in listed.items[:-1]),
    ]
    assert [item.until_at for item in listed.items] == [
        None,
        *(item.activated_at for item in listed.items[:-1]),
    ]
    assert {(item.activated_by, item.erased) for item in listed.items} == {("system", False)}
    found: list[object] = []
    cursor: str | None = None
    while not found or cursor is not None:
        query = ListRevisions(limit=2, cursor=cursor)
        page = (await list_revisions(services, EVERYTHING, query)).view
        assert len(page.items) <= 2
        found += page.items
        cursor = page.next_cursor
    assert found == listed.items


async def test_revision_is_read_as_of_a_position(
    services: QueryServices, running: RunningLog
) -> None:
    """`test_past_answers.py` compares lists as of each position with those given then."""
    assert (await list_revisions(services, EVERYTHING, ListRevisions(at="pos:0"))).view.items == []
    revision = 0
    for recorded in await running.events():
        revision += isinstance(recorded.event, ConfigurationActivated)
        position = recorded.envelope.position
        assert await revision_at(running.log, position) == revision
        then = ReadAsOf(at=f"pos:{position}")
        past = (await get_revision(services, EVERYTHING, revision, then)).view
        assert (past.until_position, past.until_at) == (None, None)
        with pytest.raises(QueryError, match="there is no revision"):
            await get_revision(services, EVERYTHING, revision + 1, then)


async def test_revision_is_shown_as_kept(services: QueryServices) -> None:
    for number in range(2, REVISIONS + 1):
        shown = (await get_revision(services, EVERYTHING, number, ReadAsOf())).view.model_dump(
            by_alias=True
        )
        assert shown["revision"] == number
        subagents = shown["content"]["agents"]["defaults"]["subagents"]
        assert subagents == {"maxChildrenPerAgent": number}


async def test_erased_revision_says_so(services: QueryServices, running: RunningLog) -> None:
    await running.ask("DELETE FROM contents")
    assert all(
        item.erased
        for item in (await list_revisions(services, EVERYTHING, ListRevisions())).view.items
    )
    erased = (await get_revision(services, EVERYTHING, 2, ReadAsOf())).view
    assert (erased.erased, erased.content, erased.revision) == (True, None, 2)


async def test_revisions_need_the_whole_log(services: QueryServices) -> None:
    with pytest.raises(QueryError, match="whole log"):
        await list_revisions(services, caller("read", session="agent:main:main"), ListRevisions())
    with pytest.raises(QueryError, match="whole log"):
        await get_revision(services, caller("read", "content", session=key("one")), 1, ReadAsOf())
    with pytest.raises(QueryError, match='"content"'):
        await get_revision(services, caller("read"), 1, ReadAsOf())


async def test_page_goes_along_the_index_of_streams(
    services: QueryServices, running: RunningLog
) -> None:
    assert services
    await running.ask("ANALYZE events")
    async with running.pool.connection() as connection:
        await connection.execute("SET enable_seqscan = off")
        cursor = await connection.execute(f"EXPLAIN {NEWEST_OF_STREAM}", ["log:config", 5, 3])
        plan = "\n".join(row[0] for row in await cursor.fetchall())
    assert "Index Scan Backward using events_stream_version_key" in plan
    assert "Sort" not in plan
