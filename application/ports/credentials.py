"""Credentials of agents: which of them there are, and their values at the moment of use."""

from collections.abc import Mapping
from typing import Protocol

from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import EffectiveAgent
from domain.plan.credentials import FoundCredentials

REDACTED = "[redacted]"


class Credential(str):
    """A value that nobody may see: its representation does not show it, and runtimes mask it in
    whatever a child says."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(REDACTED)


class Credentials(Protocol):
    """Credentials by agent."""

    async def found(self, pinned: PinnedConfiguration, agent: EffectiveAgent) -> FoundCredentials:
        """What there is now for children of this agent, and what of it cannot be resolved; the
        environment of its runtime included. Nothing for an agent that is not configured."""
        ...

    async def environment(self, pinned: PinnedConfiguration, agent_id: str) -> Mapping[str, str]:
        """The environment of a child of this agent, resolved now: what its runtime sets, and the
        values of the profiles that are given. Secrets are `Credential`s. Raises `SecretMissing`."""
        ...
