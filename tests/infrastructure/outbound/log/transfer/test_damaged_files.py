"""Whatever is changed in a file is found by a verification and stored by no import."""

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.contract.errors import FileFault, UserError
from infrastructure.outbound.log.transfer.line_file import LINE_BYTES_MAX
from infrastructure.outbound.log.transfer.lines import FILE_FORMAT, UnknownFileFormat
from infrastructure.outbound.log.transfer.verify_file import verify_file
from tests.support.builders.damaged_log import ToldLog
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

    def fault(self, data: bytes) -> FileFault:
        """What is wrong with it: found by a verification, and refused by an import."""
        self.file.write_bytes(data)
        found = verify_file(self.file).fault
        assert found is not None
        self.refusal()
        return found

    def refusal(self) -> str:
        """What an import of the file says, of which nothing is left."""
        with pytest.raises(UserError) as refused:
            imported(self.url, self.file)
        assert is_untouched(self.url)
        with psycopg.connect(self.url) as connection:
            left = "SELECT to_regclass('rebuilding'), to_regclass('runs_next')"
            assert connection.execute(left).fetchone() == (None, None)
        return str(refused.value)


@pytest.fixture(scope="module")
def written(story: ToldLog, databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("written") / "log.ndjson"
    exported(story.url, file, **WHOLE)
    url = databases.create()
    yield WrittenLog(file, url)
    databases.drop(url)


@examples(120)
@given(data=st.data())
def test_a_single_other_byte_is_found(written: WrittenLog, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(written.data) - 1))
    other = data.draw(st.integers(1, 255))
    changed = bytearray(written.data)
    changed[at] ^= other
    line = written.data[:at].count(b"\n") + 1
    fault = written.fault(bytes(changed))
    # A line end that is gone makes one line of two.
    assert fault.line >= line - 1
    if line <= written.events:
        position = line - 1
        assert fault.position is None or fault.position >= max(1, position)


@examples(60)
@given(data=st.data())
def test_a_changed_event_is_named_with_its_line_and_position(
    written: WrittenLog, data: st.DataObject
) -> None:
    number = data.draw(st.integers(2, written.events + 1))
    line = bytearray(written.lines[number - 1])
    at = data.draw(st.integers(0, len(line) - 2))
    line[at] = 0x21 if line[at] != 0x21 else 0x22
    lines = [*written.lines[: number - 1], bytes(line), *written.lines[number:]]
    fault = written.fault(sealed_anew(lines))
    # That a commit ended is held against the instants of the events behind it.
    assert fault.line in (number, number + 1)
    assert fault.position in (number - 1, number)


@examples(60)
@given(data=st.data())
def test_a_line_that_is_missing_doubled_or_swapped_is_found(
    written: WrittenLog, data: st.DataObject
) -> None:
    count = len(written.lines)
    number = data.draw(st.integers(0, count - 1))
    what = data.draw(st.sampled_from(["missing", "doubled", "swapped"]))
    lines = list(written.lines)
    if what == "missing":
        del lines[number]
    elif what == "doubled":
        lines.insert(number, lines[number])
    else:
        other = data.draw(st.integers(0, count - 1).filter(lambda one: one != number))
        lines[number], lines[other] = lines[other], lines[number]
    written.fault(b"".join(lines))


@examples(40)
@given(data=st.data())
def test_a_cut_file_is_found(written: WrittenLog, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(written.data) - 1))
    written.fault(written.data[:at])


@pytest.mark.parametrize("kind", ["content-key", "content", "transcript-entry"])
def test_a_missing_line_beside_the_events_is_found_though_it_is_sealed_anew(
    written: WrittenLog, kind: str
) -> None:
    mark = f'"type":"spawnlog.export.{kind}"'.encode()
    number = next(n for n, line in enumerate(written.lines) if mark in line)
    lines = [*written.lines[:number], *written.lines[number + 1 :]]
    counted = {"content-key": b"keys", "content": b"contents"}.get(kind, b"transcriptEntries")
    before, _, behind = lines[-1].partition(b'"%b":"' % counted)
    digits, _, rest = behind.partition(b'"')
    lines[-1] = b'%b"%b":"%d"%b' % (before, counted, int(digits) - 1, rest)
    written.fault(sealed_anew(lines))


@pytest.mark.parametrize(
    ("mark", "old", "new"),
    [
        (b'"kind":"result"', rb'"data":"[^"]*', b'"data":"another'),
        (b'"kind":"task"', rb'"data":"[^"]*', b'"data":"another'),
        (b'"kind":"preamble"', rb'"data":"[^"]*', b'"data":"another'),
        (b'"kind":"task"', rb'"hmac":"..', b'"hmac":"zz'),
        (b'"kind":"task"', rb'"sessionid":"[0-9a-f]{8}', b'"sessionid":"ffffffff'),
        (b'export.content-key"', rb'"data":"..', b'"data":"ff'),
        (b'export.transcript-entry"', rb'"kind":"[^"]*', b'"kind":"other'),
        (b'export.transcript-entry"', rb'"time":"....', b'"time":"1999'),
    ],
)
def test_what_is_beside_the_events_and_was_changed_with_its_seal_is_not_imported(
    written: WrittenLog, mark: bytes, old: bytes, new: bytes
) -> None:
    """An import says of it what a verification does."""
    number = next(
        n
        for n, line in enumerate(written.lines)
        if mark in line and re.search(old, line) and b'"data":""' not in line
    )
    changed = re.sub(old, new, written.lines[number], count=1)
    lines = [*written.lines[:number], changed, *written.lines[number + 1 :]]
    written.file.write_bytes(sealed_anew(lines))
    fault = verify_file(written.file).fault
    assert fault is not None
    assert f"{fault}; nothing was imported" in written.refusal()


