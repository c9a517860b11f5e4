"""Times and durations for people."""

import pytest

from infrastructure.inbound.command_line.display.session_tree import ASCII, tree_lines
from infrastructure.inbound.command_line.display.times import (
    format_duration,
    format_instant,
    format_offset,
)


def test_times_are_shown_in_utc_to_the_millisecond() -> None:
    assert format_instant("2026-03-01T10:30:00.125678+01:00") == "2026-03-01 09:30:00.125"
    assert format_instant("2026-03-01T09:30:00Z") == "2026-03-01 09:30:00.000"


def test_what_is_no_time_is_shown_as_it_is() -> None:
    assert format_instant(None) == ""
    assert format_instant("soon") == "soon"


def test_distances_have_a_sign() -> None:
    assert format_offset("2026-03-01T09:30:00Z", "2026-03-01T09:30:01.5Z") == "+1.500s"
    assert format_offset(None, "2026-03-01T09:30:00Z") == ""


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "0ms"),
        (999, "999ms"),
        (1200, "1.2s"),
        (59_940, "59.9s"),
        (59_960, "1m00s"),
        (312_000, "5m12s"),
        (7_500_000, "2h05m"),
        (None, ""),
        (True, ""),
    ],
)
def test_durations_are_short(milliseconds: object, shown: str) -> None:
    assert format_duration(milliseconds) == shown


def test_tree_counts_milliseconds_as_the_server_does() -> None:
    begun, ended = "2026-03-01T09:30:00.000100Z", "2026-03-01T09:30:00.024700Z"
    run = {
        "runId": "r",
        "status": "done",
        "stages": [{"stage": "started", "at": begun}, {"stage": "ended", "at": ended}],
    }
    (line, *_) = tree_lines({"root": {"runs": [run]}}, 60, ASCII)
    assert "  24ms" in line.plain
    assert format_offset(begun, ended) == "+0.024s"
