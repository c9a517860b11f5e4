"""Credentials of agents: which of them there are, and their values at the moment of use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import EffectiveAgent

REDACTED = "[redacted]"


class Credential(str):
    """A value that nobody may see: its representation does not show it, and runtimes mask it in
    whatever a child says."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(REDACTED)


@dataclass(frozen=True, slots=True)
class MissingCredential:
    """`name` is the id of a profile, the name of a variable or that of a file; `text` says what is
    the matter with it, and `is_unset` whether it is a variable that has to be set."""

    name: str
    text: str
    is_unset: bool = False


@dataclass(frozen=True, slots=True)
class FoundCredentials:
    """`profile_ids` are all that there are for the agent, `given` those that a child of it gets,
    `missing` what it would have to get and cannot. No values."""

    profile_ids: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    missing: tuple[MissingCredential, ...] = ()


NOTHING_FOUND = FoundCredentials()
"""For runtimes that are given no credentials."""


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
