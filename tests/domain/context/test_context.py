"""Input of a child besides its task."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.configuration.agents import BootstrapLimits
from domain.context.bootstrap_files import (
    BootstrapFile,
    BootstrapSelection,
    select_bootstrap_files,
    unreadable_warning,
)
from domain.context.fork import (
    INBOX_NOTE,
    NO_TRANSCRIPT_WARNING,
    NOTHING_TO_FORK_WARNING,
    OTHER_AGENT_WARNING,
    UNANNOUNCED_NOTE,
    ContextRequest,
    ParentExtent,
    accepted_note,
    fork_downgraded_note,
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
from domain.context.preamble import (
    TRUNCATED,
    preamble_block,
    preamble_sizes,
    preamble_warning,
    truncated_preamble,
)
from domain.context.thread_binding import (
    ADDRESS_CHARACTERS_MAX,
    ERROR_CHARACTERS_MAX,
    BoundThread,
    Origin,
    ThreadMode,
    binding_failure,
    delivery_origin,
    merge_origins,
    origin_text,
    read_binding_answer,
    read_origin,
    unavailable_thread,
)
from domain.run.facts import ContextMode, ForkFacts, Requester, SpawnOptions
from domain.values.refusals import Refusal
from domain.values.text import whole_characters

# A parent's context is cut between characters, and marked.

SPACES = " \n\t\x1c\x85\xa0\u1680\u2003\u2028\u3000"
UNSEEN = "\0\xad\u180e\u200b\u200d\u2060\ufeff\u115f\u3164\uffa0\u2800"
SIGNS = "ab \n\r\u0301\u0600\u0915\u094d\u200d\U0001f469\U0001f1e9"


def test_cut_between_words_may_lose_just_half() -> None:
    assert truncated_preamble("hello brave new world", 10) == f"hello{TRUNCATED}"
    assert truncated_preamble("hell brave new world", 10) == f"hell brave{TRUNCATED}"


def test_cut_between_words_splits_no_character() -> None:
    assert truncated_preamble("aaaa \u0600 bcd", 7) == "aaaa...(truncated)"
    assert truncated_preamble("one two\r\nthree", 8) == "one two...(truncated)"
    assert truncated_preamble("\u0915\u094d\u0937" * 4, 8) == "\u0915\u094d\u0937" * 2 + TRUNCATED


@settings(deadline=None)
@given(st.text(SIGNS, max_size=40), st.integers(1, 30))
def test_wherever_it_is_cut_it_is_between_characters(text: str, limit: int) -> None:
    cut = truncated_preamble(text, limit)
    if cut and cut != text:
        at = len(cut) - len(TRUNCATED)
        assert whole_characters(text, at) == at


def test_only_a_cut_preamble_is_warned() -> None:
    assert preamble_warning(preamble_sizes("alpha", 5), "a") is None
    assert preamble_warning(preamble_sizes("alpha beta", 6), "a") == (
        'contextPreamble has 10 characters, and agent "a" allows 6 (contextPreambleMaxChars):'
        " it was cut to the first 5"
    )
    assert preamble_warning(preamble_sizes("alpha", 0), "a") == (
        'contextPreamble has 5 characters, and agent "a" allows 0 (contextPreambleMaxChars): it'
        " was left out"
    )


@pytest.mark.parametrize("sign", [*SPACES, *UNSEEN], ids=ascii)
def test_what_nobody_sees_is_no_context(sign: str) -> None:
    assert truncated_preamble(sign * 5) == truncated_preamble(f" {sign}" * 9000) == ""
    assert preamble_block(sign * 5) == ""
    assert truncated_preamble(f"{sign}x") == f"{sign}x"


def test_blank_context_is_no_context() -> None:
    assert truncated_preamble(" \n") == ""
    assert truncated_preamble("text", 0) == ""
    assert preamble_block("") == ""


@settings(deadline=None)
@given(st.text(max_size=60), st.integers(1, 50))
def test_cut_preamble_is_a_beginning_within_its_limit(text: str, limit: int) -> None:
    cut = truncated_preamble(text, limit)
    if len(text) <= limit:
        assert cut in (text, "")
    elif cut:
        head = cut.removesuffix(TRUNCATED)
        assert text.startswith(head)
        assert len(head) <= limit


# How much of a workspace's files a prompt holds.


def within(chars_max: int, total: int, *texts: str) -> BootstrapSelection:
    named = zip(("AGENTS.md", "TOOLS.md"), texts, strict=False)
    files = [BootstrapFile(name, text) for name, text in named]
    return select_bootstrap_files(files, BootstrapLimits(chars_max, total))


def texts_of(made: BootstrapSelection) -> list[str]:
    return [file.text for file in made.files]


def test_file_over_the_limit_is_cut_with_a_warning() -> None:
    made = within(5, 100, "123456")
    assert texts_of(made) == ["12345\n\n[truncated: AGENTS.md exceeded 5 characters]"]
    assert made.warnings == (
        "AGENTS.md of the child's workspace was truncated after 5 characters"
        " (bootstrapMaxChars). Shorten the file, or raise bootstrapMaxChars.",
    )


def test_second_file_has_the_room_left_by_the_first() -> None:
    made = within(10, 12, "1234567890", "abc")
    assert texts_of(made) == ["1234567890", "ab\n\n[truncated: TOOLS.md exceeded 2 characters]"]
    assert "(bootstrapTotalMaxChars)" in made.warnings[0]
    assert texts_of(within(10, 13, "1234567890", "abc")) == ["1234567890", "abc"]


def test_file_without_room_is_left_out_with_a_warning() -> None:
    made = within(10, 10, "1234567890", "abc")
    assert texts_of(made) == ["1234567890"]
    assert made.warnings == (
        "TOOLS.md of the child's workspace was left out: the file before it took all of the 10"
        " characters of bootstrapTotalMaxChars. Shorten that file, or raise"
        " bootstrapTotalMaxChars.",
    )


def test_unusable_file_is_warned_with_advice() -> None:
    assert unreadable_warning("TOOLS.md", "it is not UTF-8") == (
        "TOOLS.md of the child's workspace was left out: it is not UTF-8. Put a regular file of"
        " UTF-8 text in its place, or remove it."
    )


# Whether a child starts with its requester's conversation.

FORK = ContextRequest("fork", is_explicit=False)


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
def test_default_counts_in_a_thread_of_a_channel(
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
def test_hundred_thousand_tokens_can_be_taken_over(tokens: int, fits: bool) -> None:
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
    assert {(refusal.rule, refusal.status) for refusal in refusals} == {("context_fork", "error")}


def facts(mode: ContextMode, tokens: int | None = 7) -> ForkFacts:
    return ForkFacts(position=3, entries=2, tokens=tokens, mode=mode)


def test_fork_has_its_entries_and_their_origin() -> None:
    assert (inherited_rows(facts("fork")), forked_entries(facts("fork"))) == (3, 2)
    assert (inherited_rows(facts("isolated")), forked_entries(facts("isolated"))) == (0, 0)
    assert (inherited_rows(None), forked_entries(None)) == (0, 0)


def test_only_a_fork_too_large_has_a_note() -> None:
    assert fork_note(facts("isolated", 100_001)) == (
        "Parent context is too large to fork (100001/100000 tokens); "
        "starting with isolated context instead."
    )
    assert [fork_note(item) for item in (None, facts("fork"), facts("isolated", None))] == [
        None
    ] * 3


def test_impossible_default_fork_is_a_warning() -> None:
    missing = facts("isolated", None)
    assert fork_warnings(FORK, None, same_agent=False) == (OTHER_AGENT_WARNING,)
    assert fork_warnings(FORK, missing, same_agent=True) == (NO_TRANSCRIPT_WARNING,)
    assert fork_warnings(FORK, facts("isolated", 100_001), same_agent=True) == ()
    assert fork_warnings(FORK, facts("fork"), same_agent=True) == ()

    for explicit in (ContextRequest("fork", True), ContextRequest("isolated", True)):
        assert fork_warnings(explicit, missing, same_agent=True) == ()


def test_fork_of_nothing_is_said() -> None:
    nothing = ForkFacts(position=1, entries=0, tokens=0, mode="fork")
    for request in (FORK, ContextRequest("fork", is_explicit=True)):
        assert fork_warnings(request, nothing, same_agent=True) == (NOTHING_TO_FORK_WARNING,)


# Answers of the thread hook, and addresses of results.

SESSION_UNAVAILABLE = (
    'sessions_spawn(mode="session") is only available on channels that expose thread bindings (e.g.'
    " Discord threads, Slack threads, Telegram forum topics). This request is not running on a"
    ' channel that can bind a subagent thread. Use mode="run" for one-shot subagent work, or'
    " sessions_send(sessionKey=...) to keep talking to a persistent session without thread binding."
)
RUN_UNAVAILABLE = (
    "thread=true is only available on channels that expose thread bindings (e.g. Discord threads,"
    " Slack threads, Telegram forum topics). This request is not running on a channel that can bind"
    " a subagent thread. Retry without thread=true, or re-run sessions_spawn from a channel that"
    " supports threads."
)
NOT_PREPARED = "Failed to prepare thread binding for this subagent session."
NOT_BOUND = (
    "Unable to create or bind a thread for this subagent session. Session mode is unavailable for"
    " this target."
)
READY = {"status": "ok", "threadBindingReady": True}
ORIGIN: Origin = {"channel": "discord", "accountId": "a", "to": "c", "threadId": 7}


@pytest.mark.parametrize(
    ("mode", "text"), [("session", SESSION_UNAVAILABLE), ("run", RUN_UNAVAILABLE)]
)
def test_unbound_thread_is_refused_by_its_mode(mode: ThreadMode, text: str) -> None:
    refusal = unavailable_thread(mode)
    assert (refusal.rule, refusal.status, refusal.text) == ("thread_binding", "error", text)
    assert read_binding_answer(None, mode) == refusal


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"status": "error", "error": " no rights\n"}, "no rights"),
        ({"status": "error", "error": "  "}, NOT_PREPARED),
        ({"status": "error"}, NOT_PREPARED),
        ({"status": "error", "error": 7}, NOT_PREPARED),
        ({"status": "error", "error": "a\0b\ud800"}, "a\ufffdb\ufffd"),
        ({"status": "error", "error": "x" * 9_000}, "x" * ERROR_CHARACTERS_MAX),
        ({}, NOT_BOUND),
        ({"status": "OK", "threadBindingReady": True}, NOT_BOUND),
        ({"status": "ok"}, NOT_BOUND),
        *(({"status": "ok", "threadBindingReady": no}, NOT_BOUND) for no in (False, None, 0, "")),
    ],
)
def test_answer_that_binds_nothing_refuses_the_spawn(answer: dict[str, Any], text: str) -> None:
    assert read_binding_answer(answer, "run") == Refusal(
        rule="thread_binding", status="error", text=text
    )


@pytest.mark.parametrize("ready", [True, 1, "yes", {}, []])
def test_thread_is_bound_when_it_is_ready(ready: object) -> None:
    answer = {"status": "ok", "threadBindingReady": ready, "deliveryOrigin": ORIGIN, "more": 1}
    assert read_binding_answer(answer, "session") == BoundThread(ORIGIN)
    assert read_binding_answer(READY, "run") == BoundThread({})


def test_what_was_thrown_is_told() -> None:
    assert binding_failure("no answer").text == "Thread bind failed: no answer"


@pytest.mark.parametrize(
    ("value", "origin"),
    [
        (None, {}),
        ({"channel": " ", "to": 7, "accountId": None}, {}),
        ({"threadId": " 9 "}, {"threadId": "9"}),
        ({"threadId": float("nan")}, {}),
        ({"to": "x" * ADDRESS_CHARACTERS_MAX}, {"to": "x" * ADDRESS_CHARACTERS_MAX}),
        ({"to": "x" * 1_025}, {}),
        ({"to": "a\nb"}, {}),
    ],
)
def test_origin_has_the_addresses_that_can_be_used(value: object, origin: object) -> None:
    assert delivery_origin(value) == origin


@pytest.mark.parametrize(
    ("over", "under", "merged"),
    [
        ({}, ORIGIN, ORIGIN),
        (ORIGIN, {}, ORIGIN),
        ({"to": "t", "threadId": "9"}, ORIGIN, {**ORIGIN, "to": "t", "threadId": "9"}),
        ({"channel": "discord", "to": "t"}, ORIGIN, {**ORIGIN, "to": "t"}),
        ({"channel": "slack", "to": "t"}, ORIGIN, {"channel": "slack", "to": "t"}),
        ({"channel": "slack"}, {"to": "t"}, {"channel": "slack", "to": "t"}),
    ],
)
def test_one_origin_is_completed_by_another_of_the_same_channel(
    over: dict[str, Any], under: dict[str, Any], merged: dict[str, Any]
) -> None:
    assert merge_origins(over, under) == merged


@given(
    st.dictionaries(
        st.sampled_from(["channel", "accountId", "to", "threadId", "other"]),
        st.text(max_size=20) | st.integers() | st.floats() | st.none() | st.booleans(),
    )
)
def test_origin_is_read_as_it_was_kept(value: dict[str, Any]) -> None:
    origin = delivery_origin(value)
    assert read_origin(origin_text(origin)) == origin
    assert delivery_origin(origin) == origin


def test_text_that_is_no_origin_is_none() -> None:
    assert read_origin("no json") == read_origin(None) == read_origin("[]") == {}
    assert origin_text({}) is None


# Notes for the requester of an accepted spawn.

FORK_NOTE = (
    "Parent context is too large to fork (170000/100000 tokens); "
    "starting with isolated context instead."
)
RUN = SpawnOptions()


def requester(key: str = "agent:main:main", *, may_yield: bool | None = None) -> Requester:
    return Requester(
        session_key=key,
        display_key=key,
        agent_id="main",
        depth=0,
        root_session_key=key,
        sandboxed=False,
        may_yield=may_yield,
    )


def test_only_a_caller_that_can_yield_is_asked_to() -> None:
    text = accepted_note(RUN, requester(may_yield=True))
    assert text is not None
    assert text.startswith("Auto-announce is push-based.")
    assert "call sessions_yield to end the turn and wait for completion events" in text
    assert "sessions_yield" not in str(accepted_note(RUN, requester(may_yield=False)))


def test_caller_without_completion_is_not_asked_to_wait() -> None:
    options = SpawnOptions(expects_completion_message=False)
    assert accepted_note(options, requester(may_yield=True)) == UNANNOUNCED_NOTE


def test_fork_that_was_not_made_is_mentioned() -> None:
    assert fork_downgraded_note(170_000) == FORK_NOTE
    assert accepted_note(RUN, requester(), FORK_NOTE) == f"{INBOX_NOTE} {FORK_NOTE}"
    assert accepted_note(RUN, requester("agent:main:cron:job-1"), FORK_NOTE) == FORK_NOTE
