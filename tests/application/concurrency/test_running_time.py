"""Seconds count while the process runs, and hardly while it is suspended."""

import time

import pytest

from application.concurrency.running_time import RunningTime

LIMIT_SECONDS = 6.0


def test_suspension_counts_as_one_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    running = RunningTime(LIMIT_SECONDS)
    for _ in range(5):
        now[0] += running.look_seconds
        assert not running.look()
    assert running.now() == 5.0
    now[0] += 3600
    assert running.look()
    assert running.now() == 6.0
    now[0] += LIMIT_SECONDS / 4
    assert not running.look()
    assert running.seconds == 7.5
