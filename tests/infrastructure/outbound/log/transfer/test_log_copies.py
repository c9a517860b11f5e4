"""An exported and imported log is the same log; a part of one is verified, and is not a log."""

import asyncio
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from application.projections.catalog import PROJECTIONS
from domain.event_types import EVENT_TYPES
from infrastructure.contract.errors import FileContentError, UnknownNameError, UserError
from infrastructure.outbound.log.transfer import import_log, verify_file
from infrastructure.outbound.log.transfer.folded_rows import FoldedRows
from infrastructure.outbound.log.transfer.import_log import FILLED
from infrastructure.outbound.log.transfer.indexes import DroppedIndexes
from infrastructure.outbound.log.transfer.lines import FILE_FORMAT
from infrastructure.outbound.log.verify.verify import VerifyOrder, run_verification
from tests.support.builders.damaged_log import RepairableLog
from tests.support.builders.exported_logs import (
    WHOLE,
    exported,
    imported,
    is_untouched,
    sealed_anew,
    tables_of,
)
from tests.support.builders.golden_answers import LOGS
from tests.support.builders.submissions import observe
from tests.support.servers.running_log import running_on

pytestmark = pytest.mark.server
GOLDEN = sorted(LOGS.iterdir())
GOLDEN_ROWS = {
    "first": {
        "runs 1": "053fef771928e374584b27a4767a516e",
        "sessions 2": "0fa8147cb499f4ead2adcd6e0f9bb7be",
    },
    "second": {
        "runs 1": "5446a644a7666970761d1ce233a92c9b",
        "sessions 2": "2ed7f8c197961c0b16eafee1da4e04d2",
    },
}
"""MD5 of the rows of these logs, by projection and version.

If a change gives others, raise the `version` of the projection: otherwise older servers keep
writing beside newer ones.
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log.ndjson"


@pytest.fixture(scope="module")
def whole_file(story: RepairableLog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log with every type of event, which no test changes."""
    path = tmp_path_factory.mktemp("whole") / "whole.ndjson"
    exported(story.url, path, **WHOLE)
    return path


@pytest.fixture
def copy(database_url: str, tmp_path: Path) -> Iterator[RepairableLog]:
    """Yield an empty log; assert that an imported one is right."""
    yield RepairableLog(database_url, tmp_path)
    order = VerifyOrder(state_file=tmp_path / "state.json")
    assert run_verification(database_url, order).difference is None


def fault_of(file: Path, old: bytes, new: bytes, *, without: int | None = None) -> FileContentError:
    """Return the fault after a text was replaced or a line removed, and the file sealed again."""
    lines = file.read_bytes().replace(old, new, 1).splitlines(keepends=True)
    if without is not None:
        del lines[without]
    file.write_bytes(sealed_anew(lines))
    fault = verify_file.verify_file(file).fault
    assert fault is not None
    return fault


def test_copy_of_log_is_the_same(
    intact_log: RepairableLog, whole_file: Path, copy: RepairableLog, file: Path
) -> None:
    # All logs of a test have the same id.
    copy.do("UPDATE log_head SET log_id = gen_random_uuid()")
    progress: list[tuple[int, int]] = []

    def note(_step: str, _began: int, lines: int, total: int) -> None:
        progress.append((lines, total))

    done = imported(copy.url, whole_file, on_progress=note)
    assert all(lines <= total for lines, total in progress), progress
    assert min(done.seal.contents, done.seal.entries) > 1
    assert tables_of(copy.url) == tables_of(intact_log.url)
    left = "SELECT coalesce(to_regclass('rebuilding'), to_regclass('runs_next'))"
    assert copy.one(left) is None
    assert exported(copy.url, file, **WHOLE).seal == done.seal
    assert file.read_bytes() == whole_file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]
    versions = "SELECT name, version FROM projections ORDER BY 1"
    assert copy.ask(versions) == sorted(
        (projection.name, projection.version) for projection in PROJECTIONS
    )
    due = copy.ask("SELECT run_id, is_archived FROM transcript_files")
    ended = intact_log.ask(
        "SELECT r.run_id, r.stage = 'archived' FROM runs r"
        " WHERE to_position = 4611686018427387904"
        " AND state::json -> 'transcript' ->> 'path' IS NOT NULL"
        " AND EXISTS (SELECT FROM transcript_entries t WHERE t.run_id = r.run_id)"
    )
    assert due
    assert sorted(due) == sorted(ended)


