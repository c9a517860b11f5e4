"""What a kill leaves of an export or an import is gone on with, or is nothing."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks.generate import generate
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.connections import open_connection
from infrastructure.outbound.log.schema.projection_versions import stale_projections
from infrastructure.outbound.log.transfer.line_file import OutputFile
from tests.support.builders.exported_logs import (
    WHOLE,
    exported,
    imported,
    sealed_anew,
    tables_of,
)
from tests.support.servers.databases import Databases
from tests.support.tiers import nightly_but

pytestmark = [pytest.mark.kill, pytest.mark.server]

EVENTS = 6_000
EXPORT = """
import os, signal, sys
from pathlib import Path
from infrastructure.outbound.log.transfer import export
from infrastructure.outbound.log.transfer.export import ExportOrder, export_log
from infrastructure.outbound.log.transfer.line_file import OutputFile
export.PAGE_EVENTS = 2_500
def die(step, began, done, total):
    if step == sys.argv[3] and done >= int(sys.argv[4]):
        file.write(b'{"specversion":"1.0","id":"')
        file._file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
with OutputFile(Path(sys.argv[2]), resume=False, force=False) as file:
    export_log(sys.argv[1], ExportOrder(
        file, has_contents=True, has_transcripts=True, on_progress=die))
"""
IMPORT = """
import os, signal, sys
from pathlib import Path
from infrastructure.outbound.log.transfer import import_log
from infrastructure.outbound.log.transfer.import_log import ImportOrder
import_log.COPY_LINES = 1_000
def die(step, began, done, total):
    if step == sys.argv[3] and done >= int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
import_log.import_log(sys.argv[1], ImportOrder(Path(sys.argv[2]), on_progress=die))
"""


def _killed(program: str, url: str, path: Path, step: str, done: int) -> None:
    arguments = [sys.executable, "-c", program, url, str(path), step, str(done)]
    ended = subprocess.run(arguments, check=False, timeout=60, env={**os.environ})
    assert ended.returncode == -signal.SIGKILL


@pytest.fixture(scope="module")
def history(databases: Databases) -> Iterator[str]:
    url = databases.create()
    generate(url, events=EVENTS, seed=5)
    yield url
    databases.drop(url)


@pytest.fixture(scope="module")
def whole_file(history: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of the history, straight away; who damages it does so to a copy."""
    file = tmp_path_factory.mktemp("whole") / "log.ndjson"
    exported(history, file, **WHOLE)
    return file


@pytest.fixture(scope="module")
def history_tables(history: str) -> dict[str, list[Any]]:
    return tables_of(history)


@pytest.mark.parametrize(
    ("step", "done"), nightly_but([("events", 5_000), ("texts", 2_500)], [("events", 5_000)])
)
def test_an_export_that_was_killed_goes_on_behind_its_last_whole_event(
    history: str, whole_file: Path, tmp_path: Path, step: str, done: int
) -> None:
    file = tmp_path / "log.ndjson"
    _killed(EXPORT, history, file, step, done)
    part = tmp_path / "log.ndjson.part"
    assert not file.exists()
    assert stat.S_IMODE(part.stat().st_mode) == 0o600
    with pytest.raises(UserError, match="give --resume to go on with it, or --force"):
        exported(history, file, **WHOLE)
    went_on = exported(history, file, resume=True, **WHOLE)
    assert went_on.began > 0
    assert not part.exists()
    assert file.read_bytes() == whole_file.read_bytes()


