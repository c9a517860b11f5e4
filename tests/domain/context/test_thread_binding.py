"""What the answer to a request for a thread comes to, and where results go."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from domain.values.refusals import Refusal

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
def test_who_cannot_bind_threads_says_so_by_the_mode(mode: ThreadMode, text: str) -> None:
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
def test_an_answer_that_binds_nothing_refuses_the_spawn(answer: dict[str, Any], text: str) -> None:
    assert read_binding_answer(answer, "run") == Refusal(
        rule="thread_binding", status="error", text=text
    )


@pytest.mark.parametrize("ready", [True, 1, "yes", {}, []])
def test_a_thread_is_bound_when_it_is_ready(ready: object) -> None:
    answer = {"status": "ok", "threadBindingReady": ready, "deliveryOrigin": ORIGIN, "more": 1}
    assert read_binding_answer(answer, "session") == BoundThread(ORIGIN)
    assert read_binding_answer(READY, "run") == BoundThread({})


def test_what_was_thrown_is_told() -> None:
    assert binding_failure("no answer").text == "Thread bind failed: no answer"


@pytest.mark.parametrize(
    ("value", "origin"),
    [
        (None, {}),
        ("discord", {}),
        ({"channel": " discord ", "to": "c", "guild": "g"}, {"channel": "discord", "to": "c"}),
        ({"channel": " ", "to": 7, "accountId": None}, {}),
        ({"threadId": " 9 "}, {"threadId": "9"}),
        ({"threadId": 9.7}, {"threadId": 9}),
        ({"threadId": True}, {}),
        ({"threadId": float("nan")}, {}),
        ({"to": "x" * ADDRESS_CHARACTERS_MAX}, {"to": "x" * ADDRESS_CHARACTERS_MAX}),
        ({"to": "x" * (ADDRESS_CHARACTERS_MAX + 1)}, {}),
        ({"to": "a\nb"}, {}),
    ],
)
def test_an_origin_has_the_addresses_that_can_be_used(value: object, origin: object) -> None:
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
def test_an_origin_is_read_as_it_was_kept(value: dict[str, Any]) -> None:
    origin = delivery_origin(value)
    assert read_origin(origin_text(origin)) == origin
    assert delivery_origin(origin) == origin


def test_a_text_that_is_no_origin_is_none() -> None:
    assert read_origin("no json") == read_origin(None) == read_origin("[]") == {}
    assert origin_text({}) is None
