"""Entries read from a runtime, and stored."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.configuration.models import PRICE_USD_MAX, Cost, Models
from domain.delivery.announcement import RunStats, cost_text, stats_line, token_text
from domain.delivery.cost import MODELS_MAX, price_usage, total_cost
from domain.delivery.provided_transcript import (
    InvalidTranscriptError,
    ProvidedEntry,
    entries_of_text,
    last_usage_tokens,
    line_of,
    text_of_entries,
)
from domain.delivery.transcript import (
    DURATION_MS_MAX,
    LINE_BYTES_MAX,
    TOKENS_MAX,
    USAGES_MAX,
    MessageEntry,
    ParsedEntry,
    ProgressEntry,
    ResultEntry,
    TextEntry,
    ToolEntry,
    UsageEntry,
    read_line,
    read_plain_output,
)
from domain.run.facts import Usage
from tests.support.builders.readings import read_entries

# How one line of a runtime's output is read.


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ({"type": "message", "role": "user", "text": "hi", "id": 1}, MessageEntry("user", "hi")),
        ({"type": "tool", "name": "read", "input": {"path": "a"}, "output": "text"},
         ToolEntry("read", '{"path":"a"}', "text")),
        ({"type": "tool", "name": "read"}, ToolEntry("read", None, None)),
        *(({"type": "tool", "name": "read", "durationMs": given},
           ToolEntry("read", None, None, read))
          for given, read in [(0, 0), (2300.0, 2300), (-1, None), (1.5, None), (True, None),
                              (DURATION_MS_MAX, DURATION_MS_MAX), (DURATION_MS_MAX + 1, None)]),
        ({"type": "usage", "inputTokens": 12, "outputTokens": 3.0, "model": " p/m "},
         UsageEntry(12, 3, "p/m")),
        ({"type": "usage", "outputTokens": 3}, UsageEntry(0, 3, None)),
        ({"type": "usage", "inputTokens": None, "outputTokens": 3}, UsageEntry(0, 3, None)),
        ({"type": "progress", "text": "half"}, ProgressEntry("half")),
        ({"type": "result", "text": ""}, ResultEntry("")),
    ],
)  # fmt: skip
def test_known_shapes_are_read(line: object, entry: ParsedEntry) -> None:
    assert read_line(json.dumps(line) + "\r\n") == entry


@pytest.mark.parametrize(
    "line",
    [
        "plain text",
        "{",
        "[" * 5000,
        '{"type": "message", "role": "assistant"}',
        '{"type": "message", "role": ["a"], "text": "x"}',
        '{"type": "usage"}',
        '{"type": "usage", "inputTokens": -1}',
        '{"type": "usage", "inputTokens": true}',
        '{"type": "usage", "inputTokens": 1.5}',
        '{"type": "usage", "inputTokens": NaN}',
        '{"type": "result", "text": 5}',
        '{"text": "x"}',
    ],
)
def test_line_of_no_known_shape_is_kept_as_text(line: str) -> None:
    assert read_line(line) == TextEntry(line)


def test_line_of_exactly_the_limit_is_read() -> None:
    start, end = '{"type":"result","text":"', '"}'
    text = "x" * (1_048_576 - len(start) - len(end))
    assert read_line(start + text + end) == ResultEntry(text)


def test_line_over_the_limit_is_cut() -> None:
    line = json.dumps({"type": "result", "text": "ü" * LINE_BYTES_MAX}, ensure_ascii=False)
    entry = read_line(line)
    assert isinstance(entry, TextEntry)
    assert LINE_BYTES_MAX - 2 <= len(entry.text.encode()) <= LINE_BYTES_MAX


@settings(deadline=None)
@given(
    st.text(max_size=60)
    | st.fixed_dictionaries(
        {"type": st.sampled_from(["message", "tool", "usage", "result", "progress"])},
        optional={
            name: st.none() | st.integers() | st.text(max_size=3) | st.lists(st.none(), max_size=2)
            for name in ("role", "text", "name", "input", "output", "inputTokens", "model")
        },
    ).map(json.dumps)
)
def test_no_line_is_too_odd_to_be_read(line: str) -> None:
    entry = read_line(line)
    assert (entry is None) == (not line.strip())


# Stored text of a provided transcript.

TEXTS = st.text(st.characters(codec="utf-8"))
ENTRIES = st.lists(
    st.builds(
        ProvidedEntry, st.sampled_from(["message", "text"]), st.fixed_dictionaries({"text": TEXTS})
    )
)


@given(ENTRIES)
def test_what_is_kept_is_read_again(entries: list[ProvidedEntry]) -> None:
    text = text_of_entries(map(line_of, entries))
    assert list(entries_of_text(text)) == entries
    assert text.count("\n") == len(entries)


@pytest.mark.parametrize("text", ["{\n", "[]\n", '{"text":"a"}\n', '{"kind":1}\n', "\n", "x\n"])
def test_anything_else_is_no_transcript(text: str) -> None:
    with pytest.raises(InvalidTranscriptError):
        entries_of_text(text)


def usage(taken: object, given: object) -> ProvidedEntry:
    return ProvidedEntry("usage", {"inputTokens": taken, "outputTokens": given})


def test_last_usage_counts() -> None:
    provided_entry = ProvidedEntry("text", {"text": "a"})
    assert last_usage_tokens([]) is None
    assert last_usage_tokens([provided_entry]) is None
    assert last_usage_tokens([usage(900, 100), usage(5, 2), provided_entry]) == 7
    assert last_usage_tokens([usage(None, 3)]) == 3


# Result of a run's output.


def test_blank_message_hides_no_result() -> None:
    output: list[ParsedEntry] = [MessageEntry("assistant", "answer")]
    for blank in ("", " \n"):
        reading = read_entries([*output, MessageEntry("assistant", blank)])
        assert (reading.result, reading.entries) == ("answer", 2)
        assert read_entries([MessageEntry("assistant", blank)]).result is None


@pytest.mark.parametrize("blank", ["", " \n"])
def test_blank_result_hides_no_answer(blank: str) -> None:
    output: list[ParsedEntry] = [ResultEntry("first"), MessageEntry("assistant", "afterthought")]
    assert read_entries([*output, ResultEntry(blank)]).result == "first"
    assert read_entries([output[1], ResultEntry(blank)]).result == "afterthought"
    assert read_entries([ResultEntry(blank)]).result is None


def test_usages_beyond_the_limit_are_summed_by_model() -> None:
    often: list[ParsedEntry] = [UsageEntry(1, 0, "a"), *[UsageEntry(1, 1, "b")] * USAGES_MAX]
    reading = read_entries([*often, UsageEntry(7, 7, "a", 3, 4), UsageEntry(5, 5, "new")])
    assert len(reading.usages) == USAGES_MAX
    assert reading.usages[0] == UsageEntry(8, 7, "a", 3, 4)
    assert sum(usage.input_tokens for usage in reading.usages) == 1 + USAGES_MAX + 7 + 5


def test_of_plain_output_all_is_the_result() -> None:
    assert read_plain_output("line 1\nline 2\n").result == "line 1\nline 2\n"
    assert read_plain_output(" \n").result is None
    assert (read_plain_output("x").entries, read_plain_output("").entries) == (1, 0)


# The line of numbers at the end of an announcement.

KEY = "agent:main:subagent:1"


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
def test_cost_has_two_decimals_or_four(dollars: float, text: str) -> None:
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


def test_run_that_cost_nothing_says_so() -> None:
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


# Cost of a run's tokens, by the models that its runtime reported.

MODELS = Models.model_validate(
    {
        "providers": {
            "p": {
                "models": [
                    {"id": "m", "cost": {"input": 1, "output": 2}},
                    {"id": "x", "cost": {"input": 1000}},
                    {"id": "cached", "cost": {"input": 10, "cacheRead": 1, "cacheWrite": 20}},
                    {"id": "free"},
                    {
                        "id": "tiers",
                        "cost": {
                            "input": 9,
                            "tieredPricing": [
                                {"input": 1, "output": 1, "range": [0, 100]},
                                {"input": 5, "output": 5, "range": [100]},
                            ],
                        },
                    },
                ]
            },
            "q": {
                "models": [{"id": "m", "cost": {"input": 7}}, {"id": "a/b", "cost": {"input": 3}}]
            },
        }
    }
)
MILLION = 1_000_000


def usage_of(*entries: UsageEntry, planned: str | None = None) -> Usage:
    found = price_usage(entries, MODELS, planned)
    assert found is not None
    return found


def costs(*entries: UsageEntry, planned: str | None = None) -> list[float | None]:
    return [model.cost_usd for model in usage_of(*entries, planned=planned).models or ()]


def test_each_model_has_its_share() -> None:
    result = usage_of(
        UsageEntry(MILLION, MILLION, "p/m"), UsageEntry(1, 0, "p/x"), UsageEntry(1, 1, "?")
    )
    shares = [(model.model, model.priced_as, model.cost_usd) for model in result.models or ()]
    assert shares == [("p/m", "p/m", 3), ("p/x", "p/x", 0.001), ("?", None, None)]
    assert (result.input_tokens, result.output_tokens) == (MILLION + 2, MILLION + 1)
    assert result.total_tokens == 2 * MILLION + 3
    assert total_cost(result) == pytest.approx(3.001)


def test_tokens_of_the_cache_have_prices_of_their_own() -> None:
    result = usage_of(UsageEntry(MILLION, 0, "p/cached", MILLION, MILLION))
    assert total_cost(result) == 31
    assert (result.cache_read_tokens, result.cache_write_tokens) == (MILLION, MILLION)


def test_each_report_is_paid_in_the_tier_of_its_input() -> None:
    low, high = UsageEntry(99, 1, "p/tiers"), UsageEntry(50, 0, "p/tiers", 50, 0)
    assert costs(low) == [100 / MILLION]
    assert costs(high) == [250 / MILLION]
    assert costs(low, high) == [pytest.approx(350 / MILLION)]


@pytest.mark.parametrize(
    ("name", "planned", "cost"),
    [
        (None, "p/m", 1),
        ("m", "p/m", 1),
        ("m", "q/m", 7),
        ("m", None, None),
        ("x", None, 1000),
        ("a/b", None, 3),
        ("free", None, None),
        (None, None, None),
    ],
)
def test_bare_model_name_is_priced_as_planned_or_unique(
    name: str | None, planned: str | None, cost: float | None
) -> None:
    assert costs(UsageEntry(MILLION, 0, name), planned=planned) == [cost]


def test_too_many_models_share_the_last_place() -> None:
    result = usage_of(*(UsageEntry(1, 0, f"m{number}") for number in range(MODELS_MAX + 5)))
    assert [model.input_tokens for model in result.models or ()] == [1] * (MODELS_MAX - 1) + [6]


def test_highest_prices_make_a_finite_cost() -> None:
    prices = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), PRICE_USD_MAX)
    models = Models.model_validate({"providers": {"p": {"models": [{"id": "m", "cost": prices}]}}})
    entry = UsageEntry(TOKENS_MAX, TOKENS_MAX, "p/m", TOKENS_MAX, TOKENS_MAX)
    used = price_usage([entry] * USAGES_MAX, models, None)
    assert used is not None
    assert math.isfinite(total_cost(used) or math.inf)
    assert Usage.from_json(used.to_json()) == used


@pytest.mark.parametrize("price", [PRICE_USD_MAX + 1, 1e300])
def test_price_without_a_finite_cost_is_refused(price: float) -> None:
    with pytest.raises(ValidationError, match="less than or equal"):
        Cost.model_validate({"input": price})
