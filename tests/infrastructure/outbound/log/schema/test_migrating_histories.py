"""A log that an earlier release has written is brought up with all that is in it."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from application.log.envelope import RecordedEvent
from domain.event_types import EVENT_TYPES
from domain.values.record import run_id_of
from infrastructure.outbound.log.rebuild.rebuild import bring_rows_up_to_date, rebuild
from infrastructure.outbound.log.schema.migrate import migrate
from infrastructure.outbound.log.schema.revision import inspect_database, newest_revision
from infrastructure.outbound.log.verify.verify import VerifyOrder, run_verification
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders.golden_databases import fill, revisions
from tests.support.builders.submissions import observe
from tests.support.servers.running_log import running_on
from tests.support.tiers import nightly_but

EVENTS = "SELECT * FROM events ORDER BY position"


def _all(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def _first_run(events: Sequence[RecordedEvent]) -> UUID:
    return next(run_id for one in events if (run_id := run_id_of(one.envelope.stream)))


def test_the_newest_of_them_has_every_type_of_event(empty_database_url: str) -> None:
    fill(empty_database_url, newest_revision())
    types = {row[0] for row in _all(empty_database_url, "SELECT type FROM events")}
    assert types == {name for name, _ in EVENT_TYPES}


@pytest.mark.server
@pytest.mark.parametrize("revision", nightly_but(revisions(), [revisions()[0], revisions()[-1]]))
async def test_a_log_of_an_earlier_release_is_brought_up_and_goes_on(
    empty_database_url: str, tmp_path: Path, revision: str
) -> None:
    url = empty_database_url
    fill(url, revision)
    before = _all(url, EVENTS)
    types = {row[0] for row in _all(url, "SELECT type FROM events")}
    assert types <= {name for name, _ in EVENT_TYPES}
    assert inspect_database(url).revision == revision
    assert migrate(url) == (revision, newest_revision())
    await bring_rows_up_to_date(url)
    assert _all(url, EVENTS) == before
    assert run_verification(url, VerifyOrder(state_file=tmp_path / "state")).difference is None
    async with running_on(url) as running:
        registry, contents = PostgresRegistry(running.pool), PostgresContents(running.pool)
        events = await running.events()
        assert len(events) == len(before)
        run = await registry.run(_first_run(events))
        assert run is not None
        assert await contents.text(run.task)
        await observe(running.log, range(2))
        assert await running.log.head() == len(before) + 2
    assert (await rebuild(url)).differing == 0
