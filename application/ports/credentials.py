"""Credentials of agents: which exist, and their values at the moment of use."""

from collections.abc import Mapping
from typing import Protocol

from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import EffectiveAgent
from domain.plan.credentials import FoundCredentials

REDACTED = "[redacted]"


class Credential(str):
    """A secret value. Its representation hides it, and runtimes mask it in a child's output."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(REDACTED)


class Credentials(Protocol):
    """Credentials by agent."""

    async def found(self, pinned: PinnedConfiguration, agent: EffectiveAgent) -> FoundCredentials:
        """Return the credentials that children of this agent would get now, and those that cannot
        be resolved.

        The environment of the agent's runtime is included. An agent that is not configured has
        none.
        """
        ...

    async def environment(self, pinned: PinnedConfiguration, agent_id: str) -> Mapping[str, str]:
        """Resolve the environment of a child of this agent: its runtime's variables and its
        profiles' values.

        Secrets are `Credential`s.

        Raises:
            MissingSecretError: If a secret cannot be resolved.
        """
        ...
