"""Settings of a database session change nothing in the log, whatever their source."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import tuple_row

import infrastructure
from infrastructure.contract.errors import UserError
from infrastructure.eventsourcing import LogReader
from infrastructure.outbound.log.rebuild.rebuild import rebuild
from infrastructure.outbound.log.schema import connections, session
from infrastructure.outbound.log.schema.migrate import migrate, migration_engine
from infrastructure.outbound.log.transfer.verify_file import verify_file
from infrastructure.outbound.log.verify import verify
from infrastructure.outbound.log.verify.rows import open_read_connection
from infrastructure.outbound.log.verify.verify import VerifyOrder, run_verification
from tests.support.builders.damaged_log import tell_all
from tests.support.builders.exported_logs import WHOLE, exported, imported, tables_of
from tests.support.builders.stored_family import KeptFamily
from tests.support.servers import running_log
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import running_on
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server
PACKAGE = Path(infrastructure.__file__).parent

HOSTILE = {
    "client_encoding": "latin1",
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Pacific/Chatham",
    "timezone_abbreviations": "Australia",
    "extra_float_digits": "-15",
    "default_text_search_config": "pg_catalog.german",
    "default_transaction_isolation": "serializable",
    "session_replication_role": "replica",
    "restrict_nonsystem_relation_kind": "view, foreign-table",
    "synchronous_commit": "off",
    "plan_cache_mode": "force_custom_plan",
    "debug_parallel_query": "regress",
    "gin_fuzzy_search_limit": "1",
    "transaction_timeout": "5s",
    "idle_session_timeout": "200ms",
    "idle_in_transaction_session_timeout": "1s",
    "statement_timeout": "1s",
    "lock_timeout": "1s",
    "cursor_tuple_fraction": "1",
    "from_collapse_limit": "1",
    "join_collapse_limit": "1",
    "geqo_threshold": "2",
    "lc_monetary": "C.UTF-8",
    "lc_numeric": "C.UTF-8",
    "lc_time": "C.UTF-8",
    "lc_messages": "C.UTF-8",
}
"""Values for settings that are not switches."""

OF_THE_OPERATOR = {
    "search_path": "the schema of the log",
    "default_transaction_read_only": "locks a database",
    "transaction_read_only": "of one transaction",
    "transaction_isolation": "of one transaction",
    "transaction_deferrable": "of one transaction",
    "allow_system_table_mods": "for repairs",
    "zero_damaged_pages": "for repairs",
    "ignore_system_indexes": "for repairs",
    "ignore_checksum_failure": "for repairs",
    "default_table_access_method": "needs an extension",
}
OF_THE_MACHINE = (
    *("vacuum_", "tcp_", "wal_", "temp_", "commit_", "max_stack_depth", "post_auth_delay"),
    *("deadlock_timeout", "default_tablespace", "default_toast", "createrole_self_grant"),
    *("session_preload", "local_preload", "dynamic_library_path", "extension_control_path"),
    *("backtrace_functions", "application_name"),
)
"""Prefixes of settings about resources, file locations, and output for operators."""
NOISY = ("log_", "debug_print", "trace_", "jit_debugging", "jit_profiling", "jit_dump")
"""Prefixes of settings that fill the server's log and change nothing else."""

ENVIRONMENT = {"client_encoding": "PGCLIENTENCODING", "DateStyle": "PGDATESTYLE"}
ENVIRONMENT |= {"TimeZone": "PGTZ", "geqo": "PGGEQO"}

Hostile = dict[str, str]


def hostile_settings(url: str) -> Hostile:
    """Return, for each setting of a session, a value that is neither the default nor the fixed
    one.
    """
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT name, vartype, boot_val, enumvals, min_val, max_val FROM pg_settings"
            " WHERE context IN ('user', 'superuser', 'backend', 'superuser-backend')"
            " ORDER BY name"
        ).fetchall()
    found = {}
    for name, kind, usual, allowed, least, most in rows:
        if name in OF_THE_OPERATOR or name.startswith((*OF_THE_MACHINE, *NOISY)):
            continue
        if name in HOSTILE:
            found[name] = HOSTILE[name]
        elif kind == "bool":
            found[name] = "off" if usual == "on" else "on"
        elif kind == "enum" and (others := [item for item in allowed if item != usual]):
            found[name] = others[0]
        elif kind in ("integer", "real"):
            found[name] = least if usual != least else most
        else:
            assert kind == "enum", f"{name} needs a hostile value"
    return found


@contextmanager
def by_environment(url: str, hostile: Hostile) -> Iterator[str]:
    """Apply the settings by libpq's variables, for this process and its children."""
    options = " ".join(
        f"-c {name}={value}".replace(" ", "\\ ").replace("-c\\ ", "-c ")
        for name, value in hostile.items()
        if name not in ENVIRONMENT
    )
    variables = {ENVIRONMENT[name]: hostile[name] for name in ENVIRONMENT if name in hostile}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**variables, "PGOPTIONS": options}.items():
            patch.setenv(name, value)
        yield url


@contextmanager
def _altered(url: str, whose: str, hostile: Hostile) -> Iterator[str]:
    name = sql.Identifier(str(conninfo_to_dict(url)["dbname"]))
    alter = sql.SQL(f"ALTER {whose} SET {{}} = {{}}")
    with psycopg.connect(url, autocommit=True) as connection:
        for setting, value in hostile.items():
            # A list of words is one word when it is quoted.
            words = [sql.Literal(word) for word in value.split(", ")]
            statement = alter.format(sql.SQL(setting), sql.SQL(", ").join(words), database=name)
            connection.execute(statement)
    yield url


