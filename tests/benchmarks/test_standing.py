"""Cost of a server, from the system's counters."""

import os
import subprocess
import sys
import time

import pytest

from benchmarks.processor import PROCESSES, Spent, spent_by, used_ms
from benchmarks.standing import growth_bytes


def test_used_ms_divides_by_the_acts() -> None:
    assert used_ms(Spent(1.0, 0.5), Spent(3.0, 1.0), 100) == Spent(20.0, 5.0)
    assert used_ms(Spent(1.0, 0.5), Spent(3.0, 1.0), 0) is None
    assert used_ms(None, Spent(3.0, 1.0), 100) is None


BURN = "import time\nwhile time.process_time() < 0.4: pass"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}]); input()"


@pytest.mark.process
@pytest.mark.skipif(not PROCESSES.is_dir(), reason="this system does not tell")
def test_spent_by_counts_running_and_ended_children() -> None:
    idle = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    busy = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE)
    try:
        seen = Spent(0.0, 0.0)
        deadline = time.monotonic() + 20
        while seen.server < 0.3:
            assert busy.poll() is None
            assert time.monotonic() < deadline
            found = spent_by(busy.pid, idle.pid)
            assert found is not None
            # Nothing is lost when a child ends; each process is counted in whole ticks.
            assert found.server > seen.server - 2 / os.sysconf("SC_CLK_TCK")
            seen = found
        assert seen.postgres < 0.3
    finally:
        for item in (idle, busy):
            item.communicate(b"\n")


def test_memory_grows_by_what_the_second_half_of_the_runs_added() -> None:
    samples = [(100, 50.0), (200, 90.0), (300, 100.0), (400, 100.5), (500, 101.0)]
    assert growth_bytes(samples) == round(2**20 / 200, 1)
    assert growth_bytes(samples[:1]) is None
