"""Commands whose arguments are moments."""

from typing import Any

from domain.values.moments import is_time_ago
from infrastructure.inbound.command_line.client.plain_command import PlainCommand


class CommandOfMoments(PlainCommand):
    """Command with moments as arguments: `-2h` is a moment, not an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Strip the minus of a relative time, which means the same without it."""
        plain = [word.removeprefix("-") if is_time_ago(word) else word for word in args]
        return super().parse_args(ctx, plain)
