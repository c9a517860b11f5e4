"""Contents of `make test` and `make test-all`, and of their parts."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support import memory_folder
from tests.support.cases.kill_list import DOCUMENT, rendered
from tests.support.durations import parts, shard_of
from tests.support.processor_time import BUDGET_SECONDS, Seen, used_between
from tests.support.tiers import IMPORTED, nightly_but

GATE_MINUTES, PROCESSORS = 8, 2
TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
GONE = 2**22 + 1
"""An impossible process id: one more than Linux assigns."""


def test_the_budget_of_the_gate_is_eight_minutes_of_two_processors() -> None:
    assert sum(BUDGET_SECONDS.values()) <= GATE_MINUTES * 60 * PROCESSORS


def test_collecting_imports_no_large_library(pytestconfig: pytest.Config) -> None:
    """Each process collects every test. A test imports such a library itself."""
    imported: frozenset[str] = pytestconfig.stash[IMPORTED]
    large = {"aiopenapi3", "fastmcp", "mcp", "openai", "pydantic_ai", "schemathesis"}
    assert not large & imported


@pytest.mark.process
def test_distributing_process_imports_no_product() -> None:
    program = "import sys, tests.conftest; print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert not {"domain", "application", "infrastructure", "spawnlog"} & {*ended.stdout.split()}


def test_fixtures_of_a_folder_end_with_its_tests() -> None:
    """A server that is kept for the session slows the tests of all other folders."""
    conftests = list(TESTS.glob("*/**/conftest.py"))
    assert len(conftests) > 1
    kept = [
        conftest.relative_to(TESTS).as_posix()
        for conftest in conftests
        if 'scope="session"' in conftest.read_text("utf-8")
    ]
    assert kept == [], 'say scope="package"'


def test_a_child_that_ended_with_its_parent_is_counted_once() -> None:
    me, parent, child = (1, 0.0), (2, 0.0), (3, 0.0)
    before = {me: Seen(1.0, 0), parent: Seen(2.0, 1), child: Seen(4.0, 2)}
    # The parent waited for its child, and the tests for the parent: both are in their time now.
    assert used_between(before, {me: Seen(1.0 + 2.0 + 4.0 + 0.5, 0)}) == 0.5


def test_each_file_is_in_one_part_and_parts_take_about_as_long() -> None:
    seconds = {f"file {number}": float(number % 17) for number in range(100)}
    found = parts(seconds, 3)
    assert sorted(file for part in found for file in part) == sorted(seconds)
    taken = [sum(seconds[file] for file in part) for part in found]
    assert max(taken) - min(taken) <= max(seconds.values())


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "-1/2"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="SHARD=1/3"):
        shard_of({"SHARD": text})


def test_without_a_shard_there_is_one_part() -> None:
    assert shard_of({}) == shard_of({"SHARD": ""}) == (1, 1)


def test_of_many_cases_one_is_in_the_gate() -> None:
    kept, nightly = nightly_but([("a", 1), ("b", 2)], [("a", 1)])
    assert kept == ("a", 1)
    assert (nightly.values, [mark.name for mark in nightly.marks]) == (("b", 2), ["nightly"])
    with pytest.raises(ValueError, match="none of"):
        nightly_but(["a"], ["c"])


@pytest.mark.nightly
def test_the_page_of_kills_is_up_to_date() -> None:
    assert DOCUMENT.read_text("utf-8") == rendered(), "run `make docs`"


def test_what_a_killed_run_left_in_memory_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_folder, "MEMORY", tmp_path)
    monkeypatch.setattr(memory_folder, "ROOM_BYTES_MIN", 0)
    gone, alive, third = (
        tmp_path / f"spawnlog-tests-{item}" for item in (f"{GONE}-a", "1-b", "x-c")
    )
    for file in (gone, alive, third):
        file.mkdir()
    before = os.environ.get("TMPDIR")
    with memory_folder.files_in_memory():
        assert Path(tempfile.gettempdir()).parent == tmp_path
        assert {path.name for path in tmp_path.iterdir()} > {alive.name, third.name}
        assert not gone.exists()
    assert os.environ.get("TMPDIR") == before
    assert sorted(tmp_path.iterdir()) == [alive, third]
