"""Migration of a database to the schema of this release."""

import shutil
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.exc import ProgrammingError

import infrastructure
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema import migrate as migrate_module
from infrastructure.outbound.log.schema.migrate import MIGRATION_LOCK, migrate, migration_engine
from infrastructure.outbound.log.schema.revision import (
    inspect_database,
    newest_revision,
    scripts_folder,
)
from tests.support.builders.submissions import observe
from tests.support.servers.running_log import identity_of, running_on
from tests.support.waiting import wait_for

PROJECT = Path(__file__).parents[5]
TABLES = {
    "alembic_version",
    "log_head",
    "events",
    "commits",
    "projections",
    "runs",
    "sessions",
    "content_keys",
    "contents",
    "transcript_entries",
    "idempotency",
    "holders",
    "work_claims",
    "page_tokens",
    "verifications",
    "staged_files",
    "transcript_files",
    "event_counts",
    "live_runs",
}
BROKEN = '''
"""One table, and then a mistake.

Revision: 9999
"""
from alembic import op

revision = "9999"
down_revision = "{newest}"


def upgrade() -> None:
    op.execute("CREATE TABLE added (x int)")
    op.execute("CREATE TABLE added (x int)")
'''


def _described(url: str) -> list[tuple[object, ...]]:
    """Return every column and index."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
            " WHERE table_schema = current_schema() UNION ALL"
            " SELECT tablename, indexname, indexdef, '' FROM pg_indexes"
            " WHERE schemaname = current_schema() ORDER BY 1, 2"
        ).fetchall()


def _count_waiting(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    rows = connection.execute(
        "SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = database WHERE NOT granted"
        " AND datname = current_database() AND locktype = 'advisory' AND objid = %s",
        [MIGRATION_LOCK],
    )
    return len(rows.fetchall())


def test_empty_database_gets_the_whole_schema(empty_database_url: str) -> None:
    assert inspect_database(empty_database_url).revision is None
    assert migrate(empty_database_url) == (None, newest_revision())
    assert inspect_database(empty_database_url).revision == newest_revision()
    before = _described(empty_database_url)
    assert {str(row[0]) for row in before} == TABLES
    with psycopg.connect(empty_database_url) as connection:
        head = connection.execute("SELECT position, format, chain_hash FROM log_head").fetchall()
    assert head == [(0, 1, b"")]
    assert migrate(empty_database_url) == (newest_revision(), newest_revision())
    assert _described(empty_database_url) == before


def _migrate_to(url: str, revision: str) -> None:
    configuration = Config()
    configuration.set_main_option("script_location", str(scripts_folder()))
    engine = migration_engine(url)
    try:
        with engine.connect() as connection:
            configuration.attributes["connection"] = connection
            command.upgrade(configuration, revision)
            connection.commit()
    finally:
        engine.dispose()


OLD_ROWS = {
    "2": (
        "INSERT INTO contents (content_id, session_id, kind, bytes, hmac, preview, body) VALUES"
        " (gen_random_uuid(), gen_random_uuid(), 'task', 4, repeat('0', 64), 'text', 'text')",
        "SELECT pg_relation_filenode('contents'), ctid FROM contents",
        "SELECT kind, bytes, body FROM contents",
        ("task", 4, "text"),
    ),
    "3": (
        "INSERT INTO sessions (session_key, version, created_position, created_at, from_position,"
        " to_position, session_id, root, state) SELECT 'agent:main:main', 1, 1, now(), 1, 2,"
        " gen_random_uuid(), 'agent:main:main', '{}'",
        "SELECT pg_relation_filenode('events'), pg_relation_filenode('runs'), ctid FROM sessions",
        "SELECT state FROM sessions",
        ("{}",),
    ),
}


@pytest.mark.parametrize("revision", OLD_ROWS)
def test_upgrade_keeps_rows_in_place(empty_database_url: str, revision: str) -> None:
    row, place, kept, values = OLD_ROWS[revision]
    _migrate_to(empty_database_url, revision)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(row)
        before = connection.execute(place).fetchall()
    assert migrate(empty_database_url) == (revision, newest_revision())
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        # A table that is written anew has another file, and takes the longer, the more it holds.
        assert connection.execute(place).fetchall() == before
        assert connection.execute(kept).fetchall() == [values]


@pytest.mark.parametrize("table", ["runs", "sessions", "events"])
def test_migration_gives_up_while_the_log_is_read(
    empty_database_url: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate_module, "TABLES_LOCK_MILLISECONDS_MAX", 50)
    _migrate_to(empty_database_url, "3")
    with psycopg.connect(empty_database_url) as reader:
        reader.execute(f"SELECT count(*) FROM {table}")
        with pytest.raises(UserError, match="wait for exports, verifications and rebuilds"):
            migrate(empty_database_url)
    assert migrate(empty_database_url) == ("3", newest_revision())


@pytest.mark.server
def test_one_of_several_migrations_at_once_works(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        with ThreadPoolExecutor(4) as threads:
            started = [threads.submit(migrate, empty_database_url) for _ in range(4)]
            wait_for("all wait for their turn", lambda: _count_waiting(holder) == 4)
            holder.execute("SELECT pg_advisory_unlock_all()")
            answers = [item.result(30) for item in started]
    assert sorted(answers, key=str) == [
        *[(newest_revision(), newest_revision())] * 3,
        (None, newest_revision()),
    ]


def test_failed_migration_leaves_no_half(
    empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = newest_revision()
    packaged = _packaged(tmp_path, monkeypatch)
    (packaged / "versions" / "9999_broken.py").write_text(BROKEN.replace("{newest}", newest))
    for _ in range(2):
        with pytest.raises(ProgrammingError, match="already exists"):
            migrate(empty_database_url)
        assert inspect_database(empty_database_url).revision == newest
        assert {str(row[0]) for row in _described(empty_database_url)} == TABLES


def test_migrations_are_found_in_source_and_package(
    empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scripts_folder() == PROJECT / "alembic"
    # A package would hide the library of this name.
    assert not (PROJECT / "alembic" / "__init__.py").exists()
    packaged = _packaged(tmp_path, monkeypatch)
    assert scripts_folder() == packaged
    assert migrate(empty_database_url) == (None, newest_revision())


def test_wheel_holds_the_migrations() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"alembic": "infrastructure/migrations"}
    assert "infrastructure" in wheel["packages"]
    assert not (PROJECT / "infrastructure" / "migrations").exists()


@pytest.mark.parametrize("url", ["mysql://host/db", "host=/tmp dbname=x", "", "postgresql:/x"])
def test_url_of_something_else_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="must begin with postgresql://"):
        migrate(url)


def test_both_spellings_of_a_url_are_understood(database_url: str) -> None:
    _, separator, rest = database_url.partition("://")
    assert migrate(f"postgres{separator}{rest}") == (newest_revision(), newest_revision())


async def test_two_schemas_of_one_database_hold_two_logs(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA one; CREATE SCHEMA another")
    left, right = (
        f"{empty_database_url}&options=-csearch_path%3D{name}" for name in ("one", "another")
    )
    assert migrate(left) == (None, newest_revision())
    assert inspect_database(right).revision is None
    assert migrate(right) == (None, newest_revision())
    async with running_on(left) as first, running_on(right) as second:
        await observe(first.log, range(3))
        await observe(second.log, range(2))
        assert (len(await first.events()), len(await second.events())) == (3, 2)
        assert first.log.log_id != second.log.log_id
        for running, schema in ((first, "one"), (second, "another")):
            async with running.pool.connection() as opened:
                assert await identity_of(opened) == (running.log.log_id, schema)


def _packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the migrations as an installed package has them."""
    package = tmp_path / "100% infrastructure"
    shutil.copytree(PROJECT / "alembic", package / "migrations")
    monkeypatch.setattr(infrastructure, "__file__", str(package / "__init__.py"))
    return package / "migrations"


def test_newest_revision_is_the_head_of_migrations() -> None:
    configuration = Config()
    configuration.set_main_option("script_location", str(scripts_folder()))
    assert newest_revision() == ScriptDirectory.from_config(configuration).get_current_head()
