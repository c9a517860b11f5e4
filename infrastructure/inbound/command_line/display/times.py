"""Times and durations for people. Input is RFC 3339, output is UTC."""

from datetime import UTC, datetime, timedelta

from infrastructure.inbound.command_line.display.plain_text import printable_line


def parse_instant(text: object) -> datetime | None:
    """Return the instant of an RFC 3339 text, or None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)


def format_instant(text: object) -> str:
    """Return `2026-03-01 09:30:00.125` in UTC. A text that is no instant is returned escaped."""
    instant = parse_instant(text)
    if instant is None:
        return "" if text is None else printable_line(text)
    return f"{instant:%Y-%m-%d %H:%M:%S}.{instant.microsecond // 1000:03}"


def milliseconds_between(start: datetime, end: datetime) -> int:
    """Return the whole milliseconds from `start` to `end`, rounded down as in `runtimeMs`."""
    return (end - start) // timedelta(milliseconds=1)


def format_offset(start: object, end: object) -> str:
    """Return the time from `start` to `end`, such as `+1.250s`. Empty if one of them is unknown."""
    first, last = parse_instant(start), parse_instant(end)
    if first is None or last is None:
        return ""
    return f"{milliseconds_between(first, last) / 1000:+.3f}s"


def format_duration(milliseconds: object) -> str:
    """Return a duration such as `340ms`, `1.2s`, `5m12s` or `2h05m`. Empty if it is no number."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:.0f}ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m"
