"""Whole databases as earlier releases left them: `tests/golden_databases/<revision>.jsonl`.

Each was written once by the release whose newest revision it is named after, with every event type
in it, and is never changed. A line that names a table and its columns stands before its rows.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from psycopg import sql

from infrastructure.outbound.log.schema.migrate import migration_engine
from infrastructure.outbound.log.schema.revision import scripts_folder

FOLDER = Path(__file__).parents[2] / "golden_databases"


def revisions() -> list[str]:
    """Every revision, oldest first."""
    scripts = ScriptDirectory.from_config(_configuration())
    return [one.revision for one in scripts.walk_revisions()][::-1]


def fill(url: str, revision: str) -> None:
    """Bring an empty database to a revision, with what an earlier release has left in it."""
    golden = max(path.stem for path in FOLDER.iterdir() if path.stem <= revision)
    _upgrade(url, golden)
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM log_head")
        for table, columns, rows in _tables(FOLDER / f"{golden}.jsonl"):
            copy = sql.SQL("COPY {} ({}) FROM STDIN").format(
                sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
            )
            with connection.cursor().copy(copy) as writing:
                for row in rows:
                    writing.write_row(row)
    _upgrade(url, revision)


def _tables(path: Path) -> Iterator[tuple[str, list[str], list[Any]]]:
    table: tuple[str, list[str], list[Any]] | None = None
    for line in path.read_text("utf-8").splitlines():
        found = json.loads(line)
        if isinstance(found, dict):
            if table is not None:
                yield table
            table = (found["table"], found["columns"], [])
        elif table is not None:
            table[2].append(found)
    if table is not None:
        yield table


def _configuration() -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", str(scripts_folder()))
    return configuration


def _upgrade(url: str, revision: str) -> None:
    engine = migration_engine(url)
    try:
        with engine.connect() as connection:
            configuration = _configuration()
            configuration.attributes["connection"] = connection
            command.upgrade(configuration, revision)
            connection.commit()
    finally:
        engine.dispose()
