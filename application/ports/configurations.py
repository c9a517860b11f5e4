"""The configuration that decisions are made under."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from domain.configuration.configuration import Configuration
from domain.configuration.runtimes import Runtime


@dataclass(frozen=True, slots=True)
class PinnedConfiguration:
    """A revision of the log and what it says. `redacted` is the whole of it with secrets replaced
    by references: what scripts may see as `cfg`."""

    revision: int
    configuration: Configuration
    redacted: Mapping[str, object] = field(repr=False)


class SecretMissing(Exception):
    """A secret that the configuration refers to cannot be had here; the text says which."""


class Configurations(Protocol):
    """The active revision and earlier ones."""

    def current(self) -> PinnedConfiguration:
        """The active revision."""
        ...

    async def at(self, revision: int) -> PinnedConfiguration:
        """An earlier revision, for what was begun under it."""
        ...

    def environment_of(self, pinned: PinnedConfiguration, runtime: Runtime) -> Mapping[str, str]:
        """A runtime's own environment with its secrets resolved now. Raises `SecretMissing`."""
        ...

    def workspace_of(self, pinned: PinnedConfiguration, agent_id: str) -> str:
        """The folder an agent works in: as configured, else one of its own in the data
        directory. It is created, private, when it does not exist."""
        ...