def test_a_part_of_another_export_is_not_gone_on_with(
    history: str, database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "log.ndjson"
    _killed(EXPORT, history, file, "events", 2_500)
    with pytest.raises(UserError, match="of another export"):
        exported(history, file, resume=True)
    with pytest.raises(UserError, match="holds another event at position"):
        exported(database_url, file, resume=True, **WHOLE)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE log_head SET log_id = gen_random_uuid()")
    with pytest.raises(UserError, match="of another export"):
        exported(database_url, file, resume=True, **WHOLE)


def test_a_damaged_part_is_not_gone_on_with(history: str, tmp_path: Path) -> None:
    file = tmp_path / "log.ndjson"
    _killed(EXPORT, history, file, "events", 2_500)
    part = tmp_path / "log.ndjson.part"
    part.write_bytes(part.read_bytes().replace(b'"streamversion":2', b'"streamversion":3', 1))
    with pytest.raises(UserError, match=r"cannot be gone on with: line \d+, position \d+: .*chain"):
        exported(history, file, resume=True, **WHOLE)


@pytest.mark.nightly
def test_an_export_goes_on_to_where_the_log_is_by_now(
    whole_file: Path, database_url: str, tmp_path: Path
) -> None:
    """Texts that were erased meanwhile are not in the file that was begun before."""
    file = tmp_path / "log.ndjson"
    imported(database_url, whole_file)
    _killed(EXPORT, database_url, file, "texts", 2_500)
    part = (tmp_path / "log.ndjson.part").read_bytes()
    with psycopg.connect(database_url) as connection:
        # The first text of all is in the part: they stand in the order of their ids.
        row = connection.execute(
            "SELECT session_id, content_id::text FROM contents ORDER BY content_id LIMIT 1"
        ).fetchone()
        assert row is not None
        assert f'"{row[1]}"'.encode() in part
        for table in ("contents", "content_keys"):
            connection.execute(f"DELETE FROM {table} WHERE session_id = %s".encode(), [row[0]])
    exported(database_url, file, resume=True, **WHOLE)
    written = file.read_bytes()
    assert f'"id":"{row[1]}","source"'.encode() not in written


def test_a_file_that_is_there_is_not_replaced(history: str, tmp_path: Path) -> None:
    file = tmp_path / "log.ndjson"
    file.write_text("mine")
    with pytest.raises(UserError, match="name another file, or give --force"):
        exported(history, file)
    link = tmp_path / "link.ndjson"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match="is there already"):
        exported(history, link)
    (tmp_path / "third.ndjson.part").symlink_to(file)
    with pytest.raises(UserError):
        exported(history, tmp_path / "third.ndjson", resume=True)
    assert file.read_text() == "mine"


def test_two_exports_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    with OutputFile(path, resume=False, force=False):
        with pytest.raises(UserError, match="is being written by another process"):
            OutputFile(path, resume=True, force=False)


@pytest.mark.parametrize(
    ("step", "done"), nightly_but([("events", 5_500), ("indexes", 3)], [("indexes", 3)])
)
def test_an_import_that_was_killed_before_its_end_leaves_nothing(
    whole_file: Path,
    history_tables: dict[str, list[Any]],
    database_url: str,
    step: str,
    done: int,
) -> None:
    empty = tables_of(database_url)
    _killed(IMPORT, database_url, whole_file, step, done)
    assert tables_of(database_url) == empty
    imported(database_url, whole_file, resume=True)
    assert tables_of(database_url) == history_tables


@pytest.mark.nightly
async def test_rows_of_an_import_are_of_this_release(whole_file: Path, database_url: str) -> None:
    imported(database_url, whole_file)
    assert imported(database_url, whole_file, resume=True).began == EVENTS
    async with await open_connection(database_url, application="test") as connection:
        assert await stale_projections(connection) == ()


@pytest.mark.nightly
def test_a_file_is_read_to_its_end_before_it_is_said_to_be_stored(
    whole_file: Path, database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "log.ndjson"
    imported(database_url, whole_file)
    data = whole_file.read_bytes()
    file.write_bytes(data.replace(b'event.RunEnded"', b'event.RunEndex"', 1))
    with pytest.raises(UserError, match=r"line \d+, position \d+: .*; nothing was imported"):
        imported(database_url, file, resume=True)
    lines = data.splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if b'export.content"' in line)
    lines[number] = lines[number].replace(b'"data":"', b'"data":"x')
    file.write_bytes(sealed_anew(lines))
    with pytest.raises(UserError, match=r"another text; nothing was imported"):
        imported(database_url, file, resume=True)


@pytest.mark.nightly
def test_a_log_whose_texts_are_fewer_than_those_of_the_file_is_not_gone_on_with(
    history: str, whole_file: Path, database_url: str, tmp_path: Path
) -> None:
    bare, part = tmp_path / "bare.ndjson", tmp_path / "part.ndjson"
    exported(history, bare)
    exported(history, part, first=EVENTS - 1_000)
    imported(database_url, bare, without_texts=True)
    with pytest.raises(UserError, match=r"is not what log\.ndjson holds: 0 rows of content_keys"):
        imported(database_url, whole_file, resume=True)
    with pytest.raises(UserError, match=r"part\.ndjson holds a range of a log"):
        imported(database_url, part, resume=True, without_texts=True)
    assert imported(database_url, bare, resume=True, without_texts=True).began == EVENTS


def test_a_log_that_is_another_one_is_not_gone_on_with(
    whole_file: Path, databases: Databases, database_url: str, tmp_path: Path
) -> None:
    other = tmp_path / "other.ndjson"
    second = databases.create()
    generate(second, events=200, seed=9)
    exported(second, other, **WHOLE)
    imported(database_url, other)
    with pytest.raises(UserError, match=r"this log is not what log\.ndjson holds"):
        imported(database_url, whole_file, resume=True)
    databases.drop(second)
