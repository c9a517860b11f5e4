"""Moments as people write them, in the time zone of the terminal."""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

_TIME = r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?"
_TIME_ONLY = re.compile(_TIME, re.ASCII)
_DAY_AND_TIME = re.compile(
    rf"(today|yesterday|[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:[t ,]+(?:at )?{_TIME})?",
    re.ASCII | re.IGNORECASE,
)


def wall_time(text: str, now: datetime) -> datetime | None:
    """Return the local time that a text such as `18:00`, `yesterday 18:00` or `2026-11-25` means.

    `18:00` is the last time that clocks showed it. `now` and the result have no time zone.

    Returns:
        None if the text is anything else.
    """
    words = " ".join(text.split())
    try:
        if found := _TIME_ONLY.fullmatch(words):
            today = datetime.combine(now.date(), _time(found.groups()))
            return today if today <= now else today - timedelta(days=1)
        if found := _DAY_AND_TIME.fullmatch(words):
            day, *clock = found.groups()
            return datetime.combine(_day(day.lower(), now.date()), _time(clock))
    except ValueError:
        pass
    return None


def _time(parts: Any) -> time:
    hour, minute, second = (int(part or 0) for part in parts)
    return time(hour, minute, second)


def _day(word: str, today: date) -> date:
    if word == "today":
        return today
    return today - timedelta(days=1) if word == "yesterday" else date.fromisoformat(word)


def sent_moment(text: str) -> str:
    """Return the moment to send: a time of the terminal as an instant, any other unchanged."""
    now = datetime.now(UTC).astimezone().replace(tzinfo=None)
    local = wall_time(text, now)
    if local is None:
        return text
    return local.astimezone(UTC).isoformat().replace("+00:00", "Z")