def test_rows_of_long_states_are_stored_early(
    intact_log: RepairableLog,
    whole_file: Path,
    copy: RepairableLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting: list[int] = []
    store = FoldedRows.store

    def storing(rows: FoldedRows) -> None:
        waiting.append(sum(len(change.opened) for change in rows._changes.values()))
        store(rows)

    monkeypatch.setattr(FoldedRows, "store", storing)
    monkeypatch.setattr(verify_file, "PAGE_EVENTS", 10)
    monkeypatch.setattr(import_log, "STATES_BYTES_MAX", 1)
    imported(copy.url, whole_file)
    assert tables_of(copy.url) == tables_of(intact_log.url)
    assert max(waiting) < 30


def test_erased_texts_are_in_no_file(
    intact_log: RepairableLog, copy: RepairableLog, file: Path
) -> None:
    session = intact_log.one("SELECT session_id FROM contents WHERE kind = 'result' LIMIT 1")
    run = intact_log.one(
        "SELECT t.run_id FROM transcript_entries t JOIN runs r USING (run_id)"
        " WHERE session_id = %s LIMIT 1",
        session,
    )
    bodies = "SELECT body FROM contents WHERE session_id = %s"
    texts = [text for (text,) in intact_log.ask(bodies, session)]
    for table in ("contents", "content_keys"):
        intact_log.do(f"DELETE FROM {table} WHERE session_id = %s", session)
    exported(intact_log.url, file, **WHOLE)
    written = file.read_text("utf-8")
    others = {text for (text,) in intact_log.ask("SELECT body FROM contents")}
    assert all(text not in written for text in texts if len(text) > 12 and text not in others)
    assert f'"{run}/1"' not in written
    found = verify_file.verify_file(file)
    assert found.fault is None
    assert found.counts.erased > len(texts) - 1
    imported(copy.url, file)
    assert copy.one("SELECT count(*) FROM contents WHERE session_id = %s", session) == 0


def test_export_has_no_secrets_unless_asked(
    intact_log: RepairableLog, copy: RepairableLog, file: Path
) -> None:
    exported(intact_log.url, file)
    written = file.read_bytes()
    assert b"spawnlog.export.content" not in written
    keys = [bytes(key).hex().encode() for (key,) in intact_log.ask("SELECT key FROM content_keys")]
    assert keys
    assert not any(key in written for key in keys)
    imported(copy.url, file, without_texts=True)
    assert tables_of(copy.url)["runs"] == tables_of(intact_log.url)["runs"]


RANGE = "holds a range of a log, but only a whole log can be"


@pytest.mark.parametrize(
    ("order", "without_texts", "refusal"),
    [
        ({}, False, "give --without-texts to import them all as erased"),
        ({"has_transcripts": True}, False, "holds no texts"),
        ({"has_contents": True}, False, "holds no transcripts"),
        (WHOLE, True, "export without --contents and --transcripts"),
        ({"first": 1, "last": 7, **WHOLE}, False, RANGE),
        ({"first": 9, "last": 40, **WHOLE}, False, RANGE),
        ({"first": 30, "last": None, **WHOLE}, False, RANGE),
    ],
)
def test_part_of_log_is_verified_and_not_imported(
    intact_log: RepairableLog,
    database_url: str,
    file: Path,
    order: dict[str, Any],
    without_texts: bool,
    refusal: str,
) -> None:
    done = exported(intact_log.url, file, **order)
    found = verify_file.verify_file(file)
    assert found.fault is None
    assert found.last_position == (order.get("last") or intact_log.last)
    assert found.events == done.seal.events == found.last_position - order.get("first", 1) + 1
    assert (found.counts.transcripts > 0) >= (order == {"has_transcripts": True})
    assert "has_contents" in order or b"content-key" not in file.read_bytes()
    with pytest.raises(UserError, match=refusal):
        imported(database_url, file, without_texts=without_texts)
    assert is_untouched(database_url)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ("UPDATE log_head SET storage_home = 'somebody'", "a server has been started on this"),
        ("UPDATE log_head SET position = 1", "this log is not empty"),
        ("INSERT INTO staged_files VALUES (gen_random_uuid(), 0, 'x')", "this log is not empty"),
    ],
)
def test_import_needs_an_empty_log(
    whole_file: Path, database_url: str, tmp_path: Path, change: str, refusal: str
) -> None:
    RepairableLog(database_url, tmp_path).do(change)
    before = tables_of(database_url)
    with pytest.raises(UserError, match=refusal):
        imported(database_url, whole_file)
    assert tables_of(database_url) == before


