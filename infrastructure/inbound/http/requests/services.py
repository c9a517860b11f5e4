"""What HTTP works with."""

from dataclasses import dataclass

from application.commands.services import CommandServices
from application.queries.access import TokenVerifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Services(CommandServices):
    """Put together by the composition root. `tokens` is None if authentication is off; `hosts` are
    the names by which this server may be addressed."""

    tokens: TokenVerifier | None
    hosts: frozenset[str]
