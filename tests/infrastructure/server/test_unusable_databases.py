"""Databases that a start refuses in one line."""

import errno
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import ExportOptions, ServeOptions, VerifyOptions
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.identity.data_directory import DataDirectory
from infrastructure.outbound.log.schema.migrate import migrate
from infrastructure.outbound.log.schema.revision import newest_revision
from infrastructure.server import operations
from infrastructure.server.database import migrate_database, open_database
from tests.support.servers.databases import Databases

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
    """Yield an empty database of another encoding, which cannot store every text."""
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
    result = _refusal(lambda: migrate_database(foreign_url, tmp_path))
    assert "UTF8: create a database with ENCODING 'UTF8' TEMPLATE template0" in result
    migrate(foreign_url)
    assert _refusal(lambda: open_database(foreign_url, tmp_path)) == result


def _set_revision(url: str, revision: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", [revision])


def _refusal_at_every_door(url: str, folder: Path) -> str:
    (message,) = {
        _refusal(lambda: open_database(url, folder)),
        _refusal(lambda: migrate_database(url, folder)),
        _refusal(lambda: migrate(url)),
    }
    return message


@pytest.mark.parametrize("revision", ["0001", "0013", "1"])
def test_database_of_earlier_format_is_refused(
    database_url: str, tmp_path: Path, revision: str
) -> None:
    _set_revision(database_url, revision)
    text = _refusal_at_every_door(database_url, tmp_path)
    assert text.startswith(f"the database is at revision {revision}, an earlier format")
    assert "`spawnlog log export --contents --transcripts` of the release that wrote it" in text


def test_database_of_newer_release_is_refused(database_url: str, tmp_path: Path) -> None:
    _set_revision(database_url, NEWER)
    result = _refusal_at_every_door(database_url, tmp_path)
    assert f"revision {NEWER}" in result
    assert f"up to {newest_revision()}; install the newer spawnlog" in result


@pytest.mark.kill
def test_embedded_database_of_newer_release_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "postgres"
    with closing(EmbeddedPostgres.start(home)) as server:
        migrate(server.conninfo)
        _set_revision(server.conninfo, NEWER)
    for start in (open_database, migrate_database):
        assert f"revision {NEWER}" in _refusal(partial(start, None, home))


@pytest.mark.parametrize(
    "command",
    [
        lambda options: operations.verify(options, VerifyOptions()),
        lambda options: operations.export_to_file(
            options, ExportOptions(out=options.data_dir / "export")
        ),
        operations.rebuild,
        operations.migrate,
    ],
    ids=["verify", "export", "rebuild", "migrate"],
)
def test_missing_log_is_not_replaced_by_empty_one(
    command: Callable[[ServeOptions], object], tmp_path: Path
) -> None:
    """An empty log would verify, and its export would pass for a backup."""
    with pytest.raises(UserError, match=r"there is no log in .*; give --data-dir, or"):
        command(ServeOptions(data_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []
    DataDirectory(tmp_path).record_log(uuid4(), "external")
    with pytest.raises(UserError, match=r"has its log .* in an external database; start with"):
        command(ServeOptions(data_dir=tmp_path))


@pytest.mark.parametrize("command", [operations.migrate, operations.rebuild])
def test_data_directory_that_cannot_be_read_is_named(
    command: Callable[[ServeOptions], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unknown = _refusal(lambda: command(ServeOptions(data_dir=Path("~no-such-user/x"))))
    assert unknown.startswith("the data directory ~no-such-user/x names an unknown user")

    def denied(_: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", denied)
    closed = _refusal(lambda: command(ServeOptions(data_dir=tmp_path)))
    assert f"the data directory {tmp_path} cannot be read: Permission denied; run" in closed
