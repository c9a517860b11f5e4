"""Whether a child begins with the conversation of who asked for it."""

import pytest

from domain.context.fork import (
    NO_TRANSCRIPT_WARNING,
    NOTHING_TO_FORK_WARNING,
    OTHER_AGENT_WARNING,
    ContextRequest,
    ParentExtent,
    fork_failed_refusal,
    fork_note,
    fork_warnings,
    forked_entries,
    inherited_rows,
    no_transcript_refusal,
    other_agent_refusal,
    resolve_context_request,
    unreadable_transcript_refusal,
)
from domain.run.facts import ContextMode, ForkFacts

FORK = ContextRequest("fork", is_explicit=False)


@pytest.mark.parametrize("argument", ["fork", "isolated"])
@pytest.mark.parametrize("default", ["fork", "isolated"])
@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.parametrize("channel", ["telegram", None])
def test_what_the_request_says_wins(
    argument: ContextMode, default: ContextMode, thread: bool, channel: str | None
) -> None:
    wish = resolve_context_request(argument, thread=thread, channel=channel, default=default)
    assert wish == ContextRequest(argument, is_explicit=True)


@pytest.mark.parametrize(
    ("thread", "channel", "default", "mode"),
    [
        (True, "telegram", "fork", "fork"),
        (True, "telegram", "isolated", "isolated"),
        (True, " ", "fork", "isolated"),
        (True, None, "fork", "isolated"),
        (False, "telegram", "fork", "isolated"),
        (False, None, "fork", "isolated"),
    ],
)
def test_the_default_counts_in_a_thread_of_a_channel(
    thread: bool, channel: str | None, default: ContextMode, mode: ContextMode
) -> None:
    wish = resolve_context_request(None, thread=thread, channel=channel, default=default)
    assert wish == ContextRequest(mode, is_explicit=False)


@pytest.mark.parametrize(
    ("total", "usage", "size", "tokens"),
    [
        (50, 900_000, 900_000, 50),
        (0, 900_000, 900_000, 0),
        (None, None, 0, 0),
        (None, None, 7, 1),
        (None, 10, 39, 10),
        (None, 10, 44, 11),
        (None, 10, 47, 11),
    ],
)
def test_tokens_are_counted_as_they_were_told(
    total: int | None, usage: int | None, size: int, tokens: int
) -> None:
    extent = ParentExtent(entries=1, bytes=size, total_tokens=total, last_usage_tokens=usage)
    assert extent.tokens == tokens


@pytest.mark.parametrize(("tokens", "fits"), [(99_999, True), (100_000, True), (100_001, False)])
def test_a_hundred_thousand_tokens_can_be_taken_over(tokens: int, fits: bool) -> None:
    assert ParentExtent(entries=1, bytes=0, total_tokens=tokens).fits is fits
    assert ParentExtent(entries=1, bytes=4 * tokens + 3).fits is fits
    assert ParentExtent(entries=1, bytes=0, last_usage_tokens=tokens).fits is fits


def test_each_refusal_has_its_words() -> None:
    assert other_agent_refusal().text == (
        'context="fork" currently requires the same target agent as the requester; use '
        'context="isolated" for cross-agent spawns.'
    )
    assert no_transcript_refusal().text == (
        'context="fork" requested but the requester session transcript is not available.'
    )
    assert fork_failed_refusal().text == (
        'context="fork" requested but OpenClaw could not fork the requester transcript.'
    )
    assert unreadable_transcript_refusal().text == (
        'context="fork" requested but OpenClaw could not prepare forked context.'
    )
    refusals = (
        other_agent_refusal(),
        no_transcript_refusal(),
        fork_failed_refusal(),
        unreadable_transcript_refusal(),
    )
    assert {(one.rule, one.status) for one in refusals} == {("context_fork", "error")}


def facts(mode: ContextMode, tokens: int | None = 7) -> ForkFacts:
    return ForkFacts(position=3, entries=2, tokens=tokens, mode=mode)


def test_a_fork_is_its_entries_and_one_that_says_where_they_are_from() -> None:
    assert (inherited_rows(facts("fork")), forked_entries(facts("fork"))) == (3, 2)
    assert (inherited_rows(facts("isolated")), forked_entries(facts("isolated"))) == (0, 0)
    assert (inherited_rows(None), forked_entries(None)) == (0, 0)


def test_the_requester_is_told_of_too_much_and_of_nothing_else() -> None:
    assert fork_note(facts("isolated", 100_001)) == (
        "Parent context is too large to fork (100001/100000 tokens); "
        "starting with isolated context instead."
    )
    assert [fork_note(one) for one in (None, facts("fork"), facts("isolated", None))] == [None] * 3


def test_a_fork_that_nobody_asked_for_and_that_cannot_be_is_a_warning() -> None:
    missing = facts("isolated", None)
    assert fork_warnings(FORK, None, same_agent=False) == (OTHER_AGENT_WARNING,)
    assert fork_warnings(FORK, missing, same_agent=True) == (NO_TRANSCRIPT_WARNING,)
    assert fork_warnings(FORK, facts("isolated", 100_001), same_agent=True) == ()
    assert fork_warnings(FORK, facts("fork"), same_agent=True) == ()

    for explicit in (ContextRequest("fork", True), ContextRequest("isolated", True)):
        assert fork_warnings(explicit, missing, same_agent=True) == ()


def test_a_fork_of_nothing_is_said() -> None:
    nothing = ForkFacts(position=1, entries=0, tokens=0, mode="fork")
    for request in (FORK, ContextRequest("fork", is_explicit=True)):
        assert fork_warnings(request, nothing, same_agent=True) == (NOTHING_TO_FORK_WARNING,)
