"""Moments as people type them: a length of time is so long ago, with or without its minus."""

import re
from typing import Any

from typer.core import TyperCommand

DAYS_OF_A_WEEK = 7
_LENGTH = re.compile(r"-?([0-9]{1,10})([smhdw])")


def moment_of(text: str) -> str:
    """The as-of that is meant: `7d` is `-7d`, `2w` is `-14d`; anything else stays as it is."""
    length = _LENGTH.fullmatch(text)
    if length is None:
        return text
    number, unit = int(length.group(1)), length.group(2)
    return f"-{number * DAYS_OF_A_WEEK}d" if unit == "w" else f"-{number}{unit}"


class CommandOfMoments(TyperCommand):
    """A command whose arguments are moments: `-2h` is one of them, and no request for help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """A length of time goes without its minus, by which it would be an option."""
        plain = [one.removeprefix("-") if _LENGTH.fullmatch(one) else one for one in args]
        return super().parse_args(ctx, plain)