def test_a_text_to_which_no_event_refers_is_held_against_its_own_hash(
    written: WrittenLog,
) -> None:
    number = next(n for n, line in enumerate(written.lines) if b'export.content"' in line)
    added = re.sub(
        rb'"id":"[0-9a-f-]{36}',
        b'"id":"00000000-0000-0000-0000-000000000000',
        written.lines[number],
        count=1,
    )
    added = re.sub(rb'"data":"', b'"data":"x', added, count=1)
    lines = [*written.lines[:number], added, *written.lines[number:]]
    before, _, behind = lines[-1].partition(b'"contents":"')
    digits, _, rest = behind.partition(b'"')
    lines[-1] = b'%b"contents":"%d"%b' % (before, int(digits) + 1, rest)
    fault = written.fault(sealed_anew(lines))
    assert "the text was changed" in str(fault)


def test_a_text_that_was_changed_with_its_seal_is_found_by_its_key(written: WrittenLog) -> None:
    number = next(n for n, line in enumerate(written.lines) if b'"kind":"result"' in line)
    line = written.lines[number]
    assert line.endswith(b'"}\n')
    changed = line[:-4] + (b"x" if line[-4:-3] != b"x" else b"y") + line[-3:]
    lines = [*written.lines[:number], changed, *written.lines[number + 1 :]]
    fault = written.fault(sealed_anew(lines))
    assert fault.line == number + 1
    assert fault.position is not None


HOSTILE = {
    "nothing": b"",
    "a bomb of brackets": b"[" * 100_000 + b"\n",
    "a first line without an end": b'{"specversion":"1.0"' + b" " * 100_000,
    "zeros": b"\0" * 5_000,
    "a number of a million digits": b'{"data":{"format":' + b"9" * 1_000_000 + b"}}\n",
    "a terminal's orders": b"\x1b]0;owned\x07\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_exported_file_is_refused_at_its_first_line(
    written: WrittenLog, name: str
) -> None:
    assert written.fault(HOSTILE[name]).line == 1


@pytest.mark.parametrize(
    "data",
    [
        b'{"data":' + b"[" * 3_000 + b"]" * 3_000 + b"}\n",
        b'{"specversion":"1.0","id":"x","source":"y","type":"spawnlog.export.end"}\n',
        b"\xff\xfe\n",
    ],
)
def test_a_hostile_line_among_the_others_is_refused(written: WrittenLog, data: bytes) -> None:
    fault = written.fault(b"".join([*written.lines[:3], data, *written.lines[3:]]))
    assert fault.line == 4


def test_deeply_nested_data_of_an_event_is_refused(written: WrittenLog) -> None:
    line = written.lines[1]
    begins = line.index(b'"data":') + 7
    bomb = line[:begins] + b"[" * 50_000 + b"]" * 50_000 + b"}\n"
    assert written.fault(b"".join([written.lines[0], bomb, *written.lines[2:]])).position == 1


def test_a_line_that_is_too_long_is_not_read(
    written: WrittenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from infrastructure.outbound.log.transfer import line_file

    assert LINE_BYTES_MAX == 256 * 1024 * 1024
    longest = max(map(len, written.lines))
    bounded = line_file.bounded_lines
    monkeypatch.setattr(
        "infrastructure.outbound.log.transfer.file_reader.bounded_lines",
        lambda file, bytes_max=longest - 1: bounded(file, bytes_max=bytes_max),
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
    with pytest.raises(UnknownFileFormat, match=advice):
        verify_file(written.file)
    with pytest.raises(UserError, match=advice) as refused:
        imported(written.url, written.file)
    assert "\n" not in str(refused.value)
    assert is_untouched(written.url)


def test_events_that_do_not_follow_from_each_other_leave_nothing(
    story: ToldLog, written: WrittenLog, tmp_path: Path
) -> None:
    position = story.one("SELECT position FROM events WHERE type = 'RunStarted' LIMIT 1")
    state = story.one(
        "SELECT state FROM events WHERE type = 'RunEnded' AND stream ="
        " (SELECT stream FROM events WHERE position = %s)",
        position,
    )
    story.do(
        "UPDATE events SET type = 'RunEnded', type_version = (SELECT max(type_version) FROM events"
        " WHERE type = 'RunEnded'), state = %s WHERE position = %s",
        state,
        position,
    )
    story.rechain()
    file = tmp_path / "forged.ndjson"
    exported(story.url, file, **WHOLE)
    story.mend()
    fault = verify_file(file).fault
    assert fault is not None
    assert fault.position is not None
    with pytest.raises(UserError, match=re.escape(str(fault))):
        imported(written.url, file)
    assert is_untouched(written.url)


@pytest.mark.parametrize("stream", ["session:%", "run:%", "log:config"])
def test_a_version_that_is_missing_in_a_stream_leaves_nothing(
    story: ToldLog, written: WrittenLog, tmp_path: Path, stream: str
) -> None:
    position = story.one("SELECT max(position) FROM events WHERE stream LIKE %s", stream)
    story.do("UPDATE events SET version = version + 1 WHERE position = %s", position)
    story.rechain()
    file = tmp_path / "forged.ndjson"
    exported(story.url, file, **WHOLE)
    story.mend()
    fault = verify_file(file).fault
    assert fault is not None
    assert fault.position == position
    with pytest.raises(UserError, match=re.escape(str(fault))):
        imported(written.url, file)
    assert is_untouched(written.url)
