"""Every change of a file is found by a verification and refused by an import."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from infrastructure.contract.errors import FileContentError, UserError
from infrastructure.outbound.log.transfer import file_reader
from infrastructure.outbound.log.transfer.line_file import LINE_BYTES_MAX, bounded_lines
from infrastructure.outbound.log.transfer.lines import FILE_FORMAT, UnknownFileFormatError
from infrastructure.outbound.log.transfer.verify_file import verify_file
from tests.support.builders.damaged_log import RepairableLog
from tests.support.builders.exported_logs import (
    WHOLE,
    exported,
    imported,
    is_untouched,
    sealed_anew,
)
from tests.support.servers.databases import Databases
from tests.support.tiers import examples

pytestmark = pytest.mark.server


class WrittenLog:
    """The lines of a whole log, and an empty log that must stay so."""

    def __init__(self, file: Path, url: str) -> None:
        self.file = file
        self.url = url
        self.data = file.read_bytes()
        self.lines = self.data.splitlines(keepends=True)
        self.events = sum(b'"type":"spawnlog.event.' in line for line in self.lines)

    def fault(self, data: bytes) -> FileContentError:
        """Return the fault that a verification finds; assert that an import refuses the file."""
        self.file.write_bytes(data)
        found = verify_file(self.file).fault
        assert found is not None
        assert f"{found}; nothing was imported" in self.refusal()
        return found

    def refusal(self) -> str:
        """Return the refusal of an import; assert that nothing of the file is left."""
        with pytest.raises(UserError) as refused:
            imported(self.url, self.file)
        assert is_untouched(self.url)
        with psycopg.connect(self.url) as connection:
            left = "SELECT to_regclass('rebuilding'), to_regclass('runs_next')"
            assert connection.execute(left).fetchone() == (None, None)
        return str(refused.value)

    def number(self, pattern: bytes) -> int:
        """Return the index of the first line that contains this; for a text, with data."""
        return next(
            number
            for number, line in enumerate(self.lines)
            if re.search(pattern, line) and b'"data":""' not in line
        )

    def with_line(self, number: int, *others: bytes) -> list[bytes]:
        """Return all lines, with others in place of one."""
        return [*self.lines[:number], *others, *self.lines[number + 1 :]]


def count(lines: list[bytes], name: bytes, by: int) -> bytes:
    """Return a file whose last line has a wrong count of a kind, with a valid seal."""

    def counted(found: re.Match[bytes]) -> bytes:
        return b'"%b":"%d"' % (name, int(found[1]) + by)

    return sealed_anew([*lines[:-1], re.sub(rb'"%b":"(\d+)"' % name, counted, lines[-1])])


@pytest.fixture(scope="module")
def written(
    story: RepairableLog, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WrittenLog]:
    file = tmp_path_factory.mktemp("written") / "log.ndjson"
    exported(story.url, file, **WHOLE)
    url = databases.create()
    yield WrittenLog(file, url)
    databases.drop(url)


@examples(120)
@given(data=st.data())
def test_other_byte_is_found(written: WrittenLog, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(written.data) - 1))
    # Another number of the format is refused as one.
    assume(at != written.data.index(b'"format":') + len(b'"format":'))
    changed = bytearray(written.data)
    changed[at] ^= data.draw(st.integers(1, 255))
    line = written.data[:at].count(b"\n") + 1
    fault = written.fault(bytes(changed))
    # A line end that is gone makes one line of two.
    assert fault.line >= line - 1
    if line <= written.events:
        assert fault.position is None or fault.position >= max(1, line - 1)


@examples(60)
@given(data=st.data())
def test_changed_event_is_named_by_line_and_position(
    written: WrittenLog, data: st.DataObject
) -> None:
    number = data.draw(st.integers(2, written.events + 1))
    line = bytearray(written.lines[number - 1])
    at = data.draw(st.integers(0, len(line) - 2))
    line[at] = 0x21 if line[at] != 0x21 else 0x22
    fault = written.fault(sealed_anew(written.with_line(number - 1, bytes(line))))
    # The end of a commit is compared with the instants of later events.
    assert fault.line in (number, number + 1)
    assert fault.position in (number - 1, number)


@examples(80)
@given(data=st.data())
def test_line_missing_doubled_swapped_or_cut_is_found(
    written: WrittenLog, data: st.DataObject
) -> None:
    total = len(written.lines)
    number = data.draw(st.integers(0, total - 1))
    damage = data.draw(st.sampled_from(["missing", "doubled", "swapped", "cut"]))
    line = written.lines[number]
    lines = written.with_line(number, *([line] * 2 if damage == "doubled" else []))
    if damage == "swapped":
        other_number = data.draw(
            st.integers(0, total - 1).filter(lambda line_number: line_number != number)
        )
        lines = written.with_line(number, written.lines[other_number])
        lines[other_number] = line
    elif damage == "cut":
        lines = [*written.lines[:number], line[: data.draw(st.integers(0, len(line) - 1))]]
    written.fault(b"".join(lines))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (b"content-key", b"keys"),
        (b"content", b"contents"),
        (b"transcript-entry", b"transcriptEntries"),
    ],
)
def test_line_missing_beside_events_is_found(written: WrittenLog, kind: bytes, name: bytes) -> None:
    number = written.number(rb'"type":"spawnlog.export.%b"' % kind)
    written.fault(count(written.with_line(number), name, -1))


def test_line_twice_beside_events_is_found(written: WrittenLog) -> None:
    number = written.number(b'export.content"')
    line = written.lines[number]
    fault = written.fault(count(written.with_line(number, line, line), b"contents", 1))
    assert "is out of order" in str(fault)


@pytest.mark.parametrize(
    ("mark", "old", "new"),
    [
        (b'"kind":"task"', b'"data":"[^"]*', b'"data":"another'),
        (b'"kind":"task"', b'"hmac":"..', b'"hmac":"zz'),
        (b'"kind":"task"', b'"sessionid":"[0-9a-f]{8}', b'"sessionid":"ffffffff'),
        (b'export.content-key"', b'"data":"..', b'"data":"ff'),
        (b'export.transcript-entry"', b'"kind":"[^"]*', b'"kind":"other'),
        (b'export.transcript-entry"', b'"time":"....', b'"time":"1999'),
    ],
)
def test_line_changed_beside_events_is_found(
    written: WrittenLog, mark: bytes, old: bytes, new: bytes
) -> None:
    number = written.number(b"%b.*%b|%b.*%b" % (mark, old, old, mark))
    changed = re.sub(old, new, written.lines[number], count=1)
    written.fault(sealed_anew(written.with_line(number, changed)))


def test_text_of_same_length_is_found_by_its_key(written: WrittenLog) -> None:
    number = written.number(b'"kind":"result"')
    line = written.lines[number]
    assert line.endswith(b'"}\n')
    changed = line[:-4] + (b"x" if line[-4:-3] != b"x" else b"y") + line[-3:]
    fault = written.fault(sealed_anew(written.with_line(number, changed)))
    assert fault.line == number + 1
    assert fault.position is not None


def test_text_without_event_is_held_against_its_hash(written: WrittenLog) -> None:
    number = written.number(b'export.content"')
    line = written.lines[number]
    nobody = b'"id":"00000000-0000-0000-0000-000000000000'
    added = re.sub(b'"id":"[0-9a-f-]{36}', nobody, line, count=1)
    added = added.replace(b'"data":"', b'"data":"x', 1)
    fault = written.fault(count(written.with_line(number, added, line), b"contents", 1))
    assert "the text was changed" in str(fault)


HOSTILE = {
    "brackets": (1, b"[" * 100_000 + b"\n"),
    "no end of line": (1, b'{"specversion":"1.0"' + b" " * 100_000),
    "zeros": (1, b"\0" * 5_000),
    "a million digits": (1, b'{"data":{"format":' + b"9" * 1_000_000 + b"}}\n"),
    "orders to a terminal": (1, b"\x1b]0;owned\x07\n"),
    "nested data": (4, b'{"data":' + b"[" * 3_000 + b"]" * 3_000 + b"}\n"),
    "an early end": (
        4,
        b'{"specversion":"1.0","id":"x","source":"y","type":"spawnlog.export.end"}\n',
    ),
    "no text": (4, b"\xff\xfe\n"),
    "no type": (4, b'{"specversion":"1.0","id":"x","source":"y"}\n'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_line_is_refused(written: WrittenLog, name: str) -> None:
    number, line = HOSTILE[name]
    data = [*written.lines[: number - 1], line, *written.lines[number - 1 :]]
    assert written.fault(b"".join(data)).line == number


def test_empty_file_is_refused(written: WrittenLog) -> None:
    assert written.fault(b"").line == 1


def test_deeply_nested_data_of_event_is_refused(written: WrittenLog) -> None:
    line = written.lines[1]
    begins = line.index(b'"data":') + 7
    bomb = line[:begins] + b"[" * 50_000 + b"]" * 50_000 + b"}\n"
    assert written.fault(b"".join(written.with_line(1, bomb))).position == 1


def test_line_that_is_too_long_is_not_read(
    written: WrittenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LINE_BYTES_MAX == 256 * 1024 * 1024
    longest = max(map(len, written.lines))
    monkeypatch.setattr(
        file_reader,
        "bounded_lines",
        lambda file, bytes_max=longest - 1: bounded_lines(file, bytes_max=bytes_max),
    )
    assert "bytes" in str(written.fault(written.data))


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (FILE_FORMAT + 1, "install a newer spawnlog"),
        (FILE_FORMAT - 1, "an earlier one that this program does not read"),
    ],
)
def test_file_of_other_format_is_refused(written: WrittenLog, number: int, advice: str) -> None:
    own = b'"data":{"format":%d,' % FILE_FORMAT
    written.file.write_bytes(written.data.replace(own, b'"data":{"format":%d,' % number, 1))
    with pytest.raises(UnknownFileFormatError, match=advice):
        verify_file(written.file)
    refusal = written.refusal()
    assert advice in refusal
    assert "\n" not in refusal


FIRST_START = "(SELECT min(position) FROM events WHERE type = 'RunStarted')"
ENDED_TWICE = (
    "type = 'RunEnded', (type_version, state) = (SELECT type_version, state FROM events AS ended"
    " WHERE ended.type = 'RunEnded' AND ended.stream = events.stream)"
)
NEXT_VERSION = "version = version + 1"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (ENDED_TWICE, FIRST_START),
        *(
            (NEXT_VERSION, f"(SELECT max(position) FROM events WHERE stream LIKE '{stream}')")
            for stream in ("session:%", "run:%", "log:config")
        ),
    ],
)
def test_events_that_do_not_follow_leave_nothing(
    story: RepairableLog, written: WrittenLog, tmp_path: Path, change: str, where: str
) -> None:
    position = story.one(f"SELECT {where}")
    story.do(f"UPDATE events SET {change} WHERE position = {position}")
    story.rechain()
    file = tmp_path / "forged.ndjson"
    exported(story.url, file, **WHOLE)
    story.mend()
    fault = written.fault(file.read_bytes())
    assert fault.position is not None
    assert fault.position == position or change == ENDED_TWICE
