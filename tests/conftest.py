"""How tests are collected, ordered and run."""

import gc
import os
import re
import signal
import sys
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.durations import STORE, DurationsPlugin, leave_out_other_parts
from tests.support.memory_folder import files_in_memory, temporary_files_in
from tests.support.processor_time import ProcessorTimePlugin
from tests.support.tiers import EXAMPLES_OF_ALL, IMPORTED

# Hardly anything that importing and collecting make is garbage: looking for some takes a seventh of
# the collection, and later a part of every look.
gc.disable()

# A shell starts background jobs with SIGINT ignored, and child processes inherit that. With a
# handler here, programs started by tests react to SIGINT even if the tests run in the background.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the time of a property depends on the load of the machine.
settings.register_profile(
    "unhurried", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
for name, count in {"quick": 10, "gate": 30, "all": EXAMPLES_OF_ALL}.items():
    settings.register_profile(name, settings.get_profile("unhurried"), max_examples=count)
settings.load_profile("gate")

# Order by the first of these markers that a test has; other tests have turn 1.
TURNS = {"long": 0, "kill": 3, "server": 3, "db": 2}

WITH_PROCESSES = frozenset(
    Path(__file__).parent / name
    for name in (
        "e2e",
        "infrastructure/inbound/command_line/commands",
        "infrastructure/outbound/child_processes",
        "infrastructure/outbound/hooks",
        "infrastructure/outbound/runtimes",
        "infrastructure/outbound/scripts",
        "simulation",
        "soak",
        "spawnlog",
        "web",
    )
)
"""Folders whose tests start programs of their own, listen, or take a moment otherwise."""
UNWANTED_MARK = re.compile(r"\bnot (\w+)")
MARKS_OF_FILE = re.compile(r"^pytestmark = (?:\[[^]]*\]|.*)$", re.MULTILINE)
MARK = re.compile(r"pytest\.mark\.(\w+)")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Half of the time many tests wait: for a lease to end, for a program, for another server."""
    return (os.cpu_count() or 1) * 3 // 2


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put files of tests into memory if there is room, above all data directories of servers. Each
    worker has its own folder.
    """
    place = ExitStack()
    config.add_cleanup(place.close)
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        place.enter_context(files_in_memory())
        if os.environ.get(STORE):
            config.pluginmanager.register(DurationsPlugin())
    else:
        own = Path(tempfile.gettempdir()) / worker
        own.mkdir(mode=0o711, exist_ok=True)
        place.enter_context(temporary_files_in(own))
        config.option.basetemp = own / "pytest"
    counting = ProcessorTimePlugin(config)
    config.pluginmanager.register(counting)
    if counting.runs_tests:
        config.pluginmanager.import_plugin("tests.support.fixtures")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of files that `-m "not …"` would deselect as a whole."""
    words = UNWANTED_MARK.findall(config.option.markexpr)
    if "process" in words and collection_path in WITH_PROCESSES:
        return True
    if words and collection_path.suffix == ".py":
        found = MARKS_OF_FILE.search(collection_path.read_text("utf-8"))
        if found and not {*MARK.findall(found[0])}.isdisjoint(words):
            return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests and order them.

    Tests that use a database get the mark `db`, and those of certain folders `process`. Files of
    long tests come first, so that no process is left alone with one at the end. Those with servers
    come last, folder by folder: a server ends with the tests of its folder.
    """
    leave_out_other_parts(config, items)
    turns: dict[Path, set[int]] = {}
    for item in items:
        if "databases" in getattr(item, "fixturenames", ()):
            item.add_marker("db")
        if _is_with_processes(item.path.parent):
            item.add_marker("process")
        turns.setdefault(item.path, set()).add(_turn_of(item))
    items.sort(key=lambda item: 0 if 0 in turns[item.path] else max(turns[item.path]))


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[IMPORTED] = frozenset(sys.modules)
    gc.freeze()
    gc.enable()


@cache
def _is_with_processes(folder: Path) -> bool:
    return any(parent in WITH_PROCESSES for parent in (folder, *folder.parents))


def _turn_of(item: pytest.Item) -> int:
    return next((turn for name, turn in TURNS.items() if item.get_closest_marker(name)), 1)
