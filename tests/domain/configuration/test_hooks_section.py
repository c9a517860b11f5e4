"""The `spawnlog.hooks` section."""

from typing import Any

import pytest
from pydantic import ValidationError

from domain.configuration.hooks import HEADER_VALUE_CHARACTERS_MAX, HOOKS, HooksSection

URL = "https://hooks.example/there"
SECRET = "hush-canary"


def hooks(**ended: Any) -> HooksSection:
    return HooksSection.model_validate({"subagentEnded": {"url": URL, **ended}})


def test_a_hook_is_there_when_it_is_configured() -> None:
    read = HooksSection.model_validate({name: {"url": URL} for name in HOOKS})
    assert read.configured == HOOKS
    assert HooksSection().configured == ()
    assert (HooksSection().attempts_max, HooksSection().retry_seconds_max) == (8, 300)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:1/",
        "http://[::1]:8000/x?y=z",
        "https://h",
        "${HOOK_URL}",
        "https://h/${SECRET_PART}?k=${KEY}",
    ],
)
def test_an_address_is_http(url: str) -> None:
    ended = hooks(url=url).subagent_ended
    assert ended is not None
    assert ended.url == url


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "begins with http"),
        ("ftp://h/", "begins with http"),
        ("http://", "begins with http"),
        ("http:///x", "begins with http"),
        ("//h/x", "begins with http"),
        (f"http://u:{SECRET}@h/", "user name or a password"),
        ("http://@h/", "user name or a password"),
        ("http://h/#", "fragment"),
        ("http://h/ x", "blanks"),
        ("http://h/\n", "blanks"),
        ("http://ü/", "ASCII"),
        ("http://h:99999/", "must be a URL"),
        ("http://h:0/", "begins with http"),
        ("http://[::1/", "must be a URL"),
        ("https://h/" + "x" * 4096, "at most 4096"),
        (7, "must be a string"),
        (None, "must be a string"),
    ],
)
def test_another_address_is_refused_and_not_shown(url: object, why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        hooks(url=url)
    assert why in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"A b": "x"}, "is not the name of a header"),
        ({"": "x"}, "is not the name of a header"),
        ({"Idempotency-Key": "x"}, "is set by spawnlog"),
        ({"HOST": "x"}, "is set by spawnlog"),
        ({"content-type": "x"}, "is set by spawnlog"),
        ({"CONTENT-LENGTH": "1"}, "is set by spawnlog"),
        ({"user-agent": "x"}, "is set by spawnlog"),
        ({"A": "x", "a": "y"}, "twice"),
        ({"A": f"{SECRET}\r\nB: c"}, "control characters"),
        ({"A": f" {SECRET}"}, "without blanks around it"),
        ({"A": "ü"}, "ASCII"),
        ({"A": "x" * (HEADER_VALUE_CHARACTERS_MAX + 1)}, "at most 8192"),
        ({"A": 7}, "must be a string"),
        ({f"A{number}": "x" for number in range(51)}, "50"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_and_not_shown(
    headers: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        hooks(headers=headers)
    assert why in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "limits",
    [
        {"attemptsMax": 0},
        {"attemptsMax": 21},
        {"retrySecondsMax": 0},
        {"retrySecondsMax": 3601},
        {"subagentEnded": {"url": URL, "timeoutSeconds": 0}},
        {"subagentEnded": {"url": URL, "timeoutSeconds": 60.1}},
        {"subagentEnded": {"url": URL, "method": "GET"}},
        {"subagentStarted": {"url": URL}},
    ],
)
def test_a_limit_or_a_key_that_is_none_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        HooksSection.model_validate(limits)


def test_limits_hold_at_their_ends() -> None:
    ends = {"attemptsMax": 20, "retrySecondsMax": 3600}
    read = HooksSection.model_validate(
        {**ends, "subagentEnded": {"url": URL, "timeoutSeconds": 60}}
    )
    assert (read.attempts_max, read.retry_seconds_max) == (20, 3600)
    assert read.subagent_ended is not None
    assert read.subagent_ended.timeout_seconds == 60


def test_an_address_and_headers_are_in_no_representation() -> None:
    read = hooks(url=f"https://h/?k={SECRET}", headers={"A": SECRET})
    assert SECRET not in repr(read)
    assert SECRET not in str(read)
