"""A range or a tree of a log is a file that can be verified, and is no log."""

import json
from pathlib import Path

import pytest

from infrastructure.contract.errors import NameUnknown, UserError
from infrastructure.outbound.log.transfer.verify_file import verify_file
from tests.support.builders.damaged_log import ToldLog
from tests.support.builders.exported_logs import (
    WHOLE,
    exported,
    imported,
    is_untouched,
    sealed_anew,
)

pytestmark = pytest.mark.server


@pytest.mark.parametrize(("first", "last"), [(1, 7), (5, 5), (9, 40), (30, None)])
def test_a_range_is_verified_from_the_hash_in_its_first_line(
    told: ToldLog, database_url: str, tmp_path: Path, first: int, last: int | None
) -> None:
    file = tmp_path / "range.ndjson"
    done = exported(told.url, file, first=first, last=last, **WHOLE)
    found = verify_file(file)
    assert found.fault is None
    assert found.last_position == (last or told.last)
    assert found.events == done.seal.events == found.last_position - first + 1
    with pytest.raises(UserError, match="holds a range of a log, and only a whole log can be"):
        imported(database_url, file)
    assert is_untouched(database_url)


def test_a_range_holds_the_texts_of_its_events_and_their_keys_alone(
    told: ToldLog, tmp_path: Path
) -> None:
    file = tmp_path / "range.ndjson"
    done = exported(told.url, file, first=9, last=40, **WHOLE)
    assert 0 < done.seal.contents < told.one("SELECT count(*) FROM contents")
    sessions = {line["sessionid"] for line in _lines(file, "content")}
    keys = {line["id"] for line in _lines(file, "content-key")}
    assert sessions <= keys
    assert len(keys) < told.one("SELECT count(*) FROM content_keys")


def _lines(file: Path, kind: str) -> list[dict[str, str]]:
    found = map(json.loads, file.read_text("utf-8").splitlines())
    return [line for line in found if line["type"] == f"spawnlog.export.{kind}"]


def test_a_range_that_does_not_begin_behind_its_hash_is_found(
    told: ToldLog, tmp_path: Path
) -> None:
    file = tmp_path / "range.ndjson"
    exported(told.url, file, first=9, last=40)
    lines = file.read_bytes().splitlines(keepends=True)
    del lines[1]
    lines[0] = lines[0].replace(b'"after":"8"', b'"after":"9"')
    lines[-1] = lines[-1].replace(b'"events":"32"', b'"events":"31"')
    file.write_bytes(sealed_anew(lines))
    fault = verify_file(file).fault
    assert fault is not None
    assert (fault.line, fault.position) == (2, 10)


def test_a_tree_holds_every_event_of_it_and_each_proves_its_own_bytes(
    told: ToldLog, database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "tree.ndjson"
    root = told.one(
        "SELECT correlation FROM events WHERE correlation IS NOT NULL"
        " GROUP BY 1 ORDER BY count(*) LIMIT 1"
    )
    done = exported(told.url, file, tree=root, **WHOLE)
    of_tree = told.one("SELECT count(*) FROM events WHERE correlation = %s", root)
    assert done.seal.events == of_tree < told.last
    found = verify_file(file)
    assert found.fault is None
    assert found.scope == "tree"
    with pytest.raises(UserError, match="holds one tree of a log"):
        imported(database_url, file)
    lines = file.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"configrevision":', b'"configrevision":1')
    file.write_bytes(sealed_anew(lines))
    fault = verify_file(file).fault
    assert fault is not None
    assert fault.line == 4


def test_a_tree_that_is_not_there_leaves_no_file(told: ToldLog, tmp_path: Path) -> None:
    with pytest.raises(NameUnknown, match="give the key of a root session"):
        exported(told.url, tmp_path / "tree.ndjson", tree="agent:nobody:x'; DROP TABLE events")
    assert not (tmp_path / "tree.ndjson").exists()


def test_positions_that_are_not_there_are_refused(told: ToldLog, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"the log ends at position {told.last}"):
        exported(told.url, tmp_path / "one", last=told.last + 1)
    with pytest.raises(UserError, match=f"the log ends at position {told.last}"):
        exported(told.url, tmp_path / "other", first=told.last + 2)
    with pytest.raises(UserError, match="the range from 7 to 6 is none"):
        exported(told.url, tmp_path / "none", first=7, last=6)


def test_a_broken_log_is_not_exported(told: ToldLog, tmp_path: Path) -> None:
    told.do("UPDATE events SET state = state || ' ' WHERE position = 12")
    with pytest.raises(UserError, match=r"broken at position 12: .*run `spawnlog log verify`"):
        exported(told.url, tmp_path / "log.ndjson")
    told.mend()
    told.do("UPDATE commits SET recorded_at = recorded_at + interval '1 s' WHERE last_position ="
            " (SELECT min(last_position) FROM commits)")  # fmt: skip
    with pytest.raises(UserError, match="the table of commits says another instant"):
        exported(told.url, tmp_path / "other.ndjson")
