"""The services of HTTP endpoints."""

from dataclasses import dataclass

from application.commands.services import CommandServices
from application.queries.access import TokenVerifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Services(CommandServices):
    """Services of HTTP endpoints, built by the composition root.

    Attributes:
        tokens: Verifies tokens; None if authentication is off.
        hosts: Names by which this server may be addressed.
    """

    tokens: TokenVerifier | None
    hosts: frozenset[str]
