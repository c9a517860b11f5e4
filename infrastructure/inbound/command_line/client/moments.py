"""Commands whose arguments are moments."""

from typing import Any

from domain.values.moments import is_time_ago
from infrastructure.inbound.command_line.client.plain_command import PlainCommand


class CommandOfMoments(PlainCommand):
    """Command with moments as arguments: `-2h` is one of them, and no option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the minus from a time ago, which means the same without it."""
        plain = [one.removeprefix("-") if is_time_ago(one) else one for one in args]
        return super().parse_args(ctx, plain)
