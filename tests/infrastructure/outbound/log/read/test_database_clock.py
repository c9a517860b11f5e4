"""The database's clock is known to be between the question and its answer."""

import time
from datetime import UTC, datetime, timedelta

from infrastructure.outbound.log.read.database_clock import DatabaseClock

TOLD = datetime(2026, 3, 1, tzinfo=UTC)
SLOWLY_SECONDS = 3_600.0


def test_time_since_question_has_passed_however_late_answer_is_read() -> None:
    clock = DatabaseClock()
    clock.note(TOLD, asked_at=time.monotonic() - SLOWLY_SECONDS)
    assert clock.now() >= TOLD + timedelta(seconds=SLOWLY_SECONDS)


def test_quick_answer_is_kept_if_slow_one_agrees() -> None:
    clock = DatabaseClock()
    clock.note(TOLD, asked_at=time.monotonic())
    clock.note(TOLD, asked_at=time.monotonic() - SLOWLY_SECONDS)
    assert clock.now() < TOLD + timedelta(seconds=SLOWLY_SECONDS)


def test_clock_that_was_set_is_followed_in_either_direction() -> None:
    clock = DatabaseClock()
    for item in (TOLD, TOLD + timedelta(days=1), TOLD - timedelta(days=1)):
        clock.note(item, asked_at=time.monotonic())
        assert item <= clock.now() < item + timedelta(seconds=SLOWLY_SECONDS)
