"""Durations of test files, and parts of all files that take about equally long.

`make durations` writes `tests/durations.json`; `make test-all SHARD=1/3` runs the first third.
Parts consist of whole files, because the servers of a file are started once for its tests.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

STORED = Path(__file__).parents[1] / "durations.json"
UNKNOWN_SECONDS = 1.0
"""Assumed duration of a file without a measured one."""
SHARD = "SHARD"
"""Environment variable that selects a part of the files."""
STORE = "SPAWNLOG_STORE_DURATIONS"
"""Environment variable that requests to store the durations of this run."""


def shard_of(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return the selected part, counted from 1, and the number of parts; (1, 1) by default.

    Raises:
        pytest.UsageError: The variable is not like `2/3`.
    """
    text = environment.get(SHARD) or "1/1"
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f"{SHARD}={text}: say which of how many, such as {SHARD}=1/3")
    return int(number), int(count)


def parts(seconds: Mapping[str, float], count: int) -> list[set[str]]:
    """Return the files in `count` sets that take about as long: the longest file first, each to the
    set that has least so far."""
    sets: list[set[str]] = [set() for _ in range(count)]
    taken = [0.0] * count
    for file in sorted(seconds, key=lambda name: (-seconds[name], name)):
        least = taken.index(min(taken))
        sets[least].add(file)
        taken[least] += seconds[file]
    return sets


def file_of(nodeid: str) -> str:
    """Return the file of a test, by its id in pytest."""
    return nodeid.partition("::")[0]


def leave_out_other_parts(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other parts than the selected one."""
    number, count = shard_of(os.environ)
    if count == 1:
        return
    known: dict[str, float] = json.loads(STORED.read_text("utf-8"))
    files = {file_of(item.nodeid) for item in items}
    ours = parts({file: known.get(file, UNKNOWN_SECONDS) for file in files}, count)[number - 1]
    others = [item for item in items if file_of(item.nodeid) not in ours]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if file_of(item.nodeid) in ours]


class DurationsPlugin:
    """Hooks of pytest that store how long each file took, if all went well."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[file_of(report.nodeid)] += report.duration  # type: ignore[assignment]

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == 0:
            rounded = {file: round(self._seconds[file], 1) for file in sorted(self._seconds)}
            STORED.write_text(json.dumps(rounded, indent=0) + "\n", "utf-8")
