"""Processor time of the tests of each folder and of everything that they started: servers,
PostgreSQL, browsers, children. Printed at the end of a run, with the budget of the folder.

Each test process reads the times of its descendants every few seconds. A process that began and
ended in between, and that no process waited for, is not counted; the sum is a little less than the
processors' total, which is printed below.
"""

import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass

import psutil
import pytest

MARK = "SPAWNLOG_TESTS_OF"
"""Environment variable that programs of a test inherit. It identifies an orphan, as does one of our
folders in its command line (PostgreSQL).
"""
COLLECTING = "(collecting)"
LOOK_EVERY_SECONDS = 5.0
BUDGET_SECONDS = {
    "tests/domain": 25,
    "tests/application": 90,
    "tests/contracts": 65,
    "tests/infrastructure/outbound": 200,
    "tests/infrastructure/inbound/http": 105,
    "tests/infrastructure": 60,
    "tests/spawnlog": 20,
    "tests/e2e": 200,
    "tests/web": 70,
    "tests/simulation": 30,
    "tests/soak": 5,
    "tests/house": 35,
    "tests": 30,
    COLLECTING: 25,
}
"""Budget of `make test` on two processors, by folder; the longest matching name counts. In all it
is 8 minutes of both.
"""


def folder_of(nodeid: str) -> str:
    """Return the folder of the budget that a test belongs to, by its id in pytest."""
    return max(
        (
            budget_second
            for budget_second in BUDGET_SECONDS
            if nodeid.startswith(budget_second + "/")
        ),
        key=len,
    )


_Process = tuple[int, float]
"""Process id and start time, because ids are reused."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A process at the last reading, with the time of the children that it waited for."""

    seconds: float
    parent: int


class ProcessorTime:
    """Time of one test process and of everything that it started, by folder."""

    def __init__(self) -> None:
        os.environ[MARK] = str(os.getpid())
        self.seconds: dict[str, float] = {}
        self._folder = COLLECTING
        self._seen: dict[_Process, Seen] = {}
        self._looked_at = time.monotonic()

    def enter(self, folder: str) -> None:
        """Assign the time since the last reading to the previous folder."""
        is_due = time.monotonic() - self._looked_at > LOOK_EVERY_SECONDS
        if folder != self._folder or is_due:
            used = self.seconds.get(self._folder, 0.0) + self._used_seconds()
            self.seconds[self._folder] = used
            self._folder, self._looked_at = folder, time.monotonic()

    def _used_seconds(self) -> float:
        before, self._seen = self._seen, _ours()
        return used_between(before, self._seen)


def used_between(before: dict[_Process, Seen], now: dict[_Process, Seen]) -> float:
    """Return the time that processes used between two readings."""
    alive = {pid for pid, _ in now}
    parents = {pid: value.parent for (pid, _), value in before.items() if pid not in alive}
    used = sum(item.seconds for item in now.values())
    for process, usage in before.items():
        # The time of an ended process counts as its parent's if that waited for it, or as the
        # grandparent's if the parent ended too.
        heir = usage.parent
        for _ in parents:
            heir = parents.get(heir, heir)
        if process in now or heir in alive:
            used -= usage.seconds
    return max(0.0, used)


_strangers: set[_Process] = set()
"""Processes that are not ours, which are not inspected again."""


def _ours() -> dict[_Process, Seen]:
    me = os.getpid()
    known = {me}
    found = {}
    folder = tempfile.gettempdir() + os.sep
    # Parents come before their children where no number was given twice.
    for process in sorted(
        psutil.process_iter(["ppid", "create_time"]), key=lambda process: process.pid
    ):
        parent, key = process.info["ppid"], (process.pid, process.info["create_time"])
        is_child = process.pid == me or parent in known
        if not is_child and (key in _strangers or not _is_marked(process, folder)):
            _strangers.add(key)
            continue
        with suppress(psutil.Error):
            known.add(process.pid)
            found[key] = Seen(_seconds_of(process), parent)
    return found


def _is_marked(process: psutil.Process, folder: str) -> bool:
    try:
        if any(folder in word for word in process.cmdline()):
            return True
        return bool(process.environ().get(MARK) == str(os.getpid()))
    except (psutil.Error, OSError):
        return False


def _seconds_of(process: psutil.Process) -> float:
    times = process.cpu_times()
    of_children = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return float(times.user + times.system + of_children)


def lines_of(used: dict[str, float]) -> list[str]:
    """Return the table that is printed: folder, seconds used, seconds allowed."""
    width = max(map(len, BUDGET_SECONDS))
    lines = [f"{'folder':{width}} {'used':>7} {'budget':>7}"]
    for folder, budget in BUDGET_SECONDS.items():
        if folder in used:
            over = "  over" if used[folder] > budget else ""
            lines.append(f"{folder:{width}} {used[folder]:7.0f} {budget:7}{over}")
    lines.append(f"{'all':{width}} {sum(used.values()):7.0f} {sum(BUDGET_SECONDS.values()):7}")
    return lines


class ProcessorTimePlugin:
    """Hooks of pytest: each test process counts, and the one that prints the end adds up."""

    def __init__(self, config: pytest.Config) -> None:
        self._output: dict[str, object] | None = getattr(config, "workeroutput", None)
        has_workers = config.getoption("numprocesses", None) and not config.option.collectonly
        self.runs_tests = self._output is not None or not has_workers
        self._counting = ProcessorTime() if self.runs_tests else None
        self._of_workers: list[dict[str, float]] = []
        self._begun = psutil.cpu_times()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self._counting is not None:
            self._counting.enter(folder_of(nodeid))

    def pytest_sessionfinish(self) -> None:
        if self._counting is not None:
            self._counting.enter("")
            if self._output is not None:
                self._output["processor_seconds"] = self._counting.seconds
            else:
                self._of_workers.append(self._counting.seconds)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        self._of_workers.append(getattr(node, "workeroutput", {}).get("processor_seconds", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        used: dict[str, float] = {}
        for item in self._of_workers:
            for folder, seconds in item.items():
                used[folder] = used.get(folder, 0.0) + seconds
        terminalreporter.section("processor seconds by folder")
        for line in lines_of(used):
            terminalreporter.write_line(line)
        now = psutil.cpu_times()
        passed = sum(now) - sum(self._begun)
        idle = (now.idle + getattr(now, "iowait", 0)) - (
            self._begun.idle + getattr(self._begun, "iowait", 0)
        )
        terminalreporter.write_line(
            f"The processors of this machine were busy for {passed - idle:.0f} s of {passed:.0f} s."
        )