def by_database(url: str, hostile: Hostile) -> Any:
    return _altered(url, "DATABASE {database}", hostile)


def by_role(url: str, hostile: Hostile) -> Any:
    return _altered(url, "ROLE CURRENT_USER IN DATABASE {database}", hostile)


WAYS: list[Callable[[str, Hostile], Any]] = [by_environment, by_role, by_database]
_SHOWN = "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS t (name)"
NAMES = list(session.FIXED)


async def _show_all(connection: connections.LogConnection) -> list[Any]:
    return await (await connection.execute(_SHOWN, [NAMES])).fetchall()


def _migration_connection(url: str) -> psycopg.Connection[Any]:
    pooled = migration_engine(url).raw_connection()
    connection: Any = pooled.driver_connection
    pooled.detach()
    return connection  # type: ignore[no-any-return]


SYNC_OPENERS: dict[str, Callable[[str], psycopg.Connection[Any]]] = {
    "plain": lambda url: connections.open_sync_connection(url, application="test"),
    "reader": open_read_connection,
    "migration": _migration_connection,
    "eventsourcing": lambda url: LogReader(url).read(lambda connection: connection),
}


@pytest.fixture
def hostile(databases: Databases, database_url: str) -> Hostile:
    databases.settle()
    return hostile_settings(database_url)


def _by_url(url: str, hostile: Hostile) -> Any:
    options = " ".join(f"-c {name}={value.replace(' ', '')}" for name, value in hostile.items())
    return contextlib.nullcontext(f"{url}&client_encoding=latin1&options={quote(options)}")


@pytest.mark.parametrize("way", [*WAYS, _by_url])
async def test_every_connection_has_the_fixed_settings(
    database_url: str, hostile: Hostile, way: Callable[[str, Hostile], Any]
) -> None:
    wanted = list(session.FIXED.items())
    with way(database_url, hostile) as url:
        for name, opener in SYNC_OPENERS.items():
            with opener(url) as connection:
                found = connection.cursor(row_factory=tuple_row).execute(_SHOWN, [NAMES])
                assert found.fetchall() == wanted, name
        async with await connections.open_connection(url, application="test") as opened:
            assert await _show_all(opened) == wanted
        async with running_log.open_pool(url) as pool, pool.connection() as opened:
            assert await _show_all(opened) == wanted


TEXT = "é🦞 \\u0000 \\' C:\\new 'quoted' 1.10 2024-01-02"


class _Polyglots(KeptFamily):
    def text(self, kind: str, name: str) -> str:
        return f"{kind} {TEXT}"


@pytest.mark.parametrize("way", nightly_but(WAYS, WAYS[:1]))
async def test_log_under_hostile_settings_is_an_ordinary_log(
    databases: Databases,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: Callable[[str, Hostile], Any],
) -> None:
    monkeypatch.setattr(verify, "RANGE_EVENTS_MAX", 80)
    original, copy = databases.create_empty(), databases.create()
    databases.settle()
    hostile = hostile_settings(original)
    file, again = tmp_path / "hostile.ndjson", tmp_path / "plain.ndjson"
    with way(original, hostile), way(copy, hostile):
        migrate(original)
        async with running_on(original) as running:
            await tell_all(running, tmp_path)
            family = _Polyglots(running.log, running.pool, tmp_path, root="agent:main:o", first=950)
            await family.spawn("odd", label=TEXT)
            await family.live("odd")
            assert (await rebuild(original)).differing == 0
        await asyncio.to_thread(_require_right, original, tmp_path)
        exported(original, file, **WHOLE)
        await asyncio.to_thread(imported, copy, file)
        await asyncio.to_thread(_require_right, copy, tmp_path)
    for url in (original, copy):
        for whose in ("DATABASE {database}", "ROLE CURRENT_USER IN DATABASE {database}"):
            _reset(url, whose)
        await asyncio.to_thread(_require_right, url, tmp_path)
        again.unlink(missing_ok=True)
        exported(url, again, **WHOLE)
        assert again.read_bytes() == file.read_bytes()
    assert verify_file(file).fault is None
    tables = tables_of(original)
    assert tables_of(copy) == tables
    assert any(TEXT in str(value) for row in tables["contents"] for value in row)
    databases.drop(original)
    databases.drop(copy)


def _require_right(url: str, folder: Path) -> None:
    found = run_verification(url, VerifyOrder(state_file=folder / "state.json"))
    assert found.difference is None


def _reset(url: str, whose: str) -> None:
    name = sql.Identifier(str(conninfo_to_dict(url)["dbname"]))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL(f"ALTER {whose} RESET ALL").format(database=name))


OPENERS = re.compile(
    r"psycopg\.connect\(|Connection(\[\w+\])?\.connect\(|AsyncConnectionPool\(|create_engine\("
)
MAY_OPEN = {
    "outbound/log/schema/connections.py",
    "outbound/log/schema/migrate.py",
    # Asks whether the embedded server answers, and makes its database.
    "outbound/embedded_postgres/server.py",
}


def test_nothing_else_opens_connections() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if OPENERS.search(path.read_text("utf-8"))
    }
    assert found == MAY_OPEN


def test_server_that_is_too_old_is_refused() -> None:
    with pytest.raises(UserError, match="is PostgreSQL 13; spawnlog needs PostgreSQL 14 or newer"):
        session.session_statement(130_022, "")
