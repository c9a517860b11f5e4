"""Progress of a rebuild: a bar on a terminal, otherwise a line from time to time."""

import io
import sys

import pytest

from infrastructure.contract.operations import RebuildProgress
from infrastructure.inbound.command_line.display import progress
from infrastructure.inbound.command_line.display.progress import show_rebuild_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Clock that moves only on request."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_steps_are_lines_without_terminal(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with show_rebuild_progress() as tell:
        tell(RebuildProgress("events", 1_000, 9_000, began=1_000))
        clock.now += 1
        tell(RebuildProgress("events", 2_000, 9_000, began=1_000))
        clock.now += 4
        tell(RebuildProgress("events", 6_000, 9_000, began=1_000))
        tell(RebuildProgress("indexes", 3, 14))
        tell(RebuildProgress("comparison", 0, 1))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "folding events 1,000 of 9,000",
        "folding events 6,000 of 9,000, 1,000 a second",
        "creating indexes 3 of 14",
        "comparing rows",
    ]


def test_steps_are_a_bar_on_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with show_rebuild_progress() as tell:
        clock.now += 2
        tell(RebuildProgress("events", 4_000, 8_000))
    assert "folding events" in terminal.getvalue()
    assert "4,000 of 8,000, 2,000 a second" in terminal.getvalue()
