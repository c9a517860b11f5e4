"""The configuration that decisions are made under."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from domain.configuration.configuration import Configuration
from domain.configuration.runtimes import Runtime
from domain.values.refusals import ConfigurationMoved


@dataclass(frozen=True, slots=True)
class PinnedConfiguration:
    """A revision of the log and what it says. `redacted` is the whole of it with secrets replaced
    by references: what scripts may see as `cfg`."""

    revision: int
    configuration: Configuration
    redacted: Mapping[str, object] = field(repr=False)

    def must_be_current(self, revision: int) -> None:
        """Raises `ConfigurationMoved` when the log is at a later revision."""
        if revision > self.revision:
            raise ConfigurationMoved(revision)


class RevisionErased(RuntimeError):
    """The text of a revision is no more."""


class SecretMissing(Exception):
    """A secret that the configuration refers to cannot be had here; the text says which."""


class WorkspaceForbidden(OSError):
    """The folder that a request names may not be used. The text says so in the words of whoever
    asked, and what to do."""


class Configurations(Protocol):
    """The active revision and earlier ones."""

    def current(self) -> PinnedConfiguration:
        """The active revision."""
        ...

    async def at(self, revision: int) -> PinnedConfiguration:
        """An earlier revision, for what was begun under it. Raises `RevisionErased`, and
        `ConfigurationError` for one that this program cannot read."""
        ...

    def environment_of(self, pinned: PinnedConfiguration, runtime: Runtime) -> Mapping[str, str]:
        """A runtime's own environment with its secrets resolved now. Raises `SecretMissing`."""
        ...

    def workspace_of(
        self,
        pinned: PinnedConfiguration,
        agent_id: str,
        *,
        recorded: str | None = None,
        requested: str | None = None,
    ) -> str:
        """The folder that a child of this agent works in.

        Its agent's own: as configured, else one in the data directory; it need not be there. A
        child of its requester's own agent inherits: `recorded` is the folder on record for the
        requester, `requested` the one that the request says it works in, which has to be in the
        recorded one; without a record, in the agent's own or below a configured root. Links are
        resolved first, and nothing of it is created.

        Raises OSError for a folder that cannot be used, `WorkspaceForbidden` for one that may not:
        also one on record that leads elsewhere by now.
        """
        ...
