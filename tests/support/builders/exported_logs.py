"""Logs that are exported and imported, and compared table by table."""

import hashlib
from pathlib import Path
from typing import Any

import psycopg

from infrastructure.outbound.log.transfer.export import Exported, ExportOrder, export_log
from infrastructure.outbound.log.transfer.import_log import Imported, ImportOrder, import_log
from infrastructure.outbound.log.transfer.line_file import OutputFile

WHOLE = {"has_contents": True, "has_transcripts": True}
TABLES = {
    "log_head": "SELECT log_id, position, recorded_at, chain_hash, format FROM log_head",
    "events": "SELECT * FROM events ORDER BY position",
    "commits": "SELECT * FROM commits ORDER BY 1",
    "runs": "SELECT * FROM runs ORDER BY run_id, from_position",
    "sessions": "SELECT * FROM sessions ORDER BY session_key, from_position",
    "contents": "SELECT * FROM contents ORDER BY 1",
    "content_keys": "SELECT * FROM content_keys ORDER BY 1",
    "transcript_entries": "SELECT * FROM transcript_entries ORDER BY 1, 2",
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()"
    " ORDER BY 1",
}
"""Tables that an imported log shares with the exported one, and the queries that read them."""


def exported(url: str, path: Path, *, resume: bool = False, **order: Any) -> Exported:
    with OutputFile(path, resume=resume, force=False) as file:
        return export_log(url, ExportOrder(file, is_resumed=resume, **order))


def imported(url: str, path: Path, **order: Any) -> Imported:
    return import_log(url, ImportOrder(path, **order))


def tables_of(url: str) -> dict[str, list[Any]]:
    with psycopg.connect(url) as connection:
        connection.execute("SET timezone = 'UTC'")
        return {
            name: connection.execute(query.encode()).fetchall() for name, query in TABLES.items()
        }


def is_untouched(url: str) -> bool:
    """Return True if the log is empty."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT (SELECT position FROM log_head) + (SELECT count(*) FROM events)"
            " + (SELECT count(*) FROM contents) + (SELECT count(*) FROM content_keys)"
            " + (SELECT count(*) FROM commits) + (SELECT count(*) FROM transcript_entries)"
        ).fetchone()
    return row == (0,)


def sealed_anew(lines: list[bytes]) -> bytes:
    """Return a file of these lines whose last line has the right hash of all preceding ones."""
    before, _, behind = lines[-1].rpartition(b'"sha256":"')
    digest = hashlib.sha256(b"".join(lines[:-1])).hexdigest().encode()
    return b"".join(lines[:-1]) + before + b'"sha256":"' + digest + behind[64:]
