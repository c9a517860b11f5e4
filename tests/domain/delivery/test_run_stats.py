"""The line of numbers at the end of an announcement."""

import pytest

from domain.delivery.announcement import RunStats, cost_text, duration_text, stats_line, token_text

KEY = "agent:main:subagent:1"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "n/a"),
        (0, "n/a"),
        (-5, "n/a"),
        (400, "0s"),
        (42_000, "42s"),
        (59_500, "1m0s"),
        (65_000, "1m5s"),
        (312_000, "5m12s"),
        (3_900_000, "1h5m"),
    ],
)
def test_a_duration_names_two_units(milliseconds: int | None, text: str) -> None:
    assert duration_text(milliseconds) == text


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (-1, "0"),
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (1250, "1.3k"),
        (1540, "1.5k"),
        (197_000, "197.0k"),
        (999_949, "999.9k"),
        (999_950, "1.0m"),
        (2_000_000, "2.0m"),
        (12_345_678_901, "12345.7m"),
    ],
)
def test_tokens_are_rounded_to_one_decimal(tokens: int, text: str) -> None:
    assert token_text(tokens) == text


@pytest.mark.parametrize(
    ("dollars", "text"), [(0.0123, "$0.01"), (0.0042, "$0.0042"), (0.01, "$0.01"), (12.5, "$12.50")]
)
def test_a_cost_has_two_decimals_or_four(dollars: float, text: str) -> None:
    assert cost_text(dollars) == text


def test_the_whole_line() -> None:
    stats = RunStats(
        session_key=KEY,
        runtime_ms=65_000,
        input_tokens=12_300,
        output_tokens=1_200,
        estimated_cost_usd=0.05,
        session_id="s-1",
        transcript_path="/data/t.jsonl",
    )
    assert stats_line(stats) == (
        "Stats: runtime 1m5s • tokens 13.5k (in 12.3k / out 1.2k) • est $0.05 • "
        f"sessionKey {KEY} • sessionId s-1 • transcript /data/t.jsonl"
    )


def test_a_run_that_cost_nothing_says_so() -> None:
    assert "est $0.0000" in stats_line(RunStats(session_key=KEY, estimated_cost_usd=0.0))


def test_what_is_not_known_is_left_out() -> None:
    assert stats_line(RunStats(session_key=KEY)) == (
        f"Stats: runtime n/a • tokens n/a • sessionKey {KEY}"
    )
    nothing = RunStats(
        session_key=KEY, input_tokens=0, output_tokens=0, estimated_cost_usd=float("nan")
    )
    assert stats_line(nothing) == (
        f"Stats: runtime n/a • tokens 0 (in 0 / out 0) • sessionKey {KEY}"
    )
