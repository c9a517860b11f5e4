"""Credentials of agents that have none."""

from collections.abc import Mapping

from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import EffectiveAgent
from domain.plan.credentials import NOTHING_FOUND, FoundCredentials


class NoCredentials:
    """Every agent is without, and misses none."""

    async def found(self, pinned: PinnedConfiguration, agent: EffectiveAgent) -> FoundCredentials:
        return NOTHING_FOUND

    async def environment(self, pinned: PinnedConfiguration, agent_id: str) -> Mapping[str, str]:
        return {}
