"""The log of a data directory: recorded once, and no other is served there."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from infrastructure.contract.errors import UserError
from infrastructure.outbound.identity.data_directory import (
    LOG_FILE,
    DataDirectory,
    RecordedLog,
)

LOG, OTHER = UUID(int=1), UUID(int=2)


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    return DataDirectory.open(tmp_path / "data")


def used_by_an_earlier_release(directory: DataDirectory) -> None:
    directory.identity()


def test_first_log_is_recorded_and_stays(directory: DataDirectory) -> None:
    assert directory.recorded_log() is None
    for _ in range(2):
        directory.record_log(LOG, "external")
        assert directory.recorded_log() == RecordedLog(LOG, "external")
    file = directory.path / LOG_FILE
    assert json.loads(file.read_text()) == {"logId": str(LOG), "database": "external"}
    assert file.stat().st_mode & 0o777 == 0o600
    # Restored from a dump, or moved back: the same log in another database.
    directory.record_log(LOG, "embedded")
    assert directory.recorded_log() == RecordedLog(LOG, "embedded")
    assert [path.name for path in directory.path.iterdir()] == [LOG_FILE]


@pytest.mark.parametrize(
    ("kind", "found", "advice"),
    [
        ("external", "embedded", "start with the --database-url (or SPAWNLOG_DATABASE_URL) of"),
        ("external", "external", "start with the --database-url (or SPAWNLOG_DATABASE_URL) of"),
        ("embedded", "external", "start without a database URL (--database-url, "),
        ("embedded", "embedded", "restore the database of that log, or name another"),
    ],
)
def test_other_log_is_refused(directory: DataDirectory, kind: str, found: str, advice: str) -> None:
    directory.record_log(LOG, kind)  # type: ignore[arg-type]
    with pytest.raises(UserError) as refused:
        directory.record_log(OTHER, found)  # type: ignore[arg-type]
    text = str(refused.value)
    assert f"belongs to log {LOG}, but " in text
    assert f" {found} database holds log {OTHER}; {advice}" in text
    assert text.endswith("or name another data directory with --data-dir")
    assert directory.recorded_log() == RecordedLog(LOG, kind)  # type: ignore[arg-type]


def test_one_of_several_first_logs_is_recorded(directory: DataDirectory) -> None:
    def record(log_id: UUID) -> UUID | None:
        with suppress(UserError):
            directory.record_log(log_id, "external")
            return log_id
        return None

    with ThreadPoolExecutor(6) as threads:
        taken = set(threads.map(record, [uuid4() for _ in range(12)])) - {None}
    recorded = directory.recorded_log()
    assert recorded is not None
    assert taken == {recorded.log_id}


def test_log_of_earlier_release_is_that_of_its_servers(directory: DataDirectory) -> None:
    directory.enter_server("http://127.0.0.1:1", LOG)
    assert directory.recorded_log() == RecordedLog(LOG)
    with pytest.raises(UserError, match="start with the database of that log"):
        directory.record_log(OTHER, "embedded")
    directory.record_log(LOG, "embedded")
    assert directory.recorded_log() == RecordedLog(LOG, "embedded")


def test_entry_that_cannot_be_removed_is_that_of_a_killed_server(
    directory: DataDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    entered = directory.enter_server("http://127.0.0.1:1", LOG)
    [entry] = directory.servers_of(LOG)
    # As on a read-only disk, the system refuses to remove it: a directory cannot be unlinked.
    entry.path.rename(entry.path.with_suffix(".kept"))
    entry.path.mkdir()
    entered.remove()
    entered.remove()
    assert caplog.text.count(f"{entry.path} cannot be removed") == 1
    entry.path.rmdir()
    entry.path.with_suffix(".kept").rename(entry.path)
    assert directory.servers_of(LOG) == []


def test_no_log_begins_beside_an_external_one(directory: DataDirectory) -> None:
    directory.require_embedded_log()
    used_by_an_earlier_release(directory)
    with pytest.raises(UserError, match=r"has its log in an external database; .*--database-url"):
        directory.require_embedded_log()
    directory.record_log(LOG, "external")
    with pytest.raises(UserError, match=f"has its log {LOG} in an external database; "):
        directory.require_embedded_log()
    directory.record_log(LOG, "embedded")
    with pytest.raises(UserError, match=f"database of log {LOG} is missing from .*; restore it"):
        directory.require_embedded_log()
    # Imported into the embedded database: which log it is, is known once it is open.
    (directory.postgres / "data").mkdir(parents=True)
    directory.require_embedded_log()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"logId": 1, "database": "embedded"}',
        '{"logId": "x", "database": "embedded"}',
        f'{{"logId": "{LOG}", "database": "other"}}',
    ],
)
def test_unreadable_record_is_refused(directory: DataDirectory, content: str) -> None:
    (directory.path / LOG_FILE).write_text(content)
    for call in (directory.require_embedded_log, lambda: directory.record_log(LOG, "external")):
        with pytest.raises(UserError, match=r"log\.json does not name a log; restore it from"):
            call()
    assert (directory.path / LOG_FILE).read_text() == content
