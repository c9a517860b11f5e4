"""One grammar for durations and moments."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.values.moments import RunStageName, is_time_ago, parse_duration, parse_moment

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("30s", timedelta(seconds=30)),
        ("30", timedelta(seconds=30)),
        ("0", timedelta()),
        ("10m", timedelta(minutes=10)),
        ("1.5h", timedelta(minutes=90)),
        ("1d", timedelta(days=1)),
        ("2w", timedelta(days=14)),
    ],
)
def test_duration_is_number_and_unit(text: str, length: timedelta) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize("text", ["12h", "-12h", "720m", "-0.5d"])
def test_moment_counts_back_with_or_without_minus(text: str) -> None:
    assert parse_moment(text, NOW) == NOW - timedelta(hours=12)
    assert is_time_ago(text)


def test_moment_is_position_instant_or_stage() -> None:
    assert parse_moment("pos:42", NOW) == 42
    assert parse_moment("2026-03-01T09:00:00+01:00", NOW) == datetime(2026, 3, 1, 8, tzinfo=UTC)
    assert parse_moment("run:reviewer@started", NOW) == RunStageName("run:reviewer@started")


NOT_LENGTHS = ["", " 5m", "5m ", "5 m", "--5m", "+5m", "5y", "m", "5.m", "36501d", "9999999999w"]


@pytest.mark.parametrize("text", [*NOT_LENGTHS, "-5m", "\u0665m", "pos:4", "1h30m"])
def test_no_duration_names_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match="a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text", [*NOT_LENGTHS, "5", "-5", "pos:", "pos:-1", "yesterday", "2026-03-01", "-\u0665m"]
)
def test_no_moment_names_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match="moment"):
        parse_moment(text, NOW)


def test_moment_before_the_calendar_is_refused() -> None:
    with pytest.raises(ValueError, match="moment"):
        parse_moment("36500d", datetime(1, 1, 2, tzinfo=UTC))
