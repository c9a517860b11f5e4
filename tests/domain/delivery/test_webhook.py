"""The signature of a message, and what answers of receivers mean."""

from datetime import UTC, datetime

import pytest

from domain.configuration.webhooks import webhook_key
from domain.delivery.webhook import (
    WebhookMessage,
    is_permanent,
    requested_pause_seconds,
    signature_headers,
)

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def test_the_signature_is_that_of_the_published_example() -> None:
    """The values by which libraries of Standard Webhooks are tested."""
    message = WebhookMessage("msg_p5jXN8AQM9LWM0D4loKWxJek", '{"test": 2432232314}')
    key = webhook_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = signature_headers([b"x" * 24, key], message, 1_614_265_330)
    assert headers["webhook-id"] == message.key
    assert headers["webhook-timestamp"] == "1614265330"
    _, signature = headers["webhook-signature"].split(" ")
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("status", "is_last"),
    [(301, True), (400, True), (404, True), (410, True), (408, False), (429, False), (503, False)],
)
def test_some_answers_are_for_good(status: int, is_last: bool) -> None:
    assert is_permanent(status) is is_last


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        ("8.5", 9),
        ("8.0", 8),
        ("0.2", 1),
        ("8.", None),
        ("8,5", None),
        (" 5 ", 5),
        ("Sun, 01 Mar 2026 09:01:00 GMT", 60),
        ("Sun, 01 Mar 2026 08:00:00 GMT", 0),
        ("9" * 40, 999_999_999),
        ("-1", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_a_pause_is_asked_for_in_seconds_or_by_a_date(
    text: str | None, seconds: int | None
) -> None:
    assert requested_pause_seconds(text, NOW) == seconds


def test_date_of_retry_after_is_by_clock_of_its_answer() -> None:
    until, date = "Thu, 01 Jan 2026 00:00:30 GMT", "Thu, 01 Jan 2026 00:00:10 GMT"
    assert requested_pause_seconds(until, NOW, date=date) == 20
