"""A log that is exported and imported is the same log, and its file the same file."""

import stat
from pathlib import Path

import psycopg
import pytest

from benchmarks.generate import generate
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.transfer.import_log import FILLED
from infrastructure.outbound.log.transfer.indexes import DroppedIndexes
from infrastructure.outbound.log.transfer.verify_file import verify_file
from infrastructure.outbound.log.verify.verify import VerifyOrder, run_verification
from tests.support.builders.damaged_log import ToldLog
from tests.support.builders.exported_logs import (
    WHOLE,
    exported,
    imported,
    is_untouched,
    tables_of,
)
from tests.support.servers.databases import Databases

pytestmark = pytest.mark.server


def _must_be_right(url: str, folder: Path) -> None:
    found = run_verification(url, VerifyOrder(state_file=folder / "state.json"))
    assert found.difference is None


def test_a_log_in_which_everything_happened_is_the_same_in_its_copy(
    told: ToldLog, database_url: str, tmp_path: Path
) -> None:
    file, again = tmp_path / "log.ndjson", tmp_path / "again.ndjson"
    done = exported(told.url, file, **WHOLE)
    assert done.seal.contents > 10
    assert done.seal.entries > 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    # Those that a test makes have one id.
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE log_head SET log_id = gen_random_uuid()")
    stored = imported(database_url, file)
    assert stored.seal == done.seal
    assert tables_of(database_url) == tables_of(told.url)
    _must_be_right(database_url, tmp_path)
    exported(database_url, again, **WHOLE)
    assert again.read_bytes() == file.read_bytes()
    assert sorted(tmp_path.iterdir()) == [again, file, tmp_path / "state.json"]


def test_a_generated_history_is_the_same_in_its_copy(
    databases: Databases, database_url: str, tmp_path: Path
) -> None:
    url = databases.create()
    file, again = tmp_path / "log.ndjson", tmp_path / "again.ndjson"
    generate(url, events=6_000, seed=3)
    exported(url, file, **WHOLE)
    imported(database_url, file)
    assert tables_of(database_url) == tables_of(url)
    with psycopg.connect(database_url) as connection:
        left = "SELECT to_regclass('rebuilding'), to_regclass('runs_next')"
        assert connection.execute(left).fetchone() == (None, None)
    exported(database_url, again, **WHOLE)
    assert again.read_bytes() == file.read_bytes()
    found = verify_file(file)
    assert (found.fault, found.events, found.counts.erased) == (None, 6_000, 0)
    databases.drop(url)


def test_what_is_erased_is_in_no_file_and_stays_erased(
    told: ToldLog, database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "log.ndjson"
    session = told.one("SELECT session_id FROM contents WHERE kind = 'result' LIMIT 1")
    texts = [
        text for (text,) in told.ask("SELECT body FROM contents WHERE session_id = %s", session)
    ]
    told.do("DELETE FROM contents WHERE session_id = %s", session)
    told.do("DELETE FROM content_keys WHERE session_id = %s", session)
    exported(told.url, file, **WHOLE)
    written = file.read_text("utf-8")
    others = {text for (text,) in told.ask("SELECT body FROM contents")}
    assert all(text not in written for text in texts if len(text) > 12 and text not in others)
    found = verify_file(file)
    assert found.fault is None
    assert found.counts.erased > len(texts) - 1
    imported(database_url, file)
    with psycopg.connect(database_url) as connection:
        query = "SELECT count(*) FROM contents WHERE session_id = %s"
        assert connection.execute(query, [session]).fetchone() == (0,)
    _must_be_right(database_url, tmp_path)


def test_a_transcript_whose_key_is_gone_does_not_leave(told: ToldLog, tmp_path: Path) -> None:
    file = tmp_path / "log.ndjson"
    run, session = told.ask(
        "SELECT t.run_id, r.session_id FROM transcript_entries t JOIN runs r USING (run_id) LIMIT 1"
    )[0]
    told.do("DELETE FROM contents WHERE session_id = %s", session)
    told.do("DELETE FROM content_keys WHERE session_id = %s", session)
    exported(told.url, file, **WHOLE)
    assert f'"{run}/1"' not in file.read_text("utf-8")
    assert verify_file(file).fault is None


def test_no_secret_and_no_text_leaves_without_being_asked_for(
    told: ToldLog, database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "log.ndjson"
    exported(told.url, file)
    written = file.read_bytes()
    assert b"spawnlog.export.content" not in written
    keys = [bytes(key).hex().encode() for (key,) in told.ask("SELECT key FROM content_keys")]
    assert keys
    assert not any(key in written for key in keys)
    assert verify_file(file).fault is None
    with pytest.raises(UserError, match="give --without-texts to have all of them read as erased"):
        imported(database_url, file)
    assert is_untouched(database_url)
    imported(database_url, file, without_texts=True)
    assert tables_of(database_url)["runs"] == tables_of(told.url)["runs"]
    _must_be_right(database_url, tmp_path)


def test_transcripts_leave_without_keys_when_texts_are_not_asked_for(
    told: ToldLog, database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "log.ndjson"
    exported(told.url, file, has_transcripts=True)
    assert b"content-key" not in file.read_bytes()
    found = verify_file(file)
    assert found.fault is None
    assert found.counts.transcripts > 0
    with pytest.raises(UserError, match="holds no texts"):
        imported(database_url, file)


def test_rows_that_an_import_ends_are_found_by_their_keys(database_url: str) -> None:
    left = "SELECT tablename FROM pg_indexes WHERE tablename = ANY(%s)"
    with psycopg.connect(database_url) as connection:
        DroppedIndexes(connection, FILLED)
        found = connection.execute(left, [list(FILLED)]).fetchall()
    assert sorted(found) == [("runs",), ("sessions",)]


def test_a_file_is_imported_into_an_empty_log_only(
    told: ToldLog, database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "log.ndjson"
    exported(told.url, file, **WHOLE)
    imported(database_url, file)
    before = tables_of(database_url)
    with pytest.raises(UserError, match="this log is not empty"):
        imported(database_url, file)
    assert tables_of(database_url) == before


def test_a_file_is_not_imported_where_a_server_was_started(
    told: ToldLog, database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "log.ndjson"
    exported(told.url, file, **WHOLE)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE log_head SET storage_home = 'somebody'")
    with pytest.raises(UserError, match="a server has been started on this database"):
        imported(database_url, file)


def test_the_files_of_transcripts_are_due_in_the_copy(
    told: ToldLog, database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "log.ndjson"
    exported(told.url, file, **WHOLE)
    imported(database_url, file)
    with psycopg.connect(database_url) as connection:
        due = connection.execute("SELECT run_id, is_archived FROM transcript_files").fetchall()
    ended = told.ask(
        "SELECT r.run_id, r.stage = 'archived' FROM runs r"
        " WHERE to_position = 4611686018427387904"
        " AND state::json -> 'transcript' ->> 'path' IS NOT NULL"
        " AND EXISTS (SELECT FROM transcript_entries t WHERE t.run_id = r.run_id)"
    )
    assert sorted(due) == sorted(ended)
    assert due
