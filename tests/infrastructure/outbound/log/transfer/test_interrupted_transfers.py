"""A killed export or import is resumed, or leaves nothing."""

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


def run_killed(program: str, url: str, path: Path, step: str, done: int) -> None:
    arguments = [sys.executable, "-c", program, url, str(path), step, str(done)]
    assert subprocess.run(arguments, check=False, timeout=60).returncode == -signal.SIGKILL


@pytest.fixture(scope="module")
def history(databases: Databases) -> Iterator[str]:
    url = databases.create()
    generate(url, events=EVENTS, seed=5)
    yield url
    databases.drop(url)


@pytest.fixture(scope="module")
def whole_file(history: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the exported history, which no test changes."""
    file = tmp_path_factory.mktemp("whole") / "log.ndjson"
    exported(history, file, **WHOLE)
    return file


@pytest.fixture(scope="module")
def history_tables(history: str) -> dict[str, list[Any]]:
    return tables_of(history)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log.ndjson"


@pytest.mark.parametrize(
    ("step", "done"), nightly_but([("events", 5_000), ("texts", 2_500)], [("events", 5_000)])
)
def test_killed_export_goes_on_behind_its_last_event(
    history: str, whole_file: Path, file: Path, step: str, done: int
) -> None:
    run_killed(EXPORT, history, file, step, done)
    part = file.with_name("log.ndjson.part")
    assert not file.exists()
    assert stat.S_IMODE(part.stat().st_mode) == 0o600
    with pytest.raises(UserError, match="give --resume to continue it, or --force"):
        exported(history, file, **WHOLE)
    assert exported(history, file, resume=True, **WHOLE).began > 0
    assert not part.exists()
    assert file.read_bytes() == whole_file.read_bytes()


def test_export_does_not_go_on_with_another_part(
    history: str, database_url: str, file: Path
) -> None:
    run_killed(EXPORT, history, file, "events", 2_500)
    with pytest.raises(UserError, match="of another export"):
        exported(history, file, resume=True)
    with pytest.raises(UserError, match="holds another event at position"):
        exported(database_url, file, resume=True, **WHOLE)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE log_head SET log_id = gen_random_uuid()")
    with pytest.raises(UserError, match="of another export"):
        exported(database_url, file, resume=True, **WHOLE)
    part = file.with_name("log.ndjson.part")
    part.write_bytes(part.read_bytes().replace(b'"streamversion":2', b'"streamversion":3', 1))
    with pytest.raises(UserError, match=r"cannot be resumed: line \d+, position \d+: .*chain"):
        exported(history, file, resume=True, **WHOLE)


@pytest.mark.nightly
def test_resumed_export_has_no_text_erased_meanwhile(
    whole_file: Path, database_url: str, file: Path
) -> None:
    imported(database_url, whole_file)
    run_killed(EXPORT, database_url, file, "texts", 2_500)
    with psycopg.connect(database_url) as connection:
        # The first text is in the part: texts are in the order of their ids.
        row = connection.execute(
            "SELECT session_id, content_id::text FROM contents ORDER BY content_id LIMIT 1"
        ).fetchone()
        assert row is not None
        assert f'"{row[1]}"'.encode() in file.with_name("log.ndjson.part").read_bytes()
        for table in ("contents", "content_keys"):
            connection.execute(f"DELETE FROM {table} WHERE session_id = %s".encode(), [row[0]])
    exported(database_url, file, resume=True, **WHOLE)
    assert f'"id":"{row[1]}","source"'.encode() not in file.read_bytes()


def test_file_that_is_there_is_not_replaced(history: str, file: Path, tmp_path: Path) -> None:
    file.write_text("mine")
    link = tmp_path / "link.ndjson"
    link.symlink_to(tmp_path / "nowhere")
    for path in (file, link):
        with pytest.raises(UserError, match="already exists; name another file, or give --force"):
            exported(history, path)
    (tmp_path / "third.ndjson.part").symlink_to(file)
    with pytest.raises(UserError):
        exported(history, tmp_path / "third.ndjson", resume=True)
    assert file.read_text() == "mine"


def test_two_exports_do_not_write_one_file(file: Path) -> None:
    with OutputFile(file, resume=False, force=False):
        with pytest.raises(UserError, match="is being written by another process"):
            OutputFile(file, resume=True, force=False)


@pytest.mark.parametrize(
    ("step", "done"), nightly_but([("events", 5_500), ("indexes", 3)], [("indexes", 3)])
)
def test_killed_import_leaves_nothing(
    whole_file: Path, history_tables: dict[str, list[Any]], database_url: str, step: str, done: int
) -> None:
    empty = tables_of(database_url)
    run_killed(IMPORT, database_url, whole_file, step, done)
    assert tables_of(database_url) == empty
    imported(database_url, whole_file, resume=True)
    assert tables_of(database_url) == history_tables


@pytest.mark.nightly
def test_resumed_import_reads_its_file_to_the_end(
    whole_file: Path, database_url: str, file: Path
) -> None:
    imported(database_url, whole_file)
    data = whole_file.read_bytes()
    file.write_bytes(data.replace(b'event.RunEnded"', b'event.RunEndex"', 1))
    with pytest.raises(UserError, match=r"line \d+, position \d+: .*; nothing was imported"):
        imported(database_url, file, resume=True)
    lines = data.splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if b'export.content"' in line)
    lines[number] = lines[number].replace(b'"data":"', b'"data":"x')
    file.write_bytes(sealed_anew(lines))
    with pytest.raises(UserError, match=r"a different text; nothing was imported"):
        imported(database_url, file, resume=True)


@pytest.mark.nightly
def test_import_does_not_go_on_in_log_without_texts(
    history: str, whole_file: Path, database_url: str, tmp_path: Path
) -> None:
    bare, part = tmp_path / "bare.ndjson", tmp_path / "part.ndjson"
    exported(history, bare)
    exported(history, part, first=EVENTS - 1_000)
    imported(database_url, bare, without_texts=True)
    with pytest.raises(UserError, match=r"differs from log\.ndjson: 0 rows of content_keys"):
        imported(database_url, whole_file, resume=True)
    with pytest.raises(UserError, match=r"part\.ndjson holds a range of a log"):
        imported(database_url, part, resume=True, without_texts=True)
    assert imported(database_url, bare, resume=True, without_texts=True).began == EVENTS


def test_import_does_not_go_on_in_another_log(
    whole_file: Path, databases: Databases, database_url: str, tmp_path: Path
) -> None:
    second_file, second = tmp_path / "other.ndjson", databases.create()
    generate(second, events=200, seed=9)
    exported(second, second_file, **WHOLE)
    imported(database_url, second_file)
    with pytest.raises(UserError, match=r"this log differs from log\.ndjson"):
        imported(database_url, whole_file, resume=True)
    databases.drop(second)
