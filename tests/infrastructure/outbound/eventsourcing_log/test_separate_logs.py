"""Spawnlog's own log and those of applications are kept apart, from both sides."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from eventsourcing.persistence import NotSupportedError

from infrastructure.contract.errors import UserError
from infrastructure.outbound.eventsourcing_log.factory import LogFactory
from infrastructure.outbound.log.rebuild.rebuild import rebuild
from infrastructure.outbound.log.schema.connections import open_connection
from infrastructure.outbound.log.schema.identity import identify
from infrastructure.outbound.log.schema.migrate import MIGRATION_LOCK, migrate
from tests.support.builders.application_logs import ask, whole_log
from tests.support.builders.eventsourcing_environments import environment_of, own_schema
from tests.support.builders.harbours import Harbours
from tests.support.builders.submissions import observe
from tests.support.servers.embedded_servers import wait_until
from tests.support.servers.running_log import running_on
from tests.support.servers.running_server import RunningServer

RECORDERS: list[Callable[[LogFactory], object]] = [
    LogFactory.application_recorder,
    LogFactory.process_recorder,
    LogFactory.aggregate_recorder,
    LogFactory.tracking_recorder,
]


def of_schema(database_url: str, schema: str) -> str:
    """The URL by which a spawnlog server is given a schema."""
    return f"{database_url}&options=-csearch_path%3D{schema}"


@pytest.mark.parametrize("made", RECORDERS)
def test_no_recorder_writes_beside_spawnlogs_own_log(
    database_url: str, made: Callable[[LogFactory], object]
) -> None:
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    before = ask(database_url, "public", tables)
    factory = LogFactory(environment_of(database_url, "public"))
    try:
        with pytest.raises(NotSupportedError, match="holds spawnlog's own log"):
            made(factory)
    finally:
        factory.close()
    assert ask(database_url, "public", tables) == before


async def test_a_server_does_not_take_the_log_of_an_application(shared_database_url: str) -> None:
    schema = own_schema()
    with Harbours(env=environment_of(shared_database_url, schema)) as harbours:
        harbours.open_harbour("Bremen")
    before = ask(shared_database_url, schema, "TABLE log_head")
    url = of_schema(shared_database_url, schema)
    async with await open_connection(url, application="test") as connection:
        with pytest.raises(UserError, match="belongs to the eventsourcing application Harbours"):
            await identify(connection, "home")
    with pytest.raises(UserError, match="a database or a schema of its own"):
        await rebuild(url)
    assert ask(shared_database_url, schema, "TABLE log_head") == before
    assert ask(shared_database_url, schema, "TABLE projections") == []


async def test_both_live_in_one_database_and_do_not_wait_for_each_other(database_url: str) -> None:
    schema = own_schema()
    async with running_on(database_url) as running:
        with Harbours(env=environment_of(database_url, schema)) as harbours:
            harbours.open_harbour("Bremen")
            await observe(running.log, range(3))
            harbours.open_harbour("Hamburg")
        assert len(await running.events()) == 3
    assert len(whole_log(database_url, schema)) == 2


def test_log_of_newer_release_is_refused(shared_database_url: str) -> None:
    schema = own_schema()
    env = environment_of(shared_database_url, schema)
    with Harbours(env=env) as harbours:
        harbours.open_harbour("Bremen")
    ask(shared_database_url, schema, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(NotSupportedError, match="at revision 9999, which this release does not"):
        Harbours(env=env)


def test_an_operator_may_migrate_the_log_of_an_application(shared_database_url: str) -> None:
    schema = own_schema()
    env = environment_of(shared_database_url, schema)
    with Harbours(env=env) as harbours:
        harbours.open_harbour("Bremen")
    before, after = migrate(of_schema(shared_database_url, schema))
    assert before == after
    with Harbours(env=env) as harbours:
        harbours.open_harbour("Hamburg")
    assert len(whole_log(shared_database_url, schema)) == 2


def test_a_log_is_made_after_a_migration_that_is_under_way(empty_database_url: str) -> None:
    waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with psycopg.connect(empty_database_url, autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        with ThreadPoolExecutor(1) as threads:
            begun = threads.submit(Harbours, env=environment_of(empty_database_url, own_schema()))
            wait_until(lambda: holder.execute(waiting).fetchone() is not None, "it waits")
            holder.execute("SELECT pg_advisory_unlock_all()")
            begun.result(30).close()


@pytest.mark.server
def test_a_server_that_is_given_the_log_of_an_application_says_what_to_do(
    shared_database_url: str, tmp_path: Path
) -> None:
    schema = own_schema()
    with Harbours(env=environment_of(shared_database_url, schema)):
        pass
    url = of_schema(shared_database_url, schema)
    server = RunningServer(tmp_path / "data", arguments=("--database-url", url))
    with pytest.raises(AssertionError, match="it did not start"):
        server.start()
    assert "belongs to the eventsourcing application Harbours; give the server" in server.log()
    assert "Traceback" not in server.log()


def test_of_two_applications_that_begin_at_once_in_one_schema_one_has_it(
    shared_database_url: str,
) -> None:
    env = environment_of(shared_database_url, own_schema())
    together = threading.Barrier(6)

    def begin(number: int) -> str | None:
        class Named(Harbours):
            name = f"Harbours{number % 2}"

        together.wait(10)
        try:
            with Named(env=env) as named:
                named.open_harbour("Bremen")
                return named.name
        except NotSupportedError:
            return None

    with ThreadPoolExecutor(6) as threads:
        began = list(threads.map(begin, range(6)))
    assert began.count(None) == 3
    assert len(set(began)) == 2
