"""A database without a spare connection is named, with the number that a server uses."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import ServeOptions
from infrastructure.outbound.log.schema.connections import SERVER_CONNECTIONS_MAX
from infrastructure.outbound.log.verify.rows import database_error_reason
from infrastructure.server import operations
from infrastructure.server.database import Database, open_database

ROLE = "without_room"


@pytest.fixture
def crowded_url(database_url: str) -> Iterator[str]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {ROLE} LOGIN CONNECTION LIMIT 0".encode())
        try:
            yield database_url.replace("://spawnlog@", f"://{ROLE}@")
        finally:
            connection.execute(f"DROP ROLE {ROLE}".encode())


def test_crowded_database_is_named_with_its_remedy(crowded_url: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        open_database(crowded_url, tmp_path)
    text = str(refused.value)
    assert f"each server of the log holds up to {SERVER_CONNECTIONS_MAX}" in text
    assert "raise max_connections" in text
    assert "--database-url" not in text


def test_start_without_file_names_crowded_database(
    crowded_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last connection is taken after the start has inspected the database."""
    monkeypatch.delenv(operations.CONFIG_VARIABLE, raising=False)
    database = Database(crowded_url, lambda: None, lambda: None)
    monkeypatch.setattr(operations, "open_database", lambda *_: database)
    with pytest.raises(UserError, match="raise max_connections"):
        operations.serve(ServeOptions(data_dir=tmp_path, port=0))


def test_verification_names_crowded_database(crowded_url: str) -> None:
    with pytest.raises(psycopg.OperationalError) as refused:
        psycopg.connect(crowded_url)
    assert "raise max_connections" in database_error_reason(refused.value)
