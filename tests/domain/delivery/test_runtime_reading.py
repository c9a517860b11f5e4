"""What a run's output comes down to."""

import pytest

from domain.delivery.transcript import (
    USAGES_MAX,
    MessageEntry,
    ParsedEntry,
    ProgressEntry,
    ResultEntry,
    RuntimeReading,
    TextEntry,
    ToolEntry,
    UsageEntry,
    read_plain_output,
)
from tests.support.builders.readings import read_entries


def test_the_last_result_counts() -> None:
    entries: list[ParsedEntry] = [
        ResultEntry("first"),
        ResultEntry("last"),
        MessageEntry("assistant", "bye"),
    ]
    assert read_entries(entries).result == "last"


def test_without_a_result_the_last_message_of_the_assistant_counts() -> None:
    entries: list[ParsedEntry] = [
        MessageEntry("assistant", "one"),
        MessageEntry("assistant", "two"),
        MessageEntry("user", "three"),
        ToolEntry("read", None, "four"),
        ProgressEntry("five"),
        TextEntry("six"),
    ]
    reading = read_entries(entries)
    assert reading.result == "two"
    assert reading.entries == 6


def test_a_message_that_says_nothing_takes_no_result_away() -> None:
    said: list[ParsedEntry] = [MessageEntry("assistant", "answer")]
    for blank in ("", " \n"):
        reading = read_entries([*said, MessageEntry("assistant", blank)])
        assert (reading.result, reading.entries) == ("answer", 2)
        assert read_entries([MessageEntry("assistant", blank)]).result is None


@pytest.mark.parametrize("blank", ["", " \n"])
def test_blank_result_hides_no_answer(blank: str) -> None:
    said: list[ParsedEntry] = [ResultEntry("first"), MessageEntry("assistant", "afterthought")]
    assert read_entries([*said, ResultEntry(blank)]).result == "first"
    assert read_entries([said[1], ResultEntry(blank)]).result == "afterthought"
    assert read_entries([ResultEntry(blank)]).result is None


def test_without_either_there_is_no_result() -> None:
    assert read_entries([TextEntry("text"), ProgressEntry("p")]).result is None


def test_what_is_told_of_tokens_is_kept_in_its_order() -> None:
    told = (UsageEntry(10, 1, "a"), UsageEntry(5, 2, "b"), UsageEntry(1, 0, None))
    assert read_entries(list(told)).usages == told
    assert RuntimeReading().usages == ()


def test_what_is_told_too_often_is_added_to_the_last_of_its_model() -> None:
    often: list[ParsedEntry] = [UsageEntry(1, 0, "a"), *[UsageEntry(1, 1, "b")] * USAGES_MAX]
    reading = read_entries([*often, UsageEntry(7, 7, "a", 3, 4), UsageEntry(5, 5, "new")])
    assert len(reading.usages) == USAGES_MAX
    assert reading.usages[0] == UsageEntry(8, 7, "a", 3, 4)
    assert sum(one.input_tokens for one in reading.usages) == 1 + USAGES_MAX + 7 + 5


def test_of_plain_output_all_is_the_result() -> None:
    assert read_plain_output("line 1\nline 2\n").result == "line 1\nline 2\n"
    assert read_plain_output(" \n").result is None
    assert (read_plain_output("x").entries, read_plain_output("").entries) == (1, 0)
