"""Databases that a start refuses in one line."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from infrastructure.contract.errors import UserError
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.log.schema.migrate import migrate
from infrastructure.outbound.log.schema.revision import newest_revision
from infrastructure.outbound.log.verify.verify import VerifyOrder, run_verification
from infrastructure.server.database import migrate_database, open_database
from tests.support.builders.damaged_log import tell_all
from tests.support.builders.exported_logs import WHOLE, exported, imported
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import running_on

pytestmark = pytest.mark.server

NEWER = "9999"


def _refusal(start: Callable[[], object]) -> str:
    with pytest.raises(UserError) as refused:
        start()
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("rest", ["@[h", "%ret@h/d", "@[::1]x/d", "@h:x y/d", "@h/d?nope=1"])
def test_malformed_url_is_not_repeated(tmp_path: Path, rest: str) -> None:
    for start in (open_database, migrate_database):
        refusal = _refusal(partial(start, f"postgresql://u:s3cret{rest}", tmp_path))
        assert "the database URL cannot be read: write postgresql://" in refusal
        assert "s3c" not in refusal


@pytest.fixture(params=["LATIN1", "SQL_ASCII"])
def foreign_url(
    request: pytest.FixtureRequest, databases: Databases, database_url: str
) -> Iterator[str]:
    """An empty database of another encoding, in which no text has its place."""
    name = f"{conninfo_to_dict(database_url)['dbname']}_{request.param.lower()}"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING '{request.param}' LOCALE_PROVIDER libc LOCALE 'C'"
            " TEMPLATE template0"
        )
    url = database_url.replace(f"/{conninfo_to_dict(database_url)['dbname']}?", f"/{name}?")
    yield url
    databases.drop(url)


def test_other_encoding_is_refused(foreign_url: str, tmp_path: Path) -> None:
    told = _refusal(lambda: migrate_database(foreign_url, tmp_path))
    assert "UTF8: create a database with ENCODING 'UTF8' TEMPLATE template0" in told
    migrate(foreign_url)
    assert _refusal(lambda: open_database(foreign_url, tmp_path)) == told


async def test_log_in_other_encoding_can_be_moved(
    foreign_url: str, database_url: str, tmp_path: Path
) -> None:
    migrate(foreign_url)
    async with running_on(foreign_url) as running:
        await tell_all(running, tmp_path)
    open_database(foreign_url, tmp_path, any_encoding=True)
    file = tmp_path / "log.ndjson"
    exported(foreign_url, file, **WHOLE)
    await asyncio.to_thread(imported, database_url, file)
    order = VerifyOrder(state_file=tmp_path / "state.json")
    assert (await asyncio.to_thread(run_verification, database_url, order)).difference is None


def _make_newer(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", [NEWER])


def test_database_of_newer_release_is_refused(database_url: str, tmp_path: Path) -> None:
    _make_newer(database_url)
    (told,) = {
        _refusal(lambda: open_database(database_url, tmp_path)),
        _refusal(lambda: open_database(database_url, tmp_path, any_encoding=True)),
        _refusal(lambda: migrate_database(database_url, tmp_path)),
        _refusal(lambda: migrate(database_url)),
    }
    assert f"revision {NEWER}" in told
    assert f"up to {newest_revision()}; install the newer spawnlog" in told


@pytest.mark.kill
def test_embedded_database_of_newer_release_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "postgres"
    with closing(EmbeddedPostgres.start(home)) as server:
        migrate(server.conninfo)
        _make_newer(server.conninfo)
    for start in (open_database, migrate_database):
        assert f"revision {NEWER}" in _refusal(partial(start, None, home))
