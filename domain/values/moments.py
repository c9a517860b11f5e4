"""Grammar of durations and moments, shared by options, query parameters and bodies."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

STAGE_PREFIX = "run:"
AGO_DAYS_MAX = 36_500
MOMENT_CHARACTERS_MAX = 256
DURATION_FORMS = "a number with ms, s, m, h, d or w, such as 30s, 10m or 1d; alone it is seconds"
MOMENT_FORMS = (
    "pos:18342, an RFC 3339 instant with an offset such as 2026-03-01T09:00:00Z, a time ago such"
    " as 12h or -12h (ms, s, m, h, d or w), or a stage of a run such as run:reviewer@started"
)
MOMENT_EXAMPLES = "2026-11-25T18:00:00Z, -2h, pos:120 or run:reviewer@started"
_QUOTED_CHARACTERS_MAX = 40
_NUMBER = r"([0-9]{1,10}(?:\.[0-9]{1,3})?)"
_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_UNIT = "(ms|s|m|h|d|w)"
_DURATION = re.compile(f"{_NUMBER}{_UNIT}?", re.ASCII)
_AGO = re.compile(f"-?{_NUMBER}{_UNIT}", re.ASCII)
_POSITION = re.compile(r"pos:([0-9]{1,18})", re.ASCII)
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class RunStageName:
    """An unresolved reference to a stage of a run: `run:<name>@<stage>`."""

    text: str


Moment = int | datetime | RunStageName
"""A log position, an instant, or a stage of a run."""


def parse_duration(text: str) -> timedelta:
    """Parse a duration such as `30s` or `10m`. A number without a unit is in seconds.

    Raises:
        ValueError: `text` is not a duration. The message lists the accepted forms.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"a duration must be {DURATION_FORMS}")
    return _length(match)


def parse_moment(text: str, now: datetime) -> Moment:
    """Parse a moment: a position, an instant, a time ago or a run stage.

    Args:
        text: One of the forms in `MOMENT_FORMS`.
        now: Time from which a time ago counts back.

    Raises:
        ValueError: `text` is not a moment. The message has an example of each form.
    """
    if match := _POSITION.fullmatch(text):
        return int(match.group(1))
    if text.startswith(STAGE_PREFIX):
        return RunStageName(text)
    if match := _AGO.fullmatch(text):
        try:
            return now - _length(match)
        except OverflowError:
            pass
    if _INSTANT.fullmatch(text):
        try:
            return datetime.fromisoformat(text.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise ValueError(f"{_quoted(text)} is not a moment. Use {MOMENT_EXAMPLES}")


def is_time_ago(text: str) -> bool:
    """Return True if `text` is a duration with a unit, which as a moment means that long ago."""
    return _AGO.fullmatch(text) is not None


def _quoted(text: str) -> str:
    """Return the beginning of a text in quotes, without control characters."""
    shown = "".join(
        character if character.isprintable() else "?" for character in text[:_QUOTED_CHARACTERS_MAX]
    )
    return f'"{shown}…"' if len(text) > _QUOTED_CHARACTERS_MAX else f'"{shown}"'


def _length(match: re.Match[str]) -> timedelta:
    try:
        length = float(match.group(1)) * _UNITS[match.group(2) or "s"]
    except OverflowError:
        length = timedelta.max
    if length > timedelta(days=AGO_DAYS_MAX):
        raise ValueError(f"a duration or the age of a moment may be at most {AGO_DAYS_MAX} days")
    return length