def test_range_holds_its_texts_and_the_hash_before(intact_log: RepairableLog, file: Path) -> None:
    done = exported(intact_log.url, file, first=9, last=40, **WHOLE)
    assert 0 < done.seal.contents < intact_log.one("SELECT count(*) FROM contents")
    lines = list(map(json.loads, file.read_text("utf-8").splitlines()))
    sessions = {line["sessionid"] for line in lines if line["type"] == "spawnlog.export.content"}
    keys = {line["id"] for line in lines if line["type"] == "spawnlog.export.content-key"}
    assert sessions <= keys
    assert len(keys) < intact_log.one("SELECT count(*) FROM content_keys")
    file.write_bytes(file.read_bytes().replace(b'"events":"32"', b'"events":"31"', 1))
    fault = fault_of(file, b'"after":"8"', b'"after":"9"', without=1)
    assert (fault.line, fault.position) == (2, 10)


def test_each_event_of_a_tree_proves_its_bytes(
    intact_log: RepairableLog, database_url: str, file: Path
) -> None:
    root = intact_log.one(
        "SELECT correlation FROM events WHERE correlation IS NOT NULL"
        " GROUP BY 1 ORDER BY count(*) LIMIT 1"
    )
    done = exported(intact_log.url, file, tree=root, **WHOLE)
    of_tree = intact_log.one("SELECT count(*) FROM events WHERE correlation = %s", root)
    assert done.seal.events == of_tree < intact_log.last
    found = verify_file.verify_file(file)
    assert (found.fault, found.scope) == (None, "tree")
    with pytest.raises(UserError, match="holds one tree of a log"):
        imported(database_url, file)
    third = file.read_bytes().splitlines(keepends=True)[3]
    changed = third.replace(b'"configrevision":', b'"configrevision":1')
    assert fault_of(file, third, changed).line == 4


@pytest.mark.parametrize(
    ("order", "refusal"),
    [
        ({"tree": "agent:nobody:x'; DROP TABLE events"}, "give the key of a root session"),
        ({"first": 7, "last": 6}, "the range is empty: 7 is after 6"),
        ({"first": 10**6}, "the log ends at position "),
    ],
)
def test_export_of_nothing_is_refused(
    intact_log: RepairableLog, file: Path, order: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(UnknownNameError if "tree" in order else UserError, match=refusal):
        exported(intact_log.url, file, **order)
    assert not file.exists()


@pytest.mark.parametrize(
    ("damage", "refusal"),
    [
        (
            "UPDATE events SET state = state || ' ' WHERE position = 12",
            r"broken at position 12: .*run `spawnlog log verify`",
        ),
        (
            "UPDATE commits SET recorded_at = recorded_at + interval '1 s'"
            " WHERE last_position = (SELECT min(last_position) FROM commits)",
            "the table of commits has a different time",
        ),
    ],
)
def test_broken_log_is_not_exported(
    intact_log: RepairableLog, file: Path, damage: str, refusal: str
) -> None:
    intact_log.do(damage)
    with pytest.raises(UserError, match=refusal):
        exported(intact_log.url, file)


def test_import_finds_rows_to_end_by_key(database_url: str) -> None:
    left = "SELECT tablename FROM pg_indexes WHERE tablename = ANY(%s)"
    with psycopg.connect(database_url) as connection:
        DroppedIndexes(connection, FILLED)
        found = connection.execute(left, [list(FILLED)]).fetchall()
    assert sorted(found) == [("runs",), ("sessions",)]


def test_golden_logs_hold_every_event_type() -> None:
    lines = [json.loads(line) for path in GOLDEN for line in path.read_bytes().splitlines()]
    types = {f"spawnlog.event.{name}" for name, _ in EVENT_TYPES}
    assert types <= {line["type"] for line in lines}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
async def test_golden_log_is_imported_and_continued(
    golden: Path, copy: RepairableLog, file: Path
) -> None:
    """Exported logs of earlier releases remain readable forever."""
    found = await asyncio.to_thread(verify_file.verify_file, golden)
    assert found.fault is None
    assert min(found.counts.contents, found.counts.transcripts, found.counts.erased) > 1
    await asyncio.to_thread(imported, copy.url, golden)
    exported(copy.url, file, **WHOLE)
    if b'"format":%d,"logFormat"' % FILE_FORMAT in golden.read_bytes():
        assert file.read_bytes() == golden.read_bytes()
    rows = {
        f"{projection.name} {projection.version}": copy.one(
            f"SELECT md5(string_agg(t::text, '' ORDER BY {projection.key}, from_position))"
            f" FROM {projection.name} AS t"
        )
        for projection in PROJECTIONS
    }
    assert rows == GOLDEN_ROWS[golden.stem]
    async with running_on(copy.url) as running:
        await observe(running.log, range(2))
        assert await running.log.head() == found.events + 2
